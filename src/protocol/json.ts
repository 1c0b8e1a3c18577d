/**
 * JSON as bytes: finds where values begin and end without building them, so that results and arguments pass through
 * untouched (parsing and printing would change 9007199254740993 and 1.0, and costs several times as much).
 *
 * The scanner is strict: what it accepts, JSON.parse accepts.
 */
import { findClosingBracket, hasControl } from './bracket-scan.ts';

/** A range of bytes, end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface JsonMember extends Span {
  /** The decoded key; `start` and `end` are those of the value. */
  readonly key: string;
  readonly keyStart: number;
}

/** Thrown for bytes that are not JSON, or nest too deeply. */
export class JsonError extends Error {
  override readonly name = 'JsonError';
}

export class DepthError extends JsonError {}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LONG_STRING = 512;
/** Deeper than any real message. Stacks and clients have a bound too. */
export const MAX_DEPTH = 10_000;

export function skipSpace(bytes: Buffer, at: number, end: number): number {
  while (at < end) {
    const c = bytes[at]!;
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) break;
    at++;
  }
  return at;
}

/** The end of the string whose opening quote is at `at`. */
export function skipString(bytes: Buffer, at: number, end: number): number {
  if (bytes[at] !== QUOTE) fail(at, 'expected a string');
  let i = at + 1;
  const near = Math.min(end, i + LONG_STRING);
  while (i < near) {
    const c = bytes[i]!;
    if (c === QUOTE) return i + 1;
    if (c === BACKSLASH) i = skipEscape(bytes, i, end);
    else if (c < 0x20) fail(i, 'control character in a string');
    else i++;
  }
  return skipLongString(bytes, i, end);
}

// The rest of a long string, by native search. Every search stops at the next quote. If it went on to the end of the
// bytes, many long strings would take quadratic time.
function skipLongString(bytes: Buffer, at: number, end: number): number {
  let i = at;
  for (;;) {
    const quote = bytes.indexOf(QUOTE, i);
    if (quote < 0 || quote >= end) fail(at, 'string without an end');
    const part = bytes.subarray(i, quote);
    if (hasControl(part)) fail(i, 'control character in a string');
    let slash = part.indexOf(BACKSLASH);
    if (slash < 0) return quote + 1;
    // Escapes come in runs (quoted JSON, Windows paths), which a loop walks faster than a search.
    while (slash >= 0) {
      i = skipEscape(bytes, i + slash, end);
      while (bytes[i] === BACKSLASH) i = skipEscape(bytes, i, end);
      if (i > quote) break;
      slash = bytes.subarray(i, quote).indexOf(BACKSLASH);
    }
    if (i <= quote) return quote + 1;
  }
}

function skipEscape(bytes: Buffer, at: number, end: number): number {
  const c = bytes[at + 1];
  switch (c) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f: // slash
    case 0x62: // b
    case 0x66: // f
    case 0x6e: // n
    case 0x72: // r
    case 0x74: // t
      return at + 2;
    case 0x75: // u
      for (let i = at + 2; i < at + 6; i++) {
        if (i >= end || !isHex(bytes[i]!)) fail(at, 'bad \\u escape');
      }
      return at + 6;
    default:
      return fail(at, 'bad escape');
  }
}

function isHex(c: number): boolean {
  return (c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66);
}

function skipNumber(bytes: Buffer, at: number, end: number): number {
  let i = at;
  if (bytes[i] === 0x2d) i++;
  if (bytes[i] === 0x30) i++;
  else i = skipDigits(bytes, i, end);
  if (i < end && bytes[i] === 0x2e) i = skipDigits(bytes, i + 1, end);
  if (i < end && (bytes[i] === 0x65 || bytes[i] === 0x45)) {
    i++;
    if (bytes[i] === 0x2b || bytes[i] === 0x2d) i++;
    i = skipDigits(bytes, i, end);
  }
  return i;
}

