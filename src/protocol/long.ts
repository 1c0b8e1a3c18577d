/**
 * Long answers of servers, recognised by their two ends: looking at every byte of a megabyte would cost more than
 * carrying it. The inside is taken on trust, and two things make that safe. The bytes are put where a result goes and our
 * id behind them, so that members smuggled in after the result cannot answer another request; and line breaks, which could
 * end our message early, are taken out wherever the message must stay on one line.
 */
import { isUtf8 } from 'node:buffer';
import { emptyMessage, type Message, readMessage } from './message.ts';

/** Below this a strict look at everything is cheap. */
const LONG = 16_384;
/** More than the longest beginning or end that is recognised. */
const ENDS = 96;

const ID_FIRST = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"result":\{/;
const ID_LAST = /\},"jsonrpc":"2\.0","id":(\d{1,15})\}$/;
const RESULT_FIRST = '{"result":{';

/** Reads what a server sent. */
export function readServerMessage(bytes: Buffer): Message {
  return (bytes.length > LONG ? readLongAnswer(bytes) : null) ?? readMessage(bytes);
}

function readLongAnswer(bytes: Buffer): Message | null {
  const { length } = bytes;
  const head = bytes.toString('latin1', 0, ENDS);
  const first = ID_FIRST.exec(head);
  if (first !== null) {
    if (bytes[length - 1] !== 0x7d || bytes[length - 2] !== 0x7d || !isUtf8(bytes)) return null;
    const resultStart = first[0].length - 1;
    const idEnd = resultStart - ',"result":'.length;
    return { ...emptyMessage(bytes), idStart: idEnd - first[1]!.length, idEnd, resultStart, resultEnd: length - 1 };
  }
  if (!head.startsWith(RESULT_FIRST)) return null;
  const last = ID_LAST.exec(bytes.toString('latin1', length - ENDS));
  if (last === null || !isUtf8(bytes)) return null;
  const idEnd = length - 1;
  const resultEnd = length - last[0].length + 1;
  return {
    ...emptyMessage(bytes),
    idStart: idEnd - last[1]!.length,
    idEnd,
    resultStart: RESULT_FIRST.length - 1,
    resultEnd,
  };
}
