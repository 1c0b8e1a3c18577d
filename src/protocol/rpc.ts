/** JSON-RPC messages put together from bytes. */
import type { GatewayError } from '../errors.ts';
import { oneLine, toBytes } from './json.ts';

/**
 * A response in three parts, so that a large body is never copied: text, bytes, text. The texts hold one character a byte
 * and are written as latin1, because ids go back as the bytes they came in. The id stands last: see long.ts.
 */
export interface Reply {
  readonly head: string;
  readonly body: Buffer;
  readonly tail: string;
}

export function resultReply(id: string, result: Buffer): Reply {
  return { head: '{"jsonrpc":"2.0","result":', body: result, tail: `,"id":${id}}` };
}

/** An upstream's error object, relayed as it came, or one of our own. */
export function errorReply(id: string, error: Buffer): Reply {
  return { head: '{"jsonrpc":"2.0","error":', body: error, tail: `,"id":${id}}` };
}

export function replyLength({ head, body, tail }: Reply): number {
  return head.length + body.length + tail.length;
}

/** A short reply as one latin1 text. */
export function replyText({ head, body, tail }: Reply): string {
  return head + body.toString('latin1') + tail;
}

/** A body up to this length is cheaper joined into one text than written apart. */
export const SHORT_REPLY = 16_384;

export function requestMessage(id: number, method: string, params: Buffer | null): Buffer {
  const head = `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}`;
  return params === null ? Buffer.from(`${head}}`) : wrap(`${head},"params":`, params);
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
  return toBytes({ code: error.rpcCode, message: error.message, data: error.body });
}

/**
 * The `tools/call` result of an error of Toolgate's own: the model reads it, so it is a result and not a protocol error.
 * The object travels as text, because clients check `structuredContent` against the tool's own output schema, errors too.
 */
export function errorResult(error: GatewayError): Buffer {
  return toBytes({ content: [{ type: 'text', text: JSON.stringify(error.body) }], isError: true });
}

/** A short text as a `tools/call` result. */
export function textResult(text: string): Buffer {
  return toBytes({ content: [{ type: 'text', text }] });
}
