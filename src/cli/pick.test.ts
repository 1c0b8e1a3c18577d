import { PassThrough, Writable } from 'node:stream';
import { setImmediate as tick } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { type Choice, type Picking, pickPrompt, press, shownChoices } from './pick.ts';

const choices: Choice[] = ['git.status', 'git.log', 'docker.ps'].map((value, index) => ({
  value,
  text: `does ${value}`,
  tokens: 10 * (index + 1),
}));
const start: Picking = { query: '', current: 0, chosen: new Set() };
const typed = (picking: Picking, text: string) =>
  [...text].reduce((state, character) => press(state, choices, character, character), picking);
const key = (picking: Picking, name: string) => press(picking, choices, name, '');

describe('the state of a picker', () => {
  it('marks the current line, and unmarks it', () => {
    const second = key(key(start, 'down'), 'space');
    expect([...second.chosen]).toEqual(['git.log']);
    expect([...key(second, 'space').chosen]).toEqual([]);
    expect(start.chosen.size).toBe(0);
  });

  it('is narrowed by what is typed, and marks only what is shown', () => {
    const found = typed(start, 'DOCK');
    expect(shownChoices(choices, found.query).map(({ value }) => value)).toEqual(['docker.ps']);
    expect([...key(found, 'space').chosen]).toEqual(['docker.ps']);
    expect(typed(start, 'zzz')).toMatchObject({ query: 'zzz' });
    expect(key(typed(start, 'zzz'), 'space').chosen.size).toBe(0);
    expect(key(typed(start, 'gi'), 'backspace').query).toBe('g');
  });

  it('stays within the list', () => {
    expect(key(start, 'up').current).toBe(0);
    expect(['down', 'down', 'down', 'down'].reduce(key, start).current).toBe(2);
    expect(key(typed(start, 'zzz'), 'down').current).toBe(0);
  });
});

/** The prompt on streams instead of a terminal. */
function open(all: readonly Choice[], { rows = 20, columns = 80, chosen = [] as string[] } = {}) {
  const frames: string[][] = [];
  const input = new PassThrough();
  const output = Object.assign(
    new Writable({
      write(chunk: Buffer, _, done) {
        const text = stripVTControlCharacters(chunk.toString());
        if (text.includes('Search')) frames.push(text.split('\n'));
        done();
      },
    }),
    { columns, rows },
  );
  const result = pickPrompt({ choices: all, chosen, rows, columns }, { input, output });
  const press = async (keys: string) => {
    await tick();
    input.write(keys);
    await tick();
  };
  return { press, result, lines: () => frames.at(-1)! };
}

describe('the picker', () => {
  it('shows what each choice costs, and the cost of all that are chosen', async () => {
    const { press, lines, result } = open(choices);
    await press(' \u001b[B ');
    expect(lines()[0]).toBe('Search (3 of 3):');
    expect(lines()[1]).toBe('  [x] git.status     10  does git.status');
    expect(lines()[2]).toBe('> [x] git.log        20  does git.log');
    expect(lines().at(-2)).toBe('2 chosen, about 30 tokens');
    await press('dock');
    expect(lines()[0]).toBe('Search (1 of 3): dock');
    await press('\r');
    expect(await result).toEqual(['git.status', 'git.log']);
  });

  it('shows a message when nothing matches', async () => {
    const { press, lines, result } = open(choices);
    await press('zzz');
    expect(lines().slice(0, 2)).toEqual(['Search (0 of 3): zzz', '  no match']);
    await press('\r');
    expect(await result).toEqual([]);
  });

  it('starts with what was chosen before, and returns choices in the order of the list', async () => {
    const { press, result } = open(choices, { chosen: ['docker.ps'] });
    await press(' \r');
    expect(await result).toEqual(['git.status', 'docker.ps']);
  });

  it('fits into the terminal, around the current line', async () => {
    const many = Array.from({ length: 100 }, (_, n) => ({ value: `t${n}`, text: 'long '.repeat(50), tokens: 1 }));
    const { press, lines, result } = open(many, { rows: 10, columns: 40 });
    await press('\u001b[B'.repeat(50));
    expect(lines()).toHaveLength(9);
    expect(lines().some((line) => line.startsWith('> [ ] t50'))).toBe(true);
    expect(lines().every((line) => line.length < 60)).toBe(true);
    expect(
      lines()
        .slice(1, -2)
        .every((line) => line.length < 40),
    ).toBe(true);
    await press('\r');
    expect(await result).toEqual([]);
  });

  it('shows no escape sequence of a server', async () => {
    const { press, lines, result } = open([{ value: 'a\u001b[31m', text: '\u009b2J', tokens: 1 }]);
    await press('\r');
    expect(lines()[1]).toContain('[ ] a?[31m');
    expect(await result).toEqual([]);
  });
});
