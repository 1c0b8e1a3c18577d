/** One live connection to an MCP server, whatever it runs over. */

import type { GatewayError } from '../base/errors.ts';
import type { Item, Offer } from '../catalog/item.ts';
import type { ClientAbilities } from '../protocol/envelope.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Question } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Wire } from '../protocol/rewrite.ts';
import type { ClientChannel } from './client-channel.ts';

/** A call that is let through. */
export interface Admission {
  readonly item: Item;
  /** Milliseconds that it may take in all, once that is known. */
  readonly totalTimeout: number;
}

/** Where the answer to a request goes. Exactly one of `result`, `error` and `fail` is called, unless it is cancelled. */
export interface Sink extends ClientAbilities {
  /** Whom the answer is for: what may belong to any of several requests reaches an owner only if all of them are its. */
  readonly owner: object;
  /** Since when nobody waits: the client was asked something, and may come back with the answer or not. Null while one does. */
  readonly awaySince: number | null;
  /** Throws where what came with the request contradicts the definition of what it is for. */
  admit(call: Admission): void;
  /** The result as the server sent it, in the form of the server's era. */
  result(result: Parts, era: Era): void;
  /** The error object as the server sent it. */
  error(error: Buffer, era: Era): void;
  /** No answer came: the server is gone, too slow, or made no sense. */
  fail(error: GatewayError): void;
  /** A progress or log message of this request, whole, under the caller's own token. Always before the answer. */
  notify(message: Buffer): void;
  /** Whether the caller has not read what it was told so far: a server that can be made to wait is. */
  readonly isFull: boolean;
  whenDrained(goOn: () => void): void;
  /** The server asks something back, of a caller that declared it can be asked that. */
  ask(question: Question): void;
}

/** For callers in this process, who have read everything as soon as they are told it. */
export const READS_AT_ONCE = { isFull: false, whenDrained: (goOn: () => void) => goOn() };

export interface Request {
  readonly method: string;
  /** The whole message, on one line, under the id that the connection gives it; the id is the progress token too. */
  encode(id: number, era: Era): Wire;
  /** For a call of a tool: its name and arguments alone, behind `head` and up to the end of that object. */
  encodeTool?(head: string): Wire;
  /** What HTTP servers of the modern era want to read in headers too: names and values in turn. */
  headers(): readonly string[];
  /** The trace that it belongs to, as headers for any server over HTTP: names and values in turn. */
  readonly trace?: readonly string[] | null;
  /** The server was listed again: what depends on a definition has to be made anew. */
  renew(offer: Offer): void;
  /** The caller's own progress token as it was written; null where it wants no progress. */
  readonly token: Buffer | null;
  /** Milliseconds without a sign of life, and in all. */
  readonly timeout: number;
  readonly totalTimeout: number;
  /** Whose it is; null for what is asked on behalf of all. */
  readonly client: ClientChannel | null;
  /** By whom, where a tool may know that. */
  readonly agent?: string;
  readonly sink: Sink;
  /** Whether only the first process of the server will do, because what it is about lives there. */
  readonly pinned?: boolean;
  /** The task, as the server names it, whose questions come to this request. */
  readonly taskId?: string | null;
}

/** A request under way. */
export interface Ticket {
  /** Nothing more reaches the sink; the server is told. */
  cancel(reason: string): void;
}

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
  forgotten(refused: Request | null): Ticket | null;
  /** Changes may have gone by unheard. */
  missed(): void;
  /** The request goes on under the ticket, or has been answered where there is none. */
  refused(request: Request, refusal: Refusal): Ticket | null;
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
  request(request: Request): Ticket;
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
