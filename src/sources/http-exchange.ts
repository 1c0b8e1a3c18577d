/** One message sent to a server by POST, and the reply to it: plain JSON or a stream of events. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { createSseReader, type SseReader } from '../protocol/sse.ts';
import type { Waiting } from './pending.ts';

export class TooLarge extends Error {
  constructor(limit: number) {
    super(`sent a message of more than ${limit} bytes; raise limits.message to allow it`);
  }
}

/** What one exchange tells its connection. */
export interface Link {
  begun(waiting: Waiting, controller: Dispatcher.DispatchController): void;
  greeted(session: string): void;
  /** A message that came with the reply to this request. */
  receive(waiting: Waiting | null, message: Buffer): void;
  /** The reply is over; `parts` are its body where that was no stream. */
  answered(waiting: Waiting | null, status: number, parts: readonly Buffer[]): void;
  broken(waiting: Waiting | null, error: Error): void;
}

/** One POST and its reply. A class, because five closures for each call would be felt. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly link: Link;
  readonly waiting: Waiting | null;
  readonly maxMessage: number;
  parts: Buffer[] = [];
  size = 0;
  status = 0;
  events: SseReader | null = null;

  constructor(link: Link, waiting: Waiting | null, maxMessage: number) {
    this.link = link;
    this.waiting = waiting;
    this.maxMessage = maxMessage;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.waiting !== null) this.link.begun(this.waiting, controller);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    const session = headers['mcp-session-id'];
    if (status === 200 && typeof session === 'string') this.link.greeted(session);
    if (headers['content-type']?.startsWith('text/event-stream') !== true) return;
    const { maxMessage, link, waiting } = this;
    const receive = (data: Buffer) => link.receive(waiting, data);
    this.events = createSseReader(maxMessage, receive, () => controller.abort(new TooLarge(maxMessage)));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.events !== null) {
      this.events.push(chunk);
      return;
    }
    this.size += chunk.length;
    this.parts.push(chunk);
    if (this.size > this.maxMessage) controller.abort(new TooLarge(this.maxMessage));
  }

  onResponseEnd(): void {
    this.link.answered(this.waiting, this.status, this.parts);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.link.broken(this.waiting, error);
  }
}
