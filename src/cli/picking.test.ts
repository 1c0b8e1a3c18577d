import { describe, expect, it } from 'vitest';
import { type Choice, draw, type Picking, press } from './picking.ts';

const choices: Choice[] = ['git.status', 'git.log', 'docker.ps'].map((value, index) => ({
  value,
  text: `does ${value}`,
  tokens: 10 * (index + 1),
}));
const start: Picking = { query: '', at: 0, chosen: new Set() };
const typed = (picking: Picking, text: string) =>
  [...text].reduce((state, sequence) => press(state, choices, { sequence, name: sequence }), picking);
const key = (picking: Picking, name: string) => press(picking, choices, { name });

describe('picking', () => {
  it('marks what is pointed at, and takes the mark away again', () => {
    const second = key(key(start, 'down'), 'space');
    expect([...second.chosen]).toEqual(['git.log']);
    expect([...key(second, 'space').chosen]).toEqual([]);
    expect(start.chosen.size).toBe(0);
  });

  it('is narrowed by what is typed, and marks among what is shown', () => {
    const found = typed(start, 'DOCK');
    expect(draw(found, choices, 20, 80)[0]).toBe('Search: DOCK_  (1 of 3)');
    expect([...key(found, 'space').chosen]).toEqual(['docker.ps']);
    expect(typed(start, 'zzz')).toMatchObject({ query: 'zzz' });
    expect(key(typed(start, 'zzz'), 'space').chosen.size).toBe(0);
    expect(key(typed(start, 'gi'), 'backspace').query).toBe('g');
  });

  it('stays within the list', () => {
    expect(key(start, 'up').at).toBe(0);
    expect(['down', 'down', 'down', 'down'].reduce(key, start).at).toBe(2);
    expect(key(typed(start, 'zzz'), 'down').at).toBe(0);
  });

  it('shows what each costs, and all that is chosen together', () => {
    const lines = draw(key(key(key(start, 'space'), 'down'), 'space'), choices, 20, 80);
    expect(lines[1]).toBe('  [x] git.status     10  does git.status');
    expect(lines[2]).toBe('> [x] git.log        20  does git.log');
    expect(lines.at(-2)).toBe('2 chosen, about 30 tokens');
    expect(draw(start, choices, 20, 12).every((line) => line.length < 12)).toBe(true);
  });

  it('shows the part of a long list that is pointed at', () => {
    const many = Array.from({ length: 100 }, (_, n) => ({ value: `t${n}`, text: '', tokens: 1 }));
    const lines = draw({ ...start, at: 50 }, many, 10, 80);
    expect(lines.length).toBe(9);
    expect(lines.some((line) => line.startsWith('> [ ] t50'))).toBe(true);
  });
});
