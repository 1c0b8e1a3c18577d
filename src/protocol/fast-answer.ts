/**
 * Answers written in one of the two usual ways, `{"jsonrpc":"2.0","id":1,"result":{…}}` and
 * `{"result":{…},"jsonrpc":"2.0","id":1}`. They are as strictly checked as any message, but on the way to a caller nothing
 * has to be known of them beyond the id and the place of the result; everything else goes through `readMessage`.
 */
import { isUtf8 } from 'node:buffer';
import { JsonError, skipValue } from './json.ts';

const ID_HEAD = '{"jsonrpc":"2.0","id":';
const ID_RESULT = ',"result":{';
const RESULT_HEAD = '{"result":{';
const RESULT_ID = ',"jsonrpc":"2.0","id":';
const BRACE = 0x7d;

/** What `readUsualAnswer` found. One object for all answers: each is dealt with before the next is read. */
export const fastAnswer = { id: 0, start: 0, end: 0 };

/** Whether it is such an answer; then `usual` says where. */
export function readFastAnswer(bytes: Buffer): boolean {
  try {
    return isUtf8(bytes) && (readIdFirst(bytes) || readIdLast(bytes));
  } catch (error) {
    if (error instanceof JsonError) return false;
    throw error;
  }
}

function readIdFirst(bytes: Buffer): boolean {
  if (!stands(bytes, 0, ID_HEAD)) return false;
  const idEnd = readId(bytes, ID_HEAD.length);
  if (!stands(bytes, idEnd, ID_RESULT)) return false;
  fastAnswer.start = idEnd + ID_RESULT.length - 1;
  fastAnswer.end = skipValue(bytes, fastAnswer.start, bytes.length);
  return fastAnswer.end === bytes.length - 1 && bytes[fastAnswer.end] === BRACE;
}

function readIdLast(bytes: Buffer): boolean {
  if (!stands(bytes, 0, RESULT_HEAD)) return false;
  fastAnswer.start = RESULT_HEAD.length - 1;
  fastAnswer.end = skipValue(bytes, fastAnswer.start, bytes.length);
  if (!stands(bytes, fastAnswer.end, RESULT_ID)) return false;
  const idEnd = readId(bytes, fastAnswer.end + RESULT_ID.length);
  return idEnd === bytes.length - 1 && bytes[idEnd] === BRACE;
}

function stands(bytes: Buffer, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** Reads a whole number into `usual.id`; returns where it ends, or a place where nothing stands. */
function readId(bytes: Buffer, at: number): number {
  let id = 0;
  let i = at;
  for (let c = bytes[i]!; c >= 0x30 && c <= 0x39; c = bytes[++i]!) id = id * 10 + (c - 0x30);
  fastAnswer.id = id;
  const digits = i - at;
  return digits === 0 || (digits > 1 && bytes[at] === 0x30) ? bytes.length : i;
}
