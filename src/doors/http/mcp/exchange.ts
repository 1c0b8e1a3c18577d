/**
 * The reply to one POST: plain JSON when the answer is all there is, an event stream from the moment something comes
 * before it. The choice is made late, because plain JSON is the cheaper and by far the commoner case.
 */
import type { ServerResponse } from 'node:http';
import { toBytes } from '../../../protocol/json.ts';
import { type Reply, replyLength, replyText, writeReply } from '../../../protocol/rpc.ts';
import type { Exchange } from '../../answer.ts';
import type { Credential } from '../../credential.ts';
import type { Backpressure } from './backpressure.ts';
import { EventStream, type StreamLog, startStream } from './stream.ts';

export class HttpExchange implements Exchange {
  // Plain fields: this object is made for every call, and private ones cost time.
  readonly response: ServerResponse;
  readonly headers: readonly string[];
  readonly unread: Backpressure;
  /** Where its stream is kept for a client that comes back; null where clients cannot. */
  readonly log: StreamLog | null;
  /** What its request was let in by, where no session knows that. */
  readonly pass: Credential | null;
  stream: EventStream | null = null;
  expected: number;
  /** Whether it was under way at the last tick already. */
  waited = false;

  /** `expected` is the number of answers: more than one for a batch, which is always a stream. */
  constructor(
    response: ServerResponse,
    headers: readonly string[],
    unread: Backpressure,
    log: StreamLog | null,
    pass: Credential | null = null,
    expected = 1,
  ) {
    this.response = response;
    this.headers = headers;
    this.unread = unread;
    this.log = log;
    this.pass = pass;
    this.expected = expected;
    if (expected > 1) this.startStreaming();
  }

  get isGone(): boolean {
    return this.stream === null ? this.response.destroyed : !this.stream.isOpen;
  }

  send(message: Buffer): void {
    this.startStreaming().send(message);
  }

  finish(reply: Reply, status = 200): void {
    this.expected--;
    if (this.stream === null) sendReply(this.response, status, reply, this.headers, this.unread);
    else if (this.expected === 0) this.stream.finish(reply);
    else this.stream.answer(reply);
  }

  abandon(): void {
    this.expected--;
    if (this.expected > 0) return;
    if (this.stream !== null) this.stream.end();
    else {
      startStream(this.response, this.headers);
      this.response.end();
    }
  }

  /** A reply that takes long becomes a stream and is kept warm, before clients and proxies lose patience. */
  keepAlive(): void {
    if (this.waited) this.startStreaming().keepAlive();
    this.waited = true;
  }

  get isFull(): boolean {
    return this.stream?.isFull === true;
  }

  whenDrained(goOn: () => void): void {
    if (this.stream === null) goOn();
    else this.stream.whenDrained(goOn);
  }

  startStreaming(): EventStream {
    if (this.stream === null) {
      const { response, headers, unread, log } = this;
      if (log !== null) this.stream = log.open(response, headers, 'answer');
      else {
        this.stream = new EventStream(unread, 'answer', null);
        this.stream.attach(response, headers);
      }
    }
    return this.stream;
  }
}

/** A reply in plain JSON, whole. */
export function sendReply(
  response: ServerResponse,
  status: number,
  reply: Reply,
  headers: readonly string[],
  unread: Backpressure | null = null,
): void {
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
  unread?.written(response);
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendReply(response, status, { head: '', body: toBytes(value), tail: '' }, []);
}
