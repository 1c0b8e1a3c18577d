/** Builds JSON-RPC messages from bytes. */
import type { Writable } from 'node:stream';
import type { GatewayError } from '../base/errors.ts';
import { oneLine, toBytes } from './json.ts';
import { type Parts, sizeOf } from './parts.ts';

/**
 * A response in three parts, text, bytes and text, so that a large body is never copied. The texts have one character
 * per byte and are written as latin1, because an id goes back as the bytes it came in.
 */
export interface Reply {
  readonly head: string;
  readonly body: Parts;
  readonly tail: string;
}

export function resultReply(id: string, result: Parts): Reply {
  return { head: '{"jsonrpc":"2.0","result":', body: result, tail: `,"id":${id}}` };
}

/** `error` is the server's own error object, or one of ours. A null id is left out. */
export function errorReply(id: string | null, error: Buffer): Reply {
  return { head: '{"jsonrpc":"2.0","error":', body: error, tail: id === null ? '}' : `,"id":${id}}` };
}

export function replyLength({ head, body, tail }: Reply): number {
  return head.length + sizeOf(body) + tail.length;
}

/** A shorter body is cheaper to write as one text. */
const SHORT = 16_384;

/** Writes a reply: a short one as one latin1 text, a long one in its parts. */
export function writeReply(out: Writable, { head, body, tail }: Reply): void {
  const text = replyText({ head, body, tail });
  if (text !== null) {
    out.write(text, 'latin1');
    return;
  }
  // One system call for all parts, if the other side accepts that much.
  out.cork();
  out.write(head, 'latin1');
  for (const part of Buffer.isBuffer(body) ? [body] : body) out.write(part);
  out.write(tail, 'latin1');
  out.uncork();
}

/** A short reply as one latin1 text; null for a long one. */
export function replyText({ head, body, tail }: Reply): string | null {
  return Buffer.isBuffer(body) && body.length < SHORT ? head + body.toString('latin1') + tail : null;
}

export function requestMessage(id: number | string, method: string, params: Buffer): Buffer {
  return wrap(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)},"params":`, params);
}

export function notificationMessage(method: string, params?: Buffer): Buffer {
  const head = `{"jsonrpc":"2.0","method":${JSON.stringify(method)}`;
  return params === undefined ? Buffer.from(`${head}}`) : wrap(`${head},"params":`, params);
}

function wrap(head: string, body: Buffer): Buffer {
  const line = oneLine(body);
  const headLength = Buffer.byteLength(head);
  const out = Buffer.allocUnsafe(headLength + line.length + 1);
  out.write(head, 0);
  line.copy(out, headLength);
  out[out.length - 1] = 0x7d;
  return out;
}

/** The error object of an error of Toolgate's own. */
export function errorObject(error: GatewayError): Buffer {
  return toBytes({ code: error.rpcCode, message: error.message, data: { ...error.body, ...error.details } });
}

/**
 * The `tools/call` result for an error of Toolgate's own. It is a result, not a protocol error, so that the model reads
 * it. It is text, because clients check `structuredContent` against the tool's output schema, even for errors.
 */
export function errorResult(error: GatewayError): Buffer {
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(error.body) }], isError: true });
}

/** A short text as a `tools/call` result. */
export function textResult(text: string): Buffer {
  return toBytes({ content: [{ type: 'text', text }] });
}
