import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countFitting, cutText, type FitLine, fitLines } from './fit.ts';

const more = (left: number) => `and ${left} more`;
const line = (head: string, text = ''): FitLine => ({ head, text });

describe('Lines are fitted into a number of characters', () => {
  it('lines that fit are printed whole', () => {
    expect(fitLines([line('a', 'one'), line('b'), line('c', 'three')], { room: 100, more })).toBe(
      'a: one\nb\nc: three',
    );
  });

  it('the longest texts are cut first, to equal lengths', () => {
    const lines = [line('a', 'x'.repeat(50)), line('b', 'short'), line('c', 'y'.repeat(80))];
    expect(fitLines(lines, { room: 56, more })).toBe(`a: ${'x'.repeat(19)}…\nb: short\nc: ${'y'.repeat(19)}…`);
  });

  it('a text has at most the length that is asked for', () => {
    expect(fitLines([line('a', 'z'.repeat(30))], { room: 100, most: 10, more })).toBe(`a: ${'z'.repeat(9)}…`);
  });

  it('texts that would become too short are dropped', () => {
    const lines = [line('a', 'x'.repeat(50)), line('b', 'y'.repeat(50))];
    expect(fitLines(lines, { room: 30, more })).toBe('a\nb');
    expect(fitLines(lines, { room: 30, shortest: 5, more })).toBe(`a: ${'x'.repeat(10)}…\nb: ${'y'.repeat(10)}…`);
  });

  it('heads that do not fit are counted', () => {
    const lines = Array.from({ length: 20 }, (_, i) => line(`server_${i}`, 'text'));
    expect(fitLines(lines, { room: 40, more })).toBe('server_0\nserver_1\nserver_2\nand 17 more');
  });

  it('no lines are an empty text', () => {
    expect(fitLines([], { room: 10, more })).toBe('');
  });

  it('a text is cut after a word if that is near, and never inside of a character', () => {
    expect(cutText('a knowledge graph of people', 20)).toBe('a knowledge graph…');
    expect(cutText('a knowledge graph of people', 18)).toBe('a knowledge graph…');
    expect(cutText('abcdefghijklmnopqrstuvwxyz', 10)).toBe('abcdefghi…');
    expect(cutText('one, two three', 6)).toBe('one…');
    expect(cutText('👍👍👍', 4)).toBe('👍…');
    expect(cutText('abc', 0)).toBe('');
  });

  it('the result never exceeds the room, and every line is shown in order or counted', () => {
    const lines = fc.array(
      fc.record({ head: fc.string({ minLength: 1, unit: 'grapheme-ascii' }), text: fc.string() }),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(lines, fc.nat(600), fc.integer({ min: 1, max: 40 }), (given, room, shortest) => {
        const all = given.map((one, i) => ({ ...one, head: `${i}${one.head}` }));
        const text = fitLines(all, { room, shortest, separator: '\u0000', more });
        expect(text.length).toBeLessThanOrEqual(room);
        if (text === '') return;
        const shown = text.split('\u0000');
        const left = /^and (\d+) more$/.exec(shown.at(-1)!)?.[1];
        const heads = left === undefined ? shown : shown.slice(0, -1);
        expect(heads.length + Number(left ?? 0)).toBe(all.length);
        heads.forEach((one, i) => {
          expect(one.startsWith(all[i]!.head)).toBe(true);
        });
      }),
    );
  });

  it('a line more never fits where one less did not', () => {
    const lines = fc.array(fc.record({ head: fc.string(), text: fc.constant('') }));
    fc.assert(
      fc.property(lines, fc.nat(300), (given, room) => {
        const count = countFitting(given, room);
        const length = (n: number) =>
          given
            .slice(0, n)
            .map(({ head }) => head)
            .join('\n').length;
        expect(length(count)).toBeLessThanOrEqual(room);
        if (count < given.length) expect(length(count + 1)).toBeGreaterThan(room);
      }),
    );
  });
});
