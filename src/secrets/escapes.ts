/**
 * Text with the escapes of JSON undone, so that a value is found however a program spells it: PHP writes `\/`, .NET
 * `\u002B` and `\u00E4`, Gson `\u003d`. JSON in JSON doubles the backslashes, so any number of them counts.
 */

export interface Unescaped {
  readonly text: string;
  /** The range of the original text that became this range. An escape is never cut in two. */
  original(start: number, end: number): readonly [start: number, end: number];
}

/**
 * Two halves of a surrogate pair are one escape. Begins at the first backslash of a run, because a search from each of
 * them would take quadratic time.
 */
const ESCAPE = /(?<!\\)\\+(?:ud[89ab][0-9a-f]{2}\\+ud[c-f][0-9a-f]{2}|u[0-9a-f]{4}|[/"])?/gi;

/**
 * Null if the text has no escape that the forms of a secret do not have themselves. With `isBytes`, a character of the
 * text is a byte of UTF-8.
 */
export function unescaped(text: string, isBytes: boolean): Unescaped | null {
  if (!text.includes('\\u') && !text.includes('\\/')) return null;
  let plain = '';
  let at = 0;
  /** For each escape: where it begins and ends in the plain text, and in the original. */
  const escapes: number[] = [];
  for (const { 0: found, index } of text.matchAll(ESCAPE)) {
    plain += text.slice(at, index);
    at = index + found.length;
    const start = plain.length;
    plain += meaningOf(found, isBytes);
    escapes.push(start, plain.length, index, at);
  }
  plain += text.slice(at);
  return { text: plain, original: (start, end) => [placeOf(escapes, start, 2), placeOf(escapes, end, 3)] };
}

function meaningOf(found: string, isBytes: boolean): string {
  const last = found.at(-1)!;
  if (last === '/' || last === '"' || last === '\\') return last;
  const codes = found.match(/[0-9a-f]{4}/gi)!.map((code) => Number.parseInt(code, 16));
  const characters = String.fromCharCode(...codes);
  return isBytes ? Buffer.from(characters).toString('latin1') : characters;
}

/** Where a position of the plain text is in the original; inside of an escape, that side of it. */
function placeOf(escapes: readonly number[], position: number, side: 2 | 3): number {
  let low = 0;
  let high = escapes.length / 4;
  // The escapes that begin before the position.
  while (low < high) {
    const middle = (low + high) >> 1;
    if (escapes[middle * 4]! < position) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return position;
  const at = (low - 1) * 4;
  const end = escapes[at + 1]!;
  return position < end ? escapes[at + side]! : escapes[at + 3]! + position - end;
}
