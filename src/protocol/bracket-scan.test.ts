import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, it } from 'vitest';
// @ts-expect-error plain JavaScript, for the build
import { bracketScanCode } from '../../scripts/wasm.mjs';
import { runs } from '../../test/support/wide.ts';
import { BracketFollower, findClosingBracket } from './bracket-scan.ts';

/** What `findClosingBracket` should return, by a loop over every byte. */
function slowEnd(bytes: Buffer): number {
  let depth = 0;
  let string = false;
  for (let i = 0; i < bytes.length; i++) {
    const c = String.fromCharCode(bytes[i]!);
    if (string && c === '\\') i++;
    else if (c === '"') string = !string;
    else if (string) continue;
    else if (c === '{' || c === '[') depth++;
    else if ((c === '}' || c === ']') && --depth <= 0) return i + 1;
  }
  return -1;
}

function cutUp(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, i) => bytes.subarray(places[i], end));
}

// Escapes only inside strings, as in JSON; brackets and quotes everywhere.
const string = fc
  .array(fc.constantFrom('\\"', '\\\\', '\\n', '{', '}', '[', ']', 'a', 'é', ' '.repeat(60)), { maxLength: 60 })
  .map((parts) => `"${parts.join('')}"`);
const tokens = fc.array(fc.oneof(string, fc.constantFrom('{', '}', '[', ']', ',', ':', '12', ' '.repeat(50))), {
  maxLength: 60,
});

it('finds the same end as a loop over every byte, for any bytes in any parts', () => {
  fc.assert(
    fc.property(tokens, fc.array(fc.nat(), { maxLength: 8 }), (parts, cuts) => {
      const bytes = Buffer.from(`{${parts.join('')}`);
      expect(findClosingBracket(cutUp(bytes, cuts))).toBe(slowEnd(bytes));
    }),
    { numRuns: runs(2000) },
  );
});

it('finds it in bytes that are still coming, as soon as it is there, for several texts in turn', () => {
  fc.assert(
    fc.property(tokens, tokens, fc.array(fc.nat(), { maxLength: 8 }), (one, two, cuts) => {
      const texts = [one, two].map((parts) => Buffer.from(`{${parts.join('')}`));
      const followed = texts.map((bytes) => ({
        parts: cutUp(bytes, cuts),
        brackets: new BracketFollower(),
        read: 0,
        end: -1,
      }));
      for (let i = 0; i <= cuts.length; i++)
        for (const text of followed) {
          const part = text.parts[i]!;
          const end = text.end < 0 ? text.brackets.push(part) : -1;
          if (end >= 0) text.end = text.read + end;
          text.read += part.length;
        }
      expect(followed.map(({ end }) => end)).toEqual(texts.map(slowEnd));
    }),
    { numRuns: runs(2000) },
  );
});

it('reads parts of any size', () => {
  const text = JSON.stringify({ text: 'a"\\\n'.repeat(100_000), rest: [1, { a: '}' }] });
  expect(findClosingBracket([Buffer.from(text)])).toBe(text.length);
  expect(findClosingBracket([Buffer.from(`${text},"method":"x"}`)])).toBe(text.length);
  expect(findClosingBracket([])).toBe(-1);
});

it('is built from its source', async () => {
  const committed = readFileSync(new URL('bracket-scan-code.ts', import.meta.url), 'utf8');
  expect(await bracketScanCode()).toBe(committed);
});
