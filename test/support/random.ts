import fc from 'fast-check';

/** Repeatable randomness: the same seed makes the same choices. `SEED=n` sets it. */
export interface Random {
  readonly seed: number;
  /** A whole number from 0 up to, but not including, `below`. */
  number(below: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  shuffle<T>(items: readonly T[]): T[];
}

export function createRandom(seed = Number(process.env.SEED ?? Date.now() % 1_000_000)): Random {
  let state = seed >>> 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const number = (below: number) => Math.floor(next() * below);
  return {
    seed,
    number,
    chance: (probability) => next() < probability,
    pick: (items) => items[number(items.length)]!,
    shuffle(items) {
      const rest = [...items];
      return items.map(() => rest.splice(number(rest.length), 1)[0]!);
    },
  };
}

/** Any text, of any characters. `fc.string({ unit: 'binary' })` takes a second to set up in every process. */
export function anyText(length: { minLength?: number; maxLength?: number } = {}): fc.Arbitrary<string> {
  const character = fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 0x7f }) },
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  );
  return fc.array(character, length).map((codes) => String.fromCodePoint(...codes));
}
