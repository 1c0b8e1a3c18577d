/**
 * Event streams. In a session a stream outlives its connection: every event has an id, and the last events are kept for
 * a while. A client that reconnects with the id of the last event it saw gets the events after it.
 */
import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { Queue } from '../../../base/queue.ts';
import { oneLine } from '../../../protocol/json.ts';
import { partsOnOneLine } from '../../../protocol/parts.ts';
import { type Reply, replyLength, replyText, writeReply } from '../../../protocol/rpc.ts';
import { SSE_DATA, SSE_END, SSE_KEEPALIVE } from '../../../protocol/sse.ts';
import { SLOW } from '../../answer.ts';
import type { Backpressure } from '../wire/backpressure.ts';

/** Milliseconds that events are kept. */
const KEEP_FOR = 5 * 60_000;

/** A stream that answers a request ends with the answer. A standing one is for notifications. */
export type StreamKind = 'answer' | 'standing';
const LETTERS: Readonly<Record<StreamKind, string>> = { answer: 'a', standing: 's' };

export class EventStream {
  /** Null while the client is disconnected. */
  response: ServerResponse | null = null;
  readonly backpressure: Backpressure;
  /** The prefix of its event ids; null if clients cannot reconnect. */
  readonly name: string | null;
  readonly kind: StreamKind;
  readonly log: StreamLog | null;
  /** The number of events sent. */
  count = 0;
  /** The number of events kept. */
  kept = 0;
  isOver = false;

  constructor(backpressure: Backpressure, kind: StreamKind, log: StreamLog | null) {
    this.backpressure = backpressure;
    this.kind = kind;
    this.log = log;
    this.name = log === null ? null : `${LETTERS[kind]}${++log.last}`;
  }

  get isOpen(): boolean {
    return this.response !== null;
  }

  /** Whether the client reads more slowly than we write. */
  get isFull(): boolean {
    return this.response !== null && this.response.writableLength > SLOW;
  }

  whenDrained(proceed: () => void): void {
    const { response } = this;
    if (response === null) proceed();
    else whenDrained(response, proceed);
  }

  /** Sends events to this connection from now on. The previous one ends. */
  attach(response: ServerResponse, headers: readonly string[]): void {
    const before = this.response;
    this.response = response.destroyed ? null : response;
    before?.end();
    if (!response.destroyed) this.backpressure.opened(response);
    startStream(response, headers);
    response.on('close', () => {
      if (this.response === response) this.response = null;
    });
  }

  /** Sends an event without a message, so that a client can reconnect even if it has seen no other event. */
  prime(): void {
    if (this.name !== null) this.response?.write(`id: ${this.name}-0\ndata: \n\n`);
  }

  send(message: Buffer): void {
    this.write({ head: '', body: oneLine(message), tail: '' });
  }

  answer(reply: Reply): void {
    this.write({ head: reply.head, body: partsOnOneLine(reply.body), tail: reply.tail });
  }

  /** Sends the last event. */
  finish(reply: Reply): void {
    this.answer(reply);
    this.end();
  }

  end(): void {
    this.isOver = true;
    this.response?.end();
  }

  /** Ends the connection, but not the stream. */
  detach(): void {
    this.response?.end();
    this.response = null;
  }

  keepAlive(): void {
    this.response?.write(SSE_KEEPALIVE);
  }

  write({ head, body, tail }: Reply): void {
    const id = this.name === null ? '' : `id: ${this.name}-${++this.count}\n`;
    const event = { head: id + SSE_DATA + head, body, tail: tail + SSE_END };
    this.log?.keep(this, this.count, event);
    const { response } = this;
    if (response === null) return;
    if (this.backpressure.isTooMuch(response)) this.response = null;
    else {
      writeReply(response, event);
      this.backpressure.written(response);
    }
  }
}

