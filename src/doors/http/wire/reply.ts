/** Replies that are not streams: headers and body at once. */
import type { ServerResponse } from 'node:http';
import type { ResultStream } from '../../../protocol/contract.ts';
import { toBytes } from '../../../protocol/json.ts';
import { type Reply, replyLength, replyText, writeReply } from '../../../protocol/rpc.ts';
import type { Backpressure } from './backpressure.ts';
import { LightResponse } from './light-messages.ts';

/** Answers with an error. `headers` belong in the reply. */
export type Fail = (response: ServerResponse, error: unknown, headers: readonly string[]) => void;

/** A page of another site must not embed data, nor a browser take it for something else. */
const AS_DATA = ['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'] as const;

/** The same with the type, as lines. */
const JSON_HEADERS = [...AS_DATA, 'content-type', 'application/json']
  .map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`))
  .join('');

/** Sends JSON. `backpressure` is for replies that may be large. */
export function sendReply(
  response: ServerResponse,
  status: number,
  reply: Reply,
  headers: readonly string[],
  backpressure: Backpressure | null = null,
): void {
  if (response.headersSent || response.destroyed) return;
  const text = replyText(reply);
  const isUsual = status === 200 && headers.length === 0 && text !== null && response instanceof LightResponse;
  if (isUsual && response.sendShort(JSON_HEADERS, text)) return;
  const length = String(replyLength(reply));
  response.writeHead(status, [...headers, ...AS_DATA, 'content-type', 'application/json', 'content-length', length]);
  // Node sends headers and a string body in one write.
  if (text !== null) {
    response.end(text, 'latin1');
    return;
  }
  writeReply(response, reply);
  response.end();
  backpressure?.written(response);
}

/** Bytes of a result that are written together, and milliseconds that they wait for more. Most of the cost is the number of writes. */
const BATCH = 256 * 1024;
const SOON = 3;

/**
 * Sends the beginning of a reply whose result is still coming, the client's id first. `length` is known if no more bytes than
 * these will come: then the reply has a length too, and spaces fill what is left of it, which JSON allows after a value.
 */
export function startReply(
  response: ServerResponse,
  id: string,
  length: number,
  headers: readonly string[],
  backpressure: Backpressure,
): ResultStream {
  const head = `{"jsonrpc":"2.0","id":${id},"result":`;
  const framing = length < 0 ? [] : ['content-length', String(head.length + length)];
  response.writeHead(200, [...headers, ...AS_DATA, 'content-type', 'application/json', ...framing]);
  let left = length;
  let parts: (Buffer | string)[] = [head];
  let size = 0;
  let timer: NodeJS.Timeout | null = null;
  const flush = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (parts.length === 0 || response.destroyed) return;
    // One system call for all parts.
    response.cork();
    for (const part of parts) response.write(part, 'latin1');
    response.uncork();
    parts = [];
    size = 0;
    backpressure.written(response);
  };
  return {
    write(part) {
      if (response.destroyed) return;
      left -= part.length;
      size += part.length;
      parts.push(part);
      if (size >= BATCH) flush();
      else timer ??= setTimeout(flush, SOON);
    },
    end() {
      parts.push(length < 0 ? '}' : '}'.padEnd(left));
      flush();
      response.end();
    },
  };
}

export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: readonly string[] = [],
): void {
  sendReply(response, status, { head: '', body: toBytes(value), tail: '' }, headers);
}

/** Sends a reply of any other content type. */
export function sendText(
  response: ServerResponse,
  status: number,
  type: string,
  text: string | Buffer,
  headers: readonly string[],
): void {
  if (response.headersSent || response.destroyed) return;
  const length = String(Buffer.byteLength(text));
  const data = headers.includes('x-content-type-options') ? [] : AS_DATA;
  response.writeHead(status, [...headers, ...data, 'content-type', type, 'content-length', length]).end(text);
}
