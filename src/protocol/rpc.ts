/** JSON-RPC messages put together from bytes. */
import type { GatewayError } from '../errors.ts';
import { oneLine, toBytes } from './json.ts';

/** `{"jsonrpc":"2.0","id":ID,"result":RESULT}` with the id and the result exactly as given. */
export function resultMessage(id: string, result: Buffer): Buffer {
  return wrap(`{"jsonrpc":"2.0","id":${id},"result":`, result);
}

/** An upstream's error object, relayed as it came. */
export function errorMessage(id: string, error: Buffer): Buffer {
  return wrap(`{"jsonrpc":"2.0","id":${id},"error":`, error);
}

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
