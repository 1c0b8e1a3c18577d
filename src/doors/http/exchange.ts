/**
 * The reply to one POST: plain JSON when the answer is all there is, an event stream from the moment something comes
 * before it. The choice is made late, because plain JSON is the cheaper and by far the commoner case.
 */
import type { ServerResponse } from 'node:http';
import { toBytes } from '../../protocol/json.ts';
import { partsOnOneLine } from '../../protocol/parts.ts';
import { type Reply, replyLength, replyText, writeReply } from '../../protocol/rpc.ts';
import { SSE_DATA, SSE_END, SSE_KEEPALIVE, sseEvent } from '../../protocol/sse.ts';
import type { Exchange } from '../answer.ts';

export class HttpExchange implements Exchange {
  // Plain fields: this object is made for every call, and private ones cost time.
  readonly response: ServerResponse;
  readonly headers: readonly string[];
  streaming = false;
  expected: number;
  /** Whether it was under way at the last tick already. */
  waited = false;

  /** `expected` is the number of answers: more than one for a batch, which is always a stream. */
  constructor(response: ServerResponse, headers: readonly string[], expected = 1) {
    this.response = response;
    this.headers = headers;
    this.expected = expected;
    if (expected > 1) this.startStreaming();
  }

  send(message: Buffer): void {
    this.startStreaming();
    this.response.write(sseEvent(message));
  }

  finish(reply: Reply, status = 200): void {
    this.expected--;
    if (this.streaming) {
      writeReply(this.response, {
        head: SSE_DATA + reply.head,
        body: partsOnOneLine(reply.body),
        tail: reply.tail + SSE_END,
      });
      if (this.expected === 0) this.response.end();
      return;
    }
    sendReply(this.response, status, reply, this.headers);
  }

  abandon(): void {
    this.expected--;
    if (this.expected > 0) return;
    this.startStreaming();
    this.response.end();
  }

  /** A reply that takes long becomes a stream and is kept warm, before clients and proxies lose patience. */
  keepAlive(): void {
    if (this.waited) {
      this.startStreaming();
      this.response.write(SSE_KEEPALIVE);
    }
    this.waited = true;
  }

  startStreaming(): void {
    if (this.streaming) return;
    this.streaming = true;
    startStream(this.response, this.headers);
  }
}

export function startStream(response: ServerResponse, headers: readonly string[]): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(200, [
    ...headers,
    'content-type',
    'text/event-stream',
    'cache-control',
    'no-cache, no-transform',
    'x-accel-buffering',
    'no',
  ]);
  response.flushHeaders();
}

/** A reply in plain JSON, whole. */
export function sendReply(response: ServerResponse, status: number, reply: Reply, headers: readonly string[]): void {
  if (response.headersSent || response.destroyed) return;
  const length = String(replyLength(reply));
  response.writeHead(status, [...headers, 'content-type', 'application/json', 'content-length', length]);
  const text = replyText(reply);
  // node joins the headers and a text into one write.
  if (text !== null) {
    response.end(text, 'latin1');
    return;
  }
  writeReply(response, reply);
  response.end();
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendReply(response, status, { head: '', body: toBytes(value), tail: '' }, []);
}
