/** One message sent to a server, and the reply: plain JSON or a stream of events. */
import { CollectedParts } from '../base/collected-parts.ts';
import { STREAMED } from '../protocol/long-result.ts';
import type { Wire } from '../protocol/rewrite.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { HttpRequest, ResponseHandler } from './http-client.ts';
import { TooLarge } from './http-failure.ts';
import type { ResponseHead } from './http-response.ts';
import type { PendingRequest } from './pending.ts';
import type { StreamedAnswer } from './streamed-answer.ts';

/** What an exchange reports to its connection. */
export interface ExchangeEvents {
  started(pending: PendingRequest, sent: HttpRequest): void;
  /** The server named the session. */
  session(id: string): void;
  /** A message came in the stream of events that replies to this request. */
  received(pending: PendingRequest | null, message: Buffer): void;
  /** A long reply has begun: passes it on as it comes. Null: it has to be collected. */
  begun(pending: PendingRequest, parts: readonly Buffer[], length: number): StreamedAnswer | null;
  /** The reply is complete; `parts` are its body, unless it was a stream. */
  replied(exchange: UpstreamExchange, status: number, parts: readonly Buffer[]): void;
  broken(exchange: UpstreamExchange, error: Error): void;
}

/** A class, because five closures per call would cost measurable time. */
export class UpstreamExchange implements ResponseHandler {
  /** The request in the message; null for a message that has no answer. */
  readonly pending: PendingRequest | null;
  /** Bytes of a message that has no answer. */
  size = 0;
  readonly #connection: ExchangeEvents;
  readonly #maxMessage: number;
  readonly #parts = new CollectedParts();
  #size = 0;
  #status = 0;
  #length = -1;
  /** A long reply that is passed on as it comes; null if it is collected. */
  #answer: StreamedAnswer | null = null;
  #isOffered = false;
  #isWaiting = false;
  events: SseReader | null = null;
  /** How often the stream was resumed since something arrived on it. */
  resumes: number;
  /** The header `Authorization` that it was sent with, and how often it was refused because of that. */
  authorization: string | null = null;
  refusals = 0;
  /** A message without an answer, if it may have to be sent again. */
  body: Wire | null = null;
  /** What the server says about a refusal. */
  challenge = '';
  nonce: string | null = null;

  constructor(connection: ExchangeEvents, pending: PendingRequest | null, maxMessage: number, resumes = 0) {
    this.#connection = connection;
    this.pending = pending;
    this.#maxMessage = maxMessage;
    this.resumes = resumes;
  }

  started(sent: HttpRequest): void {
    if (this.pending !== null) this.#connection.started(this.pending, sent);
  }

  head(sent: HttpRequest, { status, length, session, challenge, nonce, contentType }: ResponseHead): void {
    this.#status = status;
    this.#length = length;
    if (status === 200 && session !== null) this.#connection.session(session);
    if (status === 401 || status === 403) this.challenge = challenge;
    if (nonce !== null) this.nonce = nonce;
    if (!contentType.startsWith('text/event-stream')) return;
    const receive = (data: Buffer) => {
      // An event may have an id and no data.
      if (data.length > 0) this.#connection.received(this.pending, data);
    };
    const tooLong = () => sent.abort(new TooLarge(this.#maxMessage));
    this.events = createSseReader(this.#maxMessage, receive, tooLong);
  }

  data(sent: HttpRequest, part: Buffer): void {
    if (this.events !== null) {
      this.resumes = 0;
      this.events.push(part);
      this.#waitForReader(sent);
      return;
    }
    this.#size += part.length;
    if (this.#size > this.#maxMessage) {
      sent.abort(new TooLarge(this.#maxMessage));
      return;
    }
    if (this.#answer !== null) this.#answer.push(part);
    else {
      this.#parts.push(part);
      if (!this.#offers()) return;
    }
    this.#waitForReader(sent);
  }

  /** Offers a long reply once. Returns whether it is passed on as it comes. */
  #offers(): boolean {
    if (this.#isOffered || this.pending === null || this.#status !== 200) return false;
    const isLong = this.#size >= STREAMED || (this.#length >= STREAMED && this.#length <= this.#maxMessage);
    if (!isLong) return false;
    this.#isOffered = true;
    this.#answer = this.#connection.begun(this.pending, this.#parts.parts, this.#length);
    if (this.#answer === null) return false;
    this.#parts.take();
    return true;
  }

  /** The stream belongs to this caller alone, so the server can be paused until the caller has read. */
  #waitForReader(sent: HttpRequest): void {
    const sink = this.pending?.request.sink;
    if (this.#isWaiting || sink?.isFull !== true) return;
    const { pending } = this;
    this.#isWaiting = true;
    sent.pause();
    // A client that reads slowly is no fault of the server.
    const goOn = this.#answer === null ? null : pending!.holdClocks();
    sink.whenDrained(() => {
      this.#isWaiting = false;
      goOn?.();
      sent.resume();
    });
  }

  ended(): void {
    this.#answer?.end();
    this.#connection.replied(this, this.#status, this.#parts.take());
  }

  failed(_sent: HttpRequest | null, error: Error): void {
    this.#connection.broken(this, error);
  }
}
