/**
 * The reply to one POST: plain JSON when the answer is all there is, an event stream from the moment something comes
 * before it. The choice is made late, because plain JSON is the cheaper and by far the commoner case.
 */
import type { ServerResponse } from 'node:http';
import { SSE_KEEPALIVE, sseEvent } from '../../protocol/sse.ts';
import type { Exchange } from '../peer.ts';

/** Idle replies are turned into streams and kept warm, before clients and proxies lose patience. */
const KEEPALIVE = 15_000;

const open = new Set<HttpExchange>();

setInterval(() => {
  const old = Date.now() - KEEPALIVE;
  for (const exchange of open) if (exchange.since < old) exchange.keepAlive();
}, KEEPALIVE).unref();

export class HttpExchange implements Exchange {
  readonly since = Date.now();
  readonly #response: ServerResponse;
  readonly #headers: readonly string[];
  #streaming = false;
  #expected: number;

  /** `expected` is the number of answers: more than one for a batch, which is always a stream. */
  constructor(response: ServerResponse, headers: readonly string[], expected = 1) {
    this.#response = response;
    this.#headers = headers;
    this.#expected = expected;
    if (expected > 1) this.#stream();
    open.add(this);
  }

  send(message: Buffer): void {
    this.#stream();
    this.#response.write(sseEvent(message));
  }

  finish(message: Buffer): void {
    this.#expected--;
    if (this.#expected > 0) {
      this.send(message);
      return;
    }
    open.delete(this);
    if (this.#streaming) {
      this.#response.end(sseEvent(message));
      return;
    }
    sendJson(this.#response, 200, message, this.#headers);
  }

  abandon(): void {
    this.#expected--;
    if (this.#expected > 0) return;
    open.delete(this);
    this.#stream();
    this.#response.end();
  }

  keepAlive(): void {
    this.#stream();
    this.#response.write(SSE_KEEPALIVE);
  }

  #stream(): void {
    if (this.#streaming) return;
    this.#streaming = true;
    startStream(this.#response, this.#headers);
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

export function sendJson(
  response: ServerResponse,
  status: number,
  body: Buffer,
  headers: readonly string[] = [],
): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, [...headers, 'content-type', 'application/json', 'content-length', String(body.length)]);
  // A small body goes out in one write with the headers when it is a string; latin1 carries bytes as they are.
  if (body.length < SMALL) response.end(body.toString('latin1'), 'latin1');
  else response.end(body);
}

const SMALL = 16_384;
