/** One live connection to a server, over any transport. */
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import type { UpstreamRefusal } from './refusals.ts';

export interface Connection {
  request(request: SourceRequest): Ticket;
  /** Sends a message that has no answer. Absent for servers that know no such messages. */
  notify?(message: Wire): void;
  /** Sets the era from here on; the revision is null until one is agreed on. Absent if nothing depends on it. */
  speak?(era: Era, revision: string | null): void;
  /**
   * Opens the channel on which the server reports changes unasked; absent if there is nothing to open. `request` is how
   * a modern server is asked for it. It replaces an earlier one as soon as the server has taken it, and null ends that.
   */
  listen?(request: ListenRequest | null): void;
  /** Whether arguments that a tool marks are sent in headers, too. Then a tool with invalid marks cannot be offered. */
  readonly mirrors?: boolean;
  /** Pending requests. */
  readonly inFlight: number;
  /** The requests that a question without a request id may belong to. With more than one, it is ambiguous. */
  readonly asking: number;
  /** Those of them whose callers can be asked. */
  readonly askable: number;
  /** Whether a user may still be at an address that the server sent them to. */
  readonly awaited: boolean;
  readonly pid: number | null;
  /** Grows with everything that the server sends: while it stays the same, there was no sign of life. */
  readonly heard: number;
  /** `reason` is what the server did wrong, for its calls. Without it they are told that the server is being stopped. */
  close(reason?: string): Promise<void>;
}

export interface ConnectionEvents {
  /** A notification that belongs to no request. */
  notification(message: Message): void;
  /** The connection is over. Called once, and not after `close`. */
  closed(reason: string): void;
  /**
   * The server has forgotten the session. A new connection is needed, while this one may still receive answers. `refused`
   * is a request that the server did not process. It continues under the ticket, or fails if there is none.
   */
  forgotten(refused: SourceRequest | null): Ticket | null;
  /** Changes may have gone unnoticed. */
  missed(): void;
  /** The request goes on under the ticket, or was answered if there is none. */
  refused(request: SourceRequest, refusal: UpstreamRefusal): Ticket | null;
  /** The server asks its clients things. */
  asked(): void;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

/** Asks a modern server to report changes. */
export interface ListenRequest {
  readonly id: string;
  readonly message: Buffer;
  /** The server reports from here on, about these resources; null if it does not say about which. */
  taken(uris: readonly string[] | null): void;
  /** The server does not report. */
  refused(): void;
}
