/** One live connection to an MCP server, whatever it runs over. */

import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';

/** A server's word that it cannot take a request as we sent it: for us to deal with, and not for the caller. */
export interface Refusal {
  readonly code: number;
  readonly data: unknown;
  /** All of it, as it came. */
  readonly error: Buffer;
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
  forgotten(refused: SourceRequest | null): Ticket | null;
  /** Changes may have gone by unheard. */
  missed(): void;
  /** The request goes on under the ticket, or has been answered where there is none. */
  refused(request: SourceRequest, refusal: Refusal): Ticket | null;
  /** The server asks things of its clients. */
  asked(): void;
  /** Something odd that an operator should be able to see. */
  note(text: string): void;
}

/** How a modern server is asked to tell of changes. */
export interface ListenRequest {
  readonly id: string;
  readonly message: Buffer;
  /** The server tells from here on, of these resources; null where it does not say of which. */
  taken(uris: readonly string[] | null): void;
  /** It does not. */
  refused(): void;
}

export interface Connection {
  request(request: SourceRequest): Ticket;
  notify(message: Wire): void;
  /** How to speak from here on; the revision is null before one is agreed on. */
  speak(era: Era, revision: string | null): void;
  /**
   * Opens what the server needs to speak unasked. `request` is how a modern one is asked for it; it replaces an earlier
   * one as soon as the server has taken it, and null ends that.
   */
  listen(request: ListenRequest | null): void;
  /** Whether arguments that a tool marks are sent in headers too; then marks that are not valid spoil the tool. */
  readonly mirrors: boolean;
  /** Requests under way. */
  readonly inFlight: number;
  /** Those that a question without an address may belong to: with more than one, nobody knows which. */
  readonly asking: number;
  /** Those of them whose callers can be asked. */
  readonly askable: number;
  /** Whether a user may still be busy elsewhere on its behalf. */
  readonly awaited: boolean;
  readonly pid: number | null;
  /** Grows with whatever the server says: while it stays the same there was no sign of life. */
  readonly heard: number;
  /** `reason` is what the server did wrong, for its calls; without it they are told that it is being stopped. */
  close(reason?: string): Promise<void>;
}
