/** The stream on which an HTTP server reports changes. A server without one answers with an error or with no stream. */
import type { Message } from '../protocol/message.ts';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { ListenRequest } from './connection.ts';
import type { HttpRequest, ResponseHandler } from './http-client.ts';
import { failureReason, isUnreachable, NOT_HERE, TooLarge } from './http-failure.ts';
import { ListenRequests } from './listening.ts';
import type { ListenChannel } from './rpc-connection.ts';

export interface HttpStreamEvents {
  /** With a body it is a POST, without one a GET. */
  dispatch(body: Buffer | null, handler: ResponseHandler): void;
  receive(message: Buffer): void;
  /** The server no longer knows the session. */
  forgotten(): void;
  unreachable(reason: string): void;
  /** Changes may have gone unnoticed. */
  missed(): void;
}

export class HttpStream implements ListenChannel {
  /** Whether the stream is open; null if the server has not opened one yet. */
  isSpeaking: boolean | null = null;
  readonly #maxMessage: number;
  readonly #events: HttpStreamEvents;
  readonly #listener = new ListenRequests<HttpRequest>((stream) => stream.abort(new Error('replaced')));
  #stream: HttpRequest | null = null;
  #stopped = false;

  constructor(maxMessage: number, events: HttpStreamEvents) {
    this.#maxMessage = maxMessage;
    this.#events = events;
  }

  /** `isNeeded`: whether to open a stream. A legacy server is listened to with a stream, but without a request. */
  listen(request: ListenRequest | null, isNeeded: boolean): void {
    const replaced = this.#stream;
    this.#stream = null;
    this.#listener.replace(request, replaced, isNeeded ? () => this.#open(request) : null, this.#events.missed);
  }

  acknowledged(message: Message): void {
    this.#listener.acknowledge(message);
  }

  settle(message: Message): boolean {
    if (!this.#listener.isEndedBy(message)) return false;
    if (message.errorStart >= 0) {
      this.isSpeaking = null;
      this.#listener.refused();
    }
    return true;
  }

  stop(): void {
    this.#stopped = true;
    this.#listener.stop();
    this.#stream?.abort(new Error('closed'));
    this.#listener.endReplaced();
  }

  #open(request: ListenRequest | null): void {
    let reader: SseReader | null = null;
    let mayRetry = false;
    // Another request may have replaced this one.
    const isCurrent = () => this.#listener.request === request;
    const silence = () => {
      if (!isCurrent()) return;
      this.#stream = null;
      if (this.isSpeaking) this.isSpeaking = false;
    };
    this.#events.dispatch(request?.message ?? null, {
      started: (sent) => {
        // A request that was replaced before it started could not be stopped then. It is stopped here, because
        // otherwise every message would arrive twice.
        if (isCurrent()) this.#stream = sent;
        else sent.abort(new Error('replaced'));
      },
      head: (sent, { status, contentType }) => {
        if (status === 200 && contentType.startsWith('text/event-stream')) {
          this.isSpeaking = true;
          mayRetry = true;
          this.#listener.opened();
          reader = createSseReader(
            this.#maxMessage,
            (data) => data.length > 0 && this.#events.receive(data),
            () => sent.abort(new TooLarge(this.#maxMessage)),
          );
        } else if (this.isSpeaking !== null && !this.#stopped) {
          // Before the first stream, the same status only means that the server has none.
          if (NOT_HERE.includes(status)) this.#events.forgotten();
          else mayRetry = true;
        }
      },
      data(_sent, part) {
        reader?.push(part);
      },
      ended: () => {
        silence();
        if (!isCurrent()) return;
        if (mayRetry) this.#listener.lost();
        else request?.refused();
      },
      failed: (_sent, error) => {
        silence();
        if (this.#stopped || !isCurrent()) return;
        if (isUnreachable(error)) this.#events.unreachable(failureReason(error));
        else this.#listener.lost();
      },
    });
  }
}