function skipDigits(bytes: Buffer, at: number, end: number): number {
  let i = at;
  while (i < end && bytes[i]! >= 0x30 && bytes[i]! <= 0x39) i++;
  if (i === at) fail(at, 'expected a digit');
  return i;
}

function skipWord(bytes: Buffer, at: number, end: number, word: string): number {
  if (at + word.length > end) fail(at, 'unexpected end');
  for (let i = 0; i < word.length; i++) {
    if (bytes[at + i] !== word.charCodeAt(i)) fail(at, 'expected a value');
  }
  return at + word.length;
}

function fail(at: number, what: string): never {
  throw new JsonError(`${what} at byte ${at}`);
}

/** The end of the value that starts at `at`, without leading space. Not recursive, so depth costs no stack. */
export function skipValue(bytes: Buffer, at: number, end: number, maxDepth = MAX_DEPTH): number {
  const c = bytes[at];
  if (c === QUOTE) return skipString(bytes, at, end);
  if (c !== 0x7b && c !== 0x5b) return skipScalar(bytes, at, end);
  return skipNested(bytes, at, end, maxDepth);
}

function skipScalar(bytes: Buffer, at: number, end: number): number {
  if (at >= end) fail(at, 'unexpected end');
  switch (bytes[at]) {
    case 0x74:
      return skipWord(bytes, at, end, 'true');
    case 0x66:
      return skipWord(bytes, at, end, 'false');
    case 0x6e:
      return skipWord(bytes, at, end, 'null');
    default:
      return skipNumber(bytes, at, end);
  }
}

/** For each level of the value that is being skipped, whether it is an object. Used again: an array for every value would be garbage. */
let open = new Uint8Array(256);

function skipNested(bytes: Buffer, at: number, end: number, maxDepth: number): number {
  let depth = 0;
  let i = at;
  for (;;) {
    // A value begins here.
    const c = bytes[i];
    if (c === 0x7b || c === 0x5b) {
      if (i >= end) fail(i, 'unexpected end');
      if (depth >= maxDepth) throw new DepthError(`nested deeper than ${maxDepth} levels at byte ${i}`);
      const object = c === 0x7b;
      i = skipSpace(bytes, i + 1, end);
      if (i < end && bytes[i] === (object ? 0x7d : 0x5d)) {
        i++;
      } else {
        if (depth === open.length) open = grown(open);
        open[depth++] = object ? 1 : 0;
        if (object) i = skipKey(bytes, i, end);
        continue;
      }
    } else {
      i = c === QUOTE ? skipString(bytes, i, end) : skipScalar(bytes, i, end);
    }
    // A value has ended here. Closes what ends with it, then continues with the next one.
    for (;;) {
      if (depth === 0) return i;
      const object = open[depth - 1] === 1;
      i = skipSpace(bytes, i, end);
      if (i >= end) fail(i, 'unexpected end');
      const d = bytes[i]!;
      if (d === 0x2c) {
        i = skipSpace(bytes, i + 1, end);
        if (object) i = skipKey(bytes, i, end);
        break;
      }
      if (d !== (object ? 0x7d : 0x5d)) fail(i, 'expected a comma or the end');
      depth--;
      i++;
    }
  }
}

function grown(levels: Uint8Array): Uint8Array<ArrayBuffer> {
  const more = new Uint8Array(2 * levels.length);
  more.set(levels);
  return more;
}

// Skips `"key" :`. Returns the start of the value.
function skipKey(bytes: Buffer, at: number, end: number): number {
  let i = skipSpace(bytes, skipString(bytes, at, end), end);
  if (i >= end || bytes[i] !== 0x3a) fail(i, 'expected a colon');
  i = skipSpace(bytes, i + 1, end);
  return i;
}

/** The text of the JSON string from `start` to `end`, quotes included. Never throws, because servers send anything. */
export function decodeString(bytes: Buffer, start: number, end: number): string {
  let plain = start + 1;
  while (plain < end && bytes[plain] !== BACKSLASH) plain++;
  if (plain >= end) return bytes.toString('utf8', start + 1, end - 1);
  try {
    return JSON.parse(bytes.toString('utf8', start, end)) as string;
  } catch {
    // It is part of a long value that was skipped, and contains a control character.
    return bytes.toString('utf8', start + 1, end - 1);
  }
}

