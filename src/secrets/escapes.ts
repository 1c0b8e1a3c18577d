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
 * Null if the text has no escape that the forms of a secret do not have themselves. With `isBytes`, a character of the
 * text is a byte of UTF-8. Written out, because a regular expression takes five times as long.
 */
export function unescaped(text: string, isBytes: boolean): Unescaped | null {
  if (!text.includes('\\u') && !text.includes('\\/')) return null;
  const parts: string[] = [];
  let length = 0;
  let at = 0;
  /** For each escape: where it begins and ends in the plain text, and in the original. */
  const escapes: number[] = [];
  for (let start = text.indexOf('\\'); start >= 0; start = text.indexOf('\\', at)) {
    const after = afterBackslashes(text, start);
    const next = text.charCodeAt(after);
    let end = after;
    let meaning = '\\';
    if (next === SLASH || next === QUOTE) {
      end++;
      meaning = next === SLASH ? '/' : '"';
    } else if (next === LETTER_U) {
      let code = codeAt(text, after + 1);
      if (code >= 0) {
        end += 5;
        meaning = String.fromCharCode(code);
        // Two halves of a surrogate pair are one escape.
        const more = (code & 0xfc00) === 0xd800 ? afterBackslashes(text, end) : end;
        code = more > end && text.charCodeAt(more) === LETTER_U ? codeAt(text, more + 1) : -1;
        if ((code & 0xfc00) === 0xdc00) {
          end = more + 5;
          meaning += String.fromCharCode(code);
        }
        if (isBytes && meaning > '\x7f') meaning = Buffer.from(meaning).toString('latin1');
      }
    }
    parts.push(text.slice(at, start), meaning);
    length += start - at;
    escapes.push(length, length + meaning.length, start, end);
    length += meaning.length;
    at = end;
  }
  parts.push(text.slice(at));
  return { text: parts.join(''), original: (from, to) => [placeOf(escapes, from, 2), placeOf(escapes, to, 3)] };
}

const BACKSLASH = 0x5c;
const SLASH = 0x2f;
const QUOTE = 0x22;
const LETTER_U = 0x75;

function afterBackslashes(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) === BACKSLASH) at++;
  return at;
}

/** The number that four hexadecimal digits make; -1 if they are not there. */
function codeAt(text: string, at: number): number {
  let code = 0;
  for (let i = at; i < at + 4; i++) {
    const digit = HEX.indexOf(text.charAt(i).toLowerCase());
    if (digit < 0 || i >= text.length) return -1;
    code = code * 16 + digit;
  }
  return code;
}

const HEX = '0123456789abcdef';

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
