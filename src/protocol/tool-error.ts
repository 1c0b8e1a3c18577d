/** Whether a tool says by its result that it failed, found without reading the result. */
import { findMember, skipSpace } from './json.ts';
import { join, type Parts } from './parts.ts';

const KEY = Buffer.from('"isError"');
/** Servers write it first or last; further inside of a long result nobody looks for it. */
const LONG = 1_024;
const LOOKED_AT = 384;
const COLON = 0x3a;
const LETTER_T = 0x74;

/** How far the next place is where the key may end, by the byte found where it would end now (Horspool). */
const SKIP = new Uint8Array(256).fill(KEY.length);
for (let i = 0; i < KEY.length - 1; i++) SKIP[KEY[i]!] = KEY.length - 1 - i;

export function saysError(result: Parts): boolean {
  const first = Buffer.isBuffer(result) ? result : result[0]!;
  const last = Buffer.isBuffer(result) ? result : result.at(-1)!;
  const isLong = first !== last || first.length > LONG;
  if (!claims(first, 0, isLong ? Math.min(LOOKED_AT, first.length) : first.length))
    if (!isLong || !claims(last, Math.max(0, last.length - LOOKED_AT), last.length)) return false;
  // It may be said of something inside. Whatever claims it is looked at closely; few do.
  const whole = join(result);
  const member = findMember(whole, 'isError');
  return member !== null && whole[member.start] === LETTER_T;
}

/** In a string the quotes would have backslashes before them, so what is found is a key. */
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
