/**
 * How much the tests cover. `npm run test:wide` runs every combination and every property in full. A normal run covers
 * the combinations that differ most, because they share most of their code, and a tenth of the random cases: another
 * tenth with every commit, because the seed of a run comes from it (`scripts/vitest-setup.mjs`).
 */
export const isWide = process.env.WIDE === '1';
/** Whether this is `npm run soak`. */
export const isSoak = process.env.SOAK === '1';

export function some<T>(all: readonly T[], few: readonly T[]): readonly T[] {
  return isWide ? all : few;
}

/** The number of random cases of a property, of which `full` are run in a wide run. */
export function runs(full: number): number {
  return isWide ? full : Math.max(3, Math.ceil(full / 10));
}

/** One of so many parts of a long list, another one with every commit. A wide run takes the whole list. */
export function onePart<T>(of: number, all: readonly T[]): readonly T[] {
  return isWide ? all : all.filter((_, i) => i % of === Number(process.env.SEED) % of);
}
