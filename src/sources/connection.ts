/** One live connection to an MCP server, whatever it runs over. */
import type { GatewayError } from '../errors.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Wire } from '../protocol/rewrite.ts';

/** Where the answer to a request goes. Exactly one of `result`, `error` and `fail` is called, unless it is cancelled. */
export interface Sink {
  /** The result as the server sent it. */
  result(result: Parts): void;
  /** The error object as the server sent it. */
  error(error: Buffer): void;
  /** No answer came: the server is gone, too slow, or made no sense. */
  fail(error: GatewayError): void;
  /** A progress message of this request, whole, under the caller's own token. Always before the answer. */
  progress(message: Buffer): void;
}

export interface Request {
  readonly method: string;
  /** The whole message, on one line, under the id that the connection gives it; the id is the progress token too. */
  encode(id: number): Wire;
  /** The caller's own progress token as it was written; null where it wants no progress. */
  readonly token: Buffer | null;
  readonly timeout: number;
  readonly sink: Sink;
}

/** A request under way. */
export interface Ticket {
  /** Nothing more reaches the sink; the server is told. */
  cancel(reason: string): void;
}

export interface ConnectionEvents {
  /** A notification that belongs to no request. */
  notification(message: Message): void;
  /** The connection is over; called once, and not after `close`. */
  closed(reason: string): void;
  /**
   * The server has forgotten the session: a new connection is needed, while this one may still get answers. `refused` is
   * a request that the server did not look at; it goes on under the ticket, or fails where there is none.
   */
  forgotten(refused: Request | null): Ticket | null;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

export interface Connection {
  request(request: Request): Ticket;
  notify(message: Wire): void;
  /** The revision that was agreed on; HTTP sends it with every request. */
  agreed(revision: string): void;
  /** Requests under way. */
  readonly inFlight: number;
  readonly pid: number | null;
  close(): Promise<void>;
}
