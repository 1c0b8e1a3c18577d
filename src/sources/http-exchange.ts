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
  answered(exchange: Exchange, status: number, parts: readonly Buffer[]): void;
  broken(exchange: Exchange, error: Error): void;
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
  /** How often the stream was come back to since something was heard on it. */
  returns: number;

  constructor(link: Link, waiting: Waiting | null, maxMessage: number, returns = 0) {
    this.link = link;
    this.waiting = waiting;
    this.maxMessage = maxMessage;
    this.returns = returns;
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
    const receive = (data: Buffer) => {
      // An event may be there for its id alone.
      if (data.length > 0) link.receive(waiting, data);
    };
    this.events = createSseReader(maxMessage, receive, () => controller.abort(new TooLarge(maxMessage)));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.events !== null) {
      this.returns = 0;
      this.events.push(chunk);
      this.waitForReader(controller);
      return;
    }
    this.size += chunk.length;
    this.parts.push(chunk);
    if (this.size > this.maxMessage) controller.abort(new TooLarge(this.maxMessage));
  }

  /** The reply is this caller's alone, so the server can be made to wait until it is read. */
  waitForReader(controller: Dispatcher.DispatchController): void {
    const sink = this.waiting?.request.sink;
    if (sink?.isFull !== true) return;
    controller.pause();
    sink.whenDrained(() => controller.resume());
  }

  onResponseEnd(): void {
    this.link.answered(this, this.status, this.parts);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.link.broken(this, error);
  }
}
