import fc from 'fast-check';
import { expect, it } from 'vitest';
import { anyText } from '../../../test/support/random.ts';
import { jsonPrefix, pieceOf, startAt } from './text.ts';

it('pieceOf cuts a text into pieces of whole characters that add up to the text', () => {
  fc.assert(
    fc.property(anyText(), fc.integer({ min: 1, max: 20 }), (text, most) => {
      const bytes = Buffer.from(text);
      const parts: string[] = [];
      for (let at = 0; at < bytes.length; ) {
        const piece = pieceOf(bytes, at, most);
        expect(piece.length).toBeGreaterThan(0);
        expect(piece.length <= most || [...piece.toString()].length === 1).toBe(true);
        parts.push(piece.toString());
        at += piece.length;
      }
      expect(parts.join('')).toBe(bytes.toString());
    }),
  );
});

it('startAt returns the start of the character at an offset', () => {
  const bytes = Buffer.from('a€b');
  expect([0, 1, 2, 3, 4, 5, 9].map((from) => startAt(bytes, from))).toEqual([0, 1, 1, 1, 4, 5, 5]);
});

it('jsonPrefix returns as much of a text as fits as JSON and never splits a character', () => {
  fc.assert(
    fc.property(anyText(), fc.nat(60), (text, most) => {
      const prefix = jsonPrefix(text, most);
      const length = (part: string) => Buffer.byteLength(JSON.stringify(part)) - 2;
      expect(text.startsWith(prefix)).toBe(true);
      expect(length(prefix)).toBeLessThanOrEqual(most);
      const next = [...text.slice(prefix.length)][0];
      if (next !== undefined) expect(length(prefix + next)).toBeGreaterThan(most);
    }),
  );
});
