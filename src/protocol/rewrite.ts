/** A caller's request as an upstream gets it: another id, the upstream's own name, our progress token; every other byte as it came. */
import { oneLine } from './json.ts';
import type { Message } from './message.ts';

/** A message on its way out. A text has one character a byte (latin1): for short messages that is the cheaper form. */
export type Wire = string | Buffer;

const SHORT = 16_384;

/** Where the name or URI stands in the caller's message, and the JSON string to put there. */
export interface Target {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

export function rewriteRequest(message: Message, target: Target, id: number): Wire {
  const { bytes, paramsStart, paramsEnd, tokenStart, tokenEnd } = message;
  const head = `{"jsonrpc":"2.0","id":${id},"method":"${message.method}","params":`;
  const tokenFirst = tokenStart >= 0 && tokenStart < target.start;
  const tokenLast = tokenStart >= 0 && !tokenFirst;
  const before = tokenFirst
    ? `${head}${bytes.toString('latin1', paramsStart, tokenStart)}${id}${bytes.toString('latin1', tokenEnd, target.start)}`
    : head + bytes.toString('latin1', paramsStart, target.start);
  const middle = tokenLast ? `${bytes.toString('latin1', target.end, tokenStart)}${id}` : '';
  const rest = tokenLast ? tokenEnd : target.end;
  if (paramsEnd - rest < SHORT) {
    const text = `${before}${target.name}${middle}${bytes.toString('latin1', rest, paramsEnd)}}`;
    // Line breaks can only stand between tokens, where a space means the same.
    return text.includes('\n') || text.includes('\r') ? text.replace(/[\n\r]/g, ' ') : text;
  }
  const start = Buffer.from(before + target.name + middle, 'latin1');
  return oneLine(Buffer.concat([start, bytes.subarray(rest, paramsEnd), CLOSE]));
}

const CLOSE = Buffer.from('}');

export function wireBytes(wire: Wire): Buffer {
  return typeof wire === 'string' ? Buffer.from(wire, 'latin1') : wire;
}