/** The members of the object at `at`, in order, duplicates included. Null if it is not an object. Fails if it has more than `most`. */
export function readMembers(
  bytes: Buffer,
  at = 0,
  end = bytes.length,
  maxDepth = MAX_DEPTH,
  most = Number.POSITIVE_INFINITY,
): JsonMember[] | null {
  let i = skipSpace(bytes, at, end);
  if (bytes[i] !== 0x7b) return null;
  const members: JsonMember[] = [];
  i = skipSpace(bytes, i + 1, end);
  if (bytes[i] === 0x7d) return members;
  for (;;) {
    const keyEnd = skipString(bytes, i, end);
    const key = decodeString(bytes, i, keyEnd);
    const start = skipKey(bytes, i, end);
    const stop = skipValue(bytes, start, end, maxDepth);
    members.push({ key, keyStart: i, start, end: stop });
    if (members.length > most) fail(i, `more than ${most} members`);
    i = skipSpace(bytes, stop, end);
    if (i < end && bytes[i] === 0x7d) return members;
    if (i >= end || bytes[i] !== 0x2c) fail(i, 'expected a comma or the end');
    i = skipSpace(bytes, i + 1, end);
  }
}

export function findMember(bytes: Buffer, key: string, at = 0, end = bytes.length): JsonMember | null {
  return readMembers(bytes, at, end)?.find((member) => member.key === key) ?? null;
}

/** More keys than anything but arguments has. Comparing many more would hold up the other callers. */
const MOST_KEYS = 20_000;

/**
 * A key that is twice in one object, at any level of the valid value from `at` to `end`; null if there is none. The value
 * that starts at `except` is not looked at.
 */
export function repeatedKey(bytes: Buffer, at: number, end: number, except = -1): string | null {
  /** The keys of each open object; null for an array. */
  const open: (Set<string> | null)[] = [];
  let count = 0;
  let i = at;
  for (;;) {
    i = skipSpace(bytes, i, end);
    if (i >= end) return null;
    const c = bytes[i]!;
    const keys = open[open.length - 1];
    if (i === except) i = skipValue(bytes, i, end);
    else if (c === 0x7b || c === 0x5b) {
      open.push(c === 0x7b ? new Set() : null);
      i++;
    } else if (c === 0x7d || c === 0x5d) {
      open.pop();
      i++;
    } else if (c === 0x2c || c === 0x3a) i++;
    else if (c !== QUOTE) i = skipScalar(bytes, i, end);
    else {
      const stop = skipString(bytes, i, end);
      if (keys != null && bytes[skipSpace(bytes, stop, end)] === 0x3a) {
        const key = decodeString(bytes, i, stop);
        if (keys.has(key)) return key;
        keys.add(key);
        if (++count > MOST_KEYS) fail(i, `more than ${MOST_KEYS} keys outside of "arguments"`);
      }
      i = stop;
    }
  }
}

/** The elements of the array from `at` to `end`. Null if it is not an array. Fails if it has more than `most`. */
export function readElements(bytes: Buffer, at: number, end: number, most = Number.POSITIVE_INFINITY): Span[] | null {
  let i = skipSpace(bytes, at, end);
  if (bytes[i] !== 0x5b) return null;
  const elements: Span[] = [];
  i = skipSpace(bytes, i + 1, end);
  const empty = i < end && bytes[i] === 0x5d;
  while (!empty) {
    const stop = skipValue(bytes, i, end);
    elements.push({ start: i, end: stop });
    if (elements.length > most) fail(i, `more than ${most} elements`);
    i = skipSpace(bytes, stop, end);
    if (i < end && bytes[i] === 0x5d) break;
    if (i >= end || bytes[i] !== 0x2c) fail(i, 'expected a comma or the end');
    i = skipSpace(bytes, i + 1, end);
  }
  if (skipSpace(bytes, i + 1, end) !== end) fail(i + 1, 'text after the array');
  return elements;
}

