/**
 * Fits lines into a number of characters. Clients cut long descriptions and instructions in the middle of a line, so
 * Toolgate shortens its own before that, evenly.
 */

/** A line: what has to stay, and a text that may be shortened or dropped. */
export interface FitLine {
  readonly head: string;
  /** May be empty. */
  readonly text: string;
}

export interface FitOptions {
  /** The most characters of all lines together, as JavaScript counts them. */
  readonly room: number;
  /** What is between a head and its text. Default: `: `. */
  readonly joint?: string;
  /** What is between two lines. Default: a line break. */
  readonly separator?: string;
  /** The most characters of one text. Default: no limit. */
  readonly most?: number;
  /** Texts are not cut to fewer characters than this: all of them are dropped instead. Default: 16. */
  readonly shortest?: number;
  /** The last line if lines are left out. It says how many. */
  more(left: number): string;
}

/**
 * The lines in at most `room` characters. If they are too long, the longest texts are cut first, to equal lengths. If
 * that is not enough, only heads are left, then only the first heads and a line that says how many are missing.
 */
export function fitLines(lines: readonly FitLine[], options: FitOptions): string {
  const { room, joint = ': ', separator = '\n', most = Number.POSITIVE_INFINITY, shortest = 16, more } = options;
  const print = (length: number) =>
    lines.map(({ head, text }) => (text === '' ? head : head + joint + cutText(text, length))).join(separator);
  const heads = totalLength(lines, separator);
  const joints = lines.filter(({ text }) => text !== '').length * joint.length;
  const length = evenLength(
    lines.map(({ text }) => Math.min(text.length, most)),
    room - heads - joints,
  );
  if (length >= Math.min(shortest, most)) return print(Math.min(length, most));
  if (heads <= room) return lines.map(({ head }) => head).join(separator);
  for (let count = countFitting(lines, room, separator); count >= 0; count--) {
    const shown = lines.slice(0, count).map(({ head }) => head);
    const text = [...shown, more(lines.length - count)].join(separator);
    if (text.length <= room) return text;
  }
  return '';
}

/** How many of the heads, from the first on, fit into `room` characters. */
export function countFitting(lines: readonly FitLine[], room: number, separator = '\n'): number {
  let used = -separator.length;
  for (const [index, { head }] of lines.entries()) {
    used += separator.length + head.length;
    if (used > room) return index;
  }
  return lines.length;
}

/**
 * The text in at most `length` characters. A cut text ends with `…`, if possible after a whole word, and never with
 * half of a character.
 */
export function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  if (length <= 1) return '…'.slice(0, Math.max(0, length));
  const kept = text.slice(0, length - 1);
  const word = kept.search(/\s+\S*$/);
  const isShortWord = word > 0 && word >= kept.length - LONGEST_WORD && word >= kept.length / 2;
  const whole = isShortWord && !/^\s/.test(text.slice(length - 1)) ? kept.slice(0, word) : kept;
  return `${whole.replace(/[\uD800-\uDBFF]$/, '').replace(/[\s,;:(]+$/, '')}…`;
}

/** A longer last word is cut inside, because dropping it would waste too much room. */
const LONGEST_WORD = 14;

function totalLength(lines: readonly FitLine[], separator: string): number {
  return lines.reduce((sum, { head }) => sum + head.length, Math.max(0, lines.length - 1) * separator.length);
}

/** The greatest length that all texts can be cut to so that they fit; infinite if nothing has to be cut. */
function evenLength(lengths: readonly number[], room: number): number {
  const sorted = lengths.filter((length) => length > 0).sort((a, b) => a - b);
  let left = room;
  for (const [index, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - index));
    if (length > share) return share;
    left -= length;
  }
  return left >= 0 ? Number.POSITIVE_INFINITY : -1;
}
