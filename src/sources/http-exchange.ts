/** One message sent to a server, and the reply: plain JSON or a stream of events. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { wireBytes } from '../protocol/rewrite.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import { TooLarge } from './http-failure.ts';
import type { PendingRequest } from './pending.ts';

/** What an exchange reports to its connection. */
export interface ExchangeEvents {
  started(pending: PendingRequest, controller: Dispatcher.DispatchController): void;
  /** The server named the session. */
  session(id: string): void;
  /** A message came in the stream of events that replies to this request. */
  received(pending: PendingRequest | null, message: Buffer): void;
  /** The reply is complete; `parts` are its body, unless it was a stream. */
  replied(exchange: UpstreamExchange, status: number, parts: readonly Buffer[]): void;
  broken(exchange: UpstreamExchange, error: Error): void;
}

/** A class, because five closures per call would cost measurable time. */
export class UpstreamExchange implements Dispatcher.DispatchHandler {
  /** The request in the message; null for a message that has no answer. */
  readonly pending: PendingRequest | null;
  /** Bytes of a message that has no answer. */
  size = 0;
  readonly #connection: ExchangeEvents;
  readonly #maxMessage: number;
  readonly #parts: Buffer[] = [];
  #size = 0;
  #status = 0;
  events: SseReader | null = null;
  /** How often the stream was resumed since something arrived on it. */
  resumes: number;
  /** The header `Authorization` that it was sent with, and how often it was refused because of that. */
  authorization: string | null = null;
  refusals = 0;
  /** A message without an answer, if it may have to be sent again. */
  body: ReturnType<typeof wireBytes> | null = null;
  /** What the server says about a refusal. */
  challenge = '';
  nonce: string | null = null;

  constructor(connection: ExchangeEvents, pending: PendingRequest | null, maxMessage: number, resumes = 0) {
    this.#connection = connection;
    this.pending = pending;
    this.#maxMessage = maxMessage;
    this.resumes = resumes;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.pending !== null) this.#connection.started(this.pending, controller);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status;
    const session = headers['mcp-session-id'];
    if (status === 200 && typeof session === 'string') this.#connection.session(session);
    if (status === 401 || status === 403) this.challenge = String(headers['www-authenticate'] ?? '');
    if (typeof headers['dpop-nonce'] === 'string') this.nonce = headers['dpop-nonce'];
    if (headers['content-type']?.startsWith('text/event-stream') !== true) return;
    const receive = (data: Buffer) => {
      // An event may have an id and no data.
      if (data.length > 0) this.#connection.received(this.pending, data);
    };
    const tooLong = () => controller.abort(new TooLarge(this.#maxMessage));
    this.events = createSseReader(this.#maxMessage, receive, tooLong);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.events !== null) {
      this.resumes = 0;
      this.events.push(chunk);
      this.#waitForReader(controller);
      return;
    }
    this.#size += chunk.length;
    this.#parts.push(chunk);
    if (this.#size > this.#maxMessage) controller.abort(new TooLarge(this.#maxMessage));
  }

  /** The stream belongs to this caller alone, so the server can be paused until the caller has read. */
  #waitForReader(controller: Dispatcher.DispatchController): void {
    const sink = this.pending?.request.sink;
    if (sink?.isFull !== true) return;
    controller.pause();
    sink.whenDrained(() => controller.resume());
  }

  onResponseEnd(): void {
    this.#connection.replied(this, this.#status, this.#parts);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#connection.broken(this, error);
  }
}
