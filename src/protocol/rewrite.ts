/** A caller's request as an upstream gets it: another id, the upstream's own name, our progress token; every other byte as it came. */
import { oneLine } from './json.ts';
import type { Message } from './message.ts';

export interface Target {
  /** Where the name or URI stands in the caller's message. */
  readonly start: number;
  readonly end: number;
  /** What to put there, as a JSON string. */
  readonly name: Buffer;
}

export function rewriteRequest(message: Message, target: Target, id: number): Buffer {
  const { bytes, paramsStart, paramsEnd, tokenStart, tokenEnd } = message;
  const head = `{"jsonrpc":"2.0","id":${id},"method":"${message.method}","params":`;
  const token = tokenStart < 0 ? '' : String(id);
  const size =
    head.length +
    (paramsEnd - paramsStart) +
    (target.name.length - (target.end - target.start)) +
    (token.length - (tokenEnd - tokenStart)) +
    1;
  const out = Buffer.allocUnsafe(size);
  let at = out.write(head, 0, 'latin1');
  let from = paramsStart;
  const putName = () => {
    at += bytes.copy(out, at, from, target.start);
    at += target.name.copy(out, at);
    from = target.end;
  };
  const tokenFirst = tokenStart >= 0 && tokenStart < target.start;
  if (!tokenFirst) putName();
  if (tokenStart >= 0) {
    at += bytes.copy(out, at, from, tokenStart);
    at += out.write(token, at, 'latin1');
    from = tokenEnd;
  }
  if (tokenFirst) putName();
  at += bytes.copy(out, at, from, paramsEnd);
  out[at] = 0x7d;
  return oneLine(out);
}
