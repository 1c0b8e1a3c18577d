/**
 * Long answers of servers, recognised by their two ends: looking at every byte of a megabyte would cost more than
 * carrying it. The inside is taken on trust, and two things make that safe. The bytes are put where a result goes and our
 * id behind them, so that members smuggled in after the result cannot answer another request; and line breaks, which could
 * end our message early, are taken out wherever the message must stay on one line.
 */

/** Below this a strict look at everything is cheap. */
export const LONG = 16_384;
/** More than the longest beginning or end that is recognised. */
const ENDS = 96;

const ID_FIRST = /^\{"jsonrpc":"2\.0","id":(\d{1,15}),"result":\{/;
const ID_LAST = /\},"jsonrpc":"2\.0","id":(\d{1,15})\}$/;
const RESULT_FIRST = '{"result":{';

export interface LongAnswer {
  readonly id: number;
  readonly result: readonly Buffer[];
}

/** The answer in a message that came in these parts; null where it is not plain to see. */
export function readLongAnswer(parts: readonly Buffer[]): LongAnswer | null {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (first.length < ENDS || last.length < ENDS) return null;
  const head = first.toString('latin1', 0, ENDS);
  const idFirst = ID_FIRST.exec(head);
  if (idFirst !== null) {
    if (last[last.length - 1] !== 0x7d || last[last.length - 2] !== 0x7d) return null;
    return { id: Number(idFirst[1]), result: cut(parts, idFirst[0].length - 1, 1) };
  }
  if (!head.startsWith(RESULT_FIRST)) return null;
  const idLast = ID_LAST.exec(last.toString('latin1', last.length - ENDS));
  if (idLast === null) return null;
  return { id: Number(idLast[1]), result: cut(parts, RESULT_FIRST.length - 1, idLast[0].length - 1) };
}

/** The same parts without so many bytes at the start and at the end. */
function cut(parts: readonly Buffer[], fromStart: number, fromEnd: number): Buffer[] {
  return parts.map((part, i) => {
    const start = i === 0 ? fromStart : 0;
    const end = i === parts.length - 1 ? part.length - fromEnd : part.length;
    return part.subarray(start, end);
  });
}