/** Values shorter than this are as fast to read as to skip. */
const SHORT_VALUE = 512;

/** The members of the object that `bytes` hold. Long values are skipped, and their contents are not checked. */
export function readLongMembers(bytes: Buffer): JsonMember[] {
  const members: JsonMember[] = [];
  const { length } = bytes;
  let at = skipSpace(bytes, 1, length);
  while (bytes[at] !== CLOSE_BRACE) {
    const keyEnd = skipString(bytes, at, length);
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd, length) + 1, length);
    const end = longValueEnd(bytes, start);
    members.push({ key: decodeString(bytes, at, keyEnd), keyStart: at, start, end });
    const next = skipSpace(bytes, end, length);
    if (bytes[next] === CLOSE_BRACE) break;
    at = skipSpace(bytes, next + 1, length);
  }
  return members;
}

/** The elements of the array at `start`, if all of them are objects. Their contents are not checked. */
export function readLongElements(bytes: Buffer, start: number, end: number): Span[] {
  const elements: Span[] = [];
  let at = skipSpace(bytes, start + 1, end);
  while (bytes[at] === 0x7b) {
    // Looks nearby first, as below.
    const near = findClosingBracket([bytes.subarray(at, Math.min(end, at + 4 * SHORT_VALUE))]);
    const size = near >= 0 ? near : findClosingBracket([bytes.subarray(at, end)]);
    if (size < 0) fail(at, 'object without an end');
    elements.push({ start: at, end: at + size });
    at = skipSpace(bytes, at + size, end);
    if (bytes[at] === 0x2c) at = skipSpace(bytes, at + 1, end);
  }
  if (bytes[at] !== 0x5d) fail(at, 'expected an object');
  return elements;
}

/** The end of the value at `start`. The contents of a long one are not checked. */
export function longValueEnd(bytes: Buffer, start: number): number {
  const isNested = bytes[start] === 0x7b || bytes[start] === 0x5b;
  if (!isNested || bytes.length - start <= SHORT_VALUE) return skipValue(bytes, start, bytes.length);
  // Looks nearby first. The scan copies everything that it is given, which would be slow for many short values.
  const near = findClosingBracket([bytes.subarray(start, start + SHORT_VALUE)]);
  return start + (near >= 0 ? near : findClosingBracket([bytes.subarray(start)]));
}

const CLOSE_BRACE = 0x7d;
const OPEN: Buffer = Buffer.from('{');
export const CLOSE: Buffer = Buffer.from('}');
const COMMA = Buffer.from(',');

/** An object with these members. Each member is given in parts. */
export function writeObject(members: readonly (readonly Buffer[])[]): Buffer {
  return Buffer.concat([OPEN, ...members.flatMap((parts, index) => (index > 0 ? [COMMA, ...parts] : parts)), CLOSE]);
}

/** Whether the bytes have this ASCII text at a position. */
export function isAt(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** The end of the digits that begin at `at`. */
export function digitsEnd(bytes: Buffer, at: number): number {
  let end = at;
  for (let c = bytes[end]!; c >= 0x30 && c <= 0x39; c = bytes[++end]!);
  return end;
}

/** The number that the digits from `start` to `end` stand for. */
export function readDigits(bytes: Buffer, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) value = value * 10 + (bytes[i]! - 0x30);
  return value;
}

/** The same bytes with one span replaced. */
export function splice(bytes: Buffer, span: Span, replacement: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, span.start), replacement, bytes.subarray(span.end)]);
}

/** Valid JSON on one line. Line breaks can only be between tokens, where a space means the same. */
export function oneLine(bytes: Buffer): Buffer {
  if (!bytes.includes(0x0a) && !bytes.includes(0x0d)) return bytes;
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) {
    if (copy[i] === 0x0a || copy[i] === 0x0d) copy[i] = 0x20;
  }
  return copy;
}

/** A value as JSON bytes. */
export function toBytes(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
