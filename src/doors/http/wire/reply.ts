/** Replies that are not streams: headers and body at once. */
import type { ServerResponse } from 'node:http';
import { toBytes } from '../../../protocol/json.ts';
import { type Reply, replyLength, replyText, writeReply } from '../../../protocol/rpc.ts';
import type { Backpressure } from './backpressure.ts';

/** Answers with an error. `headers` belong in the reply. */
export type Fail = (response: ServerResponse, error: unknown, headers: readonly string[]) => void;

/** A page of another site must not embed data, nor a browser take it for something else. */
const AS_DATA = ['x-content-type-options', 'nosniff', 'cross-origin-resource-policy', 'same-origin'] as const;

/** Sends JSON. `backpressure` is for replies that may be large. */
export function sendReply(
  response: ServerResponse,
  status: number,
  reply: Reply,
  headers: readonly string[],
  backpressure: Backpressure | null = null,
): void {
  if (response.headersSent || response.destroyed) return;
  const length = String(replyLength(reply));
  response.writeHead(status, [...headers, ...AS_DATA, 'content-type', 'application/json', 'content-length', length]);
  const text = replyText(reply);
  // Node sends headers and a string body in one write.
  if (text !== null) {
    response.end(text, 'latin1');
    return;
  }
  writeReply(response, reply);
  response.end();
  backpressure?.written(response);
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
