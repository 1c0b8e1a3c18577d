/** One live connection to a server, over any transport. */
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import type { FileProblem } from './last-good.ts';
import type { CloseReason } from './pending.ts';
import type { UpstreamRefusal } from './refusals.ts';

export interface Connection {
  request(request: SourceRequest): Ticket;
  /** Sends a message that has no answer. Absent if the server understands no such messages. */
  notify?(message: Wire): void;
  /** Sets the era from now on; the revision is null until one is agreed on. Absent if nothing depends on it. */
  speak?(era: Era, revision: string | null): void;
  /**
   * Opens the channel on which the server reports changes; absent if there is nothing to open. A modern server is sent
   * `request` for this. The request replaces an earlier one as soon as the server has accepted it. Null ends the
   * earlier one.
   */
  listen?(request: ListenRequest | null): void;
  /** Whether arguments that a tool marks are also sent in headers. Then a tool with invalid marks cannot be offered. */
  readonly mirrors?: boolean;
  /** Pending requests. */
  readonly inFlight: number;
  /** The requests that a question without a request id may belong to. With more than one, it is ambiguous. */
  readonly asking: number;
  /** Those of them whose callers can be asked. */
  readonly askable: number;
  /** Those of `asking` that do not wait for an answer of their caller. */
  readonly atWork: number;
  /** Whether a user may still be busy at a URL that the server sent them to. */
  readonly awaited: boolean;
  /** Whether it uses HTTP+SSE, the older of the two HTTP transports. */
  readonly isSse?: boolean;
  readonly pid: number | null;
  /** The files of a tool folder that could not be loaded; absent for other servers. */
  readonly problems?: readonly FileProblem[];
  /** Grows with everything that the server sends. While it stays the same, there is no sign of life. */
  readonly heard: number;
  /** Its calls fail with the reason, or else because the server is being stopped. */
  close(reason?: CloseReason): Promise<void>;
}

export interface ConnectionEvents {
  /** A notification that belongs to no request. */
  notification(message: Message): void;
  /** The connection is over. Called once, and not after `close`. */
  closed(reason: string): void;
  /**
   * The server has forgotten the session. A new connection is needed, but this one may still receive answers. `refused`
   * is a request that the server did not process. It continues under the returned ticket, or fails if there is none.
   */
  forgotten(refused: SourceRequest | null): Ticket | null;
  /** Like `refused` of `forgotten`, for a request that was not sent because the connection has broken. */
  unsent(request: SourceRequest): Ticket | null;
  /** Changes may have gone unnoticed. */
  missed(): void;
  /** The request continues under the returned ticket, or was answered if there is none. */
  refused(request: SourceRequest, refusal: UpstreamRefusal): Ticket | null;
  /** The server has asked its client something. `isStray`: on a channel that does not say which request it is about. */
  asked(isStray: boolean): void;
  /** No request is pending any more. */
  idle(): void;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

/** Asks a modern server to report changes. */
export interface ListenRequest {
  readonly id: string;
  readonly message: Buffer;
  /** The server has accepted, and reports changes in these resources from now on; null if it does not say which. */
  taken(uris: readonly string[] | null): void;
  /** The server does not report changes. */
  refused(): void;
}
