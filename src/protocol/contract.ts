/**
 * The contract between callers and sources: what a request is, where its answer goes, and how a server reaches the
 * client behind it. It is in this room because both sides depend on it.
 */
import type { GatewayError } from '../base/errors.ts';
import type { EraTraits } from './definition.ts';
import { type ClientAbilities, NO_ABILITIES } from './envelope.ts';
import type { MirroredArgument } from './param-headers.ts';
import type { Parts } from './parts.ts';
import { type Question, unanswerable } from './question.ts';
import type { Era } from './revisions.ts';
import type { Wire } from './rewrite.ts';

/** The part of a definition that requests depend on. An item of the catalog is one. */
export interface ItemDefinition {
  readonly kind: string;
  readonly name: string;
  readonly bytes: Buffer;
  readonly mirrored: readonly MirroredArgument[] | string | null;
  readonly traits: EraTraits;
}

/** Where the answer to a request goes. Unless it is cancelled, one of `result`, `error` and `fail` is called, once. */
export interface Sink extends ClientAbilities {
  /** Who gets the answer. A message that may belong to several requests is delivered only if all have one owner. */
  readonly owner: object;
  /** When the client disconnected with an open question; it may return with the answer. Null while it is connected. */
  readonly awaySince: number | null;
  /** The result as the server sent it, in the form of the server's era. */
  result(result: Parts, era: Era): void;
  /**
   * A long result begins. If nothing has to see it whole, it is passed on as it comes: to the returned stream, in place of
   * `result`. What breaks after that is told with `fail`. Null or absent: it is needed whole. `length`: the bytes of the
   * message that it is in, or -1 if that is not known.
   */
  stream?(era: Era, length: number): ResultStream | null;
  /** The error object as the server sent it. */
  error(error: Buffer, era: Era): void;
  /** There is no answer: the server is gone, was too slow, or sent something invalid. */
  fail(error: GatewayError): void;
  /** A complete progress or log message of this request, with the caller's own token. Always before the answer. */
  notify(message: Buffer): void;
  /** Whether the caller has too many unread messages. Then the server is paused, if that is possible. */
  readonly isFull: boolean;
  whenDrained(resume: () => void): void;
  /** The server asks the caller something. The caller declared that it can answer that. */
  ask(question: Question): void;
}

/** Takes a result while it comes. */
export interface ResultStream {
  write(part: Buffer): void;
  /** The result is complete. */
  end(): void;
}

/** For callers in this process, which read every message at once. */
export const READS_AT_ONCE = { isFull: false, whenDrained: (resume: () => void) => resume() };

export interface SourceRequest {
  readonly method: string;
  /** The complete message on one line, with the id that the connection assigns. The id is also the progress token. */
  encode(id: number, era: Era): Wire;
  /** For a tool call: only its name and arguments, after `head` and up to the end of that object. */
  encodeTool?(head: string): Wire;
  /** The headers that modern HTTP servers expect: names and values alternate. */
  headers(): readonly string[];
  /** The trace that it belongs to, as headers for any HTTP server: names and values alternate. */
  readonly trace?: readonly string[] | null;
  /** What is called, as last listed; absent if the request is about no item. */
  readonly item?: ItemDefinition;
  /** The server was listed again. Rebuilds what depends on definitions. */
  renew?(definitions: readonly ItemDefinition[]): void;
  /** The request has waited before it is sent. Throws if it is no longer allowed. */
  recheck?(): void;
  /** The caller's own progress token as it was written; null if it wants no progress. */
  readonly token: Buffer | null;
  /** Milliseconds without a sign of life, and in total. */
  readonly timeout: number;
  readonly totalTimeout: number;
  /** The client that it is made for; null for requests on behalf of all. */
  readonly client: ClientChannel | null;
  /** The agent that calls, for the tools of folders and programs. */
  readonly agent?: string;
  /** The owner of its sessions: several people may use one agent. */
  readonly principal?: string;
  /** The session that it is made in, for the same tools. It lets nobody in. */
  readonly sessionId?: string;
  readonly sink: Sink;
  /** Whether it has to go to the server's first process, because the state that it needs is there. */
  readonly pinned?: boolean;
  /** The MCP task, as the server names it, whose questions go to this request. */
  readonly taskId?: string | null;
}

/** A request in progress. */
export interface Ticket {
  /** Cancels the request: nothing more reaches the sink, and the server is notified. */
  cancel(reason: string): void;
}

/** How a server that has a connection of its own for a client reaches that client. */
export interface ClientChannel {
  /** What the client can be asked at any time; null for one without a session, which says so with each request. */
  readonly abilities: ClientAbilities | null;
  /** Asks the client something outside its calls. */
  ask(question: Question): void;
  /** Sends the client a message that belongs to none of its calls. */
  tell(message: Buffer): void;
}

/** For programs and other callers that cannot be asked anything. Each is a client of its own. */
export function silentChannel(): ClientChannel {
  return {
    abilities: NO_ABILITIES,
    ask: ({ method, refuse }) => refuse(unanswerable(method, 'there is nobody to ask')),
    tell() {},
  };
}