interface KeptEvent {
  readonly stream: EventStream;
  readonly number: number;
  /**
   * Short events are kept as text: their bytes are a slice of a larger buffer, which would stay in memory with them.
   */
  readonly event: string | Reply;
  readonly size: number;
  readonly at: number;
}

/** The bytes that all sessions of a door keep together. */
export interface Budget {
  used: number;
}

/** This many sessions can each keep as much as `limits.replay` allows. With more sessions, each keeps less. */
const FULL_SESSIONS = 64;

/** The streams of one session, and the events kept for them. */
export class StreamLog {
  readonly backpressure: Backpressure;
  readonly limit: () => number;
  readonly budget: Budget;
  /** Whether the client understands an event without a message. */
  primes = false;
  /** The streams that a client can reconnect to. */
  streams: EventStream[] = [];
  readonly kept = new Queue<KeptEvent>();
  size = 0;
  /** The number of the last stream. */
  last = 0;

  constructor(backpressure: Backpressure, limit: () => number, budget: Budget) {
    this.backpressure = backpressure;
    this.limit = limit;
    this.budget = budget;
  }

  open(response: ServerResponse, headers: readonly string[], kind: StreamKind): EventStream {
    const stream = new EventStream(this.backpressure, kind, this);
    this.streams.push(stream);
    stream.attach(response, headers);
    if (this.primes) stream.prime();
    return stream;
  }

  keep(stream: EventStream, number: number, event: Reply): void {
    const size = replyLength(event);
    this.kept.push({ stream, number, event: replyText(event) ?? event, size, at: Date.now() });
    stream.kept++;
    this.size += size;
    this.budget.used += size;
    const limit = this.limit();
    while (this.kept.length > 0 && (this.size > limit || this.budget.used > limit * FULL_SESSIONS)) this.drop();
  }

  /** Forgets events that are too old, and streams that are over. */
  sweep(now: number): void {
    while (this.kept.length > 0 && now - this.kept.first!.at > KEEP_FOR) this.drop();
    this.streams = this.streams.filter((stream) => !this.isDone(stream));
  }

  isDone(stream: EventStream): boolean {
    const isOver = stream.isOver || (!stream.isOpen && stream.kind === 'standing');
    return isOver && stream.kept === 0;
  }

  drop(): void {
    const { stream, size } = this.kept.shift()!;
    stream.kept--;
    this.size -= size;
    this.budget.used -= size;
  }

  close(): void {
    this.budget.used -= this.size;
    for (const stream of this.streams) stream.end();
    this.streams = [];
    this.kept.clear();
    this.size = 0;
  }

  /**
   * Continues a stream after the last event that the client saw. Null for a standing stream that is no longer known,
   * and for an event id that is not ours: nothing is lost then, so the client gets a new stream.
   */
  resume(lastEventId: string, response: ServerResponse, headers: readonly string[]): EventStream | null {
    const [, name, number] = /^([as]\d{1,15})-(\d{1,15})$/.exec(lastEventId) ?? [];
    const stream = this.streams.find((one) => one.name === name);
    if (stream === undefined) {
      if (!name?.startsWith(LETTERS.answer)) return null;
      throw new GatewayError(
        'request_invalid',
        'The events after this Last-Event-ID are no longer kept. Send the request again.',
      );
    }
    stream.attach(response, headers);
    for (const kept of this.kept) {
      if (kept.stream !== stream || kept.number <= Number(number)) continue;
      if (typeof kept.event === 'string') response.write(kept.event, 'latin1');
      else writeReply(response, kept.event);
    }
    if (stream.isOver) response.end();
    this.backpressure.written(response);
    return stream;
  }
}

/** Calls `proceed` once, when the client has read what it was sent, or is gone. */
export function whenDrained(response: ServerResponse, proceed: () => void): void {
  if (response.destroyed) {
    proceed();
    return;
  }
  const once = () => {
    response.off('drain', once);
    response.off('close', once);
    proceed();
  };
  response.on('drain', once);
  response.on('close', once);
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
