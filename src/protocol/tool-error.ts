/**
 * Whether a tool's result says that the tool failed, without reading the whole result.
 *
 * Measured on a result of 150 bytes: 65 ns, against 210 ns for one `Buffer.includes`.
 */
import { findMember, skipSpace } from './json.ts';
import { join, type Parts } from './parts.ts';

const KEY = Buffer.from('"isError"');
/** Servers write `isError` first or last. In a long result only the two ends are searched. */
const LONG = 1_024;
const SEARCHED = 384;
const COLON = 0x3a;
const LETTER_T = 0x74;

/** How far to skip to the next position where the key could end, by the byte at the current one (Horspool). */
const SKIP = new Uint8Array(256).fill(KEY.length);
for (let i = 0; i < KEY.length - 1; i++) SKIP[KEY[i]!] = KEY.length - 1 - i;

export function saysError(result: Parts): boolean {
  const first = Buffer.isBuffer(result) ? result : result[0]!;
  const last = Buffer.isBuffer(result) ? result : result.at(-1)!;
  const isLong = first !== last || first.length > LONG;
  if (!claims(first, 0, isLong ? Math.min(SEARCHED, first.length) : first.length))
    if (!isLong || !claims(last, Math.max(0, last.length - SEARCHED), last.length)) return false;
  // The key may belong to a nested object. A hit is rare, so the result is then read.
  const bytes = join(result);
  const member = findMember(bytes, 'isError');
  return member !== null && bytes[member.start] === LETTER_T;
}

/** Whether the bytes have the key with the value true. It is a real key: inside a string, quotes are escaped. */
function claims(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + KEY.length - 1; at < end; at += SKIP[bytes[at]!]!) {
    if (!endsKey(bytes, at)) continue;
    const colon = skipSpace(bytes, at + 1, end);
    if (bytes[colon] === COLON && bytes[skipSpace(bytes, colon + 1, end)] === LETTER_T) return true;
  }
  return false;
}

function endsKey(bytes: Buffer, end: number): boolean {
  for (let i = KEY.length - 1; i >= 0; i--) if (bytes[end - KEY.length + 1 + i] !== KEY[i]) return false;
  return true;
}
