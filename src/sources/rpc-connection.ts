/** What connections over stdio, HTTP and SSE share: pending requests, and the handling of incoming messages. */
import { GatewayError, messageOf } from '../base/errors.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import { readFastAnswer } from '../protocol/fast-answer.ts';
import { toBytes } from '../protocol/json.ts';
import { LONG, readLongAnswer } from '../protocol/long-answer.ts';
import { startLongResult } from '../protocol/long-result.ts';
import { isRequest, isResponse, type Message } from '../protocol/message.ts';
import { join } from '../protocol/parts.ts';
import { readMessage } from '../protocol/read.ts';
import { notificationMessage } from '../protocol/rpc.ts';
import type { Clean } from '../secrets/clean.ts';
import { countAskable, countAsking, countAtWork, deliverLog, deliverNotification } from './attribution.ts';
import type { Connection, ConnectionEvents } from './connection.ts';
import { ACKNOWLEDGED } from './listening.ts';
import { type CloseReason, closedError, type PendingRequest, PendingRequests } from './pending.ts';
import { Questions } from './questions.ts';
import { StreamedAnswer } from './streamed-answer.ts';

export interface ConnectionOptions {
  /** The name of the server. */
  readonly source: string;
  /** Bytes that one message may have. */
  readonly maxMessage: number;
  /** Removes secrets from what goes into errors. */
  readonly redact: (text: string) => string;
  /** Removes the secrets that the server was given from a message; null if it was given none. */
  readonly clean: Clean | null;
  /** The client that the connection belongs to; null for a shared one. */
  readonly client: ClientChannel | null;
  /** Whether callers may be asked to log in, because their browsers can return to this machine. Absent: they may not. */
  readonly asksLogins?: boolean;
}

/** More messages and bytes than these do not wait for a server over HTTP. */
const MOST_UNTAKEN = { messages: 1_000, bytes: 64 * 1024 * 1024 };

/** The channel on which a server reports changes: the part that handles messages. */
export interface ListenChannel {
  /** Takes the acknowledgement of a listen request. */
  acknowledged(message: Message): void;
  /** Takes the response to a listen request; false for any other. */
  settle(message: Message): boolean;
  stop(): void;
}

export abstract class RpcConnection implements Connection {
  readonly pid: number | null = null;
  heard = 0;
  protected readonly source: string;
  protected readonly maxMessage: number;
  protected readonly redact: (text: string) => string;
  protected readonly events: ConnectionEvents;
  protected readonly pending: PendingRequests;
  protected readonly questions: Questions;
  protected readonly channel: ListenChannel | null = null;
  protected ended = false;
  /** Messages of ours, other than requests, that the server has not taken yet. */
  protected readonly untaken = { messages: 0, bytes: 0 };
  /** Whether the connection is being closed on purpose, so that its end is not reported. */
  protected isClosing = false;
  readonly #clean: Clean | null;
  /** The same for the tokens of a login, which change; null if there are none. */
  protected loginClean: Clean | null = null;

  constructor({ source, maxMessage, redact, clean, client }: ConnectionOptions, events: ConnectionEvents) {
    this.source = source;
    this.maxMessage = maxMessage;
    this.redact = redact;
    this.#clean = clean;
    this.events = events;
    this.pending = new PendingRequests(source, {
      abandoned: (pending, reason) => this.abandoned(pending, reason),
      refused: events.refused,
      idle: events.idle,
      failed: (request, error) => this.questions.failed(request, error),
    });
    this.questions = new Questions(this.pending, (answer) => this.reply(answer), events, client);
  }

  abstract request(request: SourceRequest): Ticket;
  abstract close(reason?: CloseReason): Promise<void>;
  /** Sends the answer to a question. */
  protected abstract reply(answer: Buffer): void;
  /** A request ended without an answer: tells the server. */
  protected abstract abandoned(pending: PendingRequest, reason: string): void;

  get inFlight(): number {
    return this.pending.size;
  }

  get asking(): number {
    return countAsking(this.pending);
  }

  get askable(): number {
    return countAskable(this.pending);
  }

  get atWork(): number {
    return countAtWork(this.pending);
  }

  get awaited(): boolean {
    return this.questions.isAwaited;
  }

  /** Handles a complete message. `id` is the request whose reply it came with; null on a shared channel. */
  protected receive(message: Buffer, id: number | null): void {
    const bytes = this.#cleaned(message);
    if (bytes.length > LONG) {
      this.#receiveLong([bytes], id);
      return;
    }
    const answer = readFastAnswer(bytes);
    if (answer !== null) this.pending.deliver(answer.id, answer.result);
    else this.#dispatch(bytes, id);
  }

  /** Handles a complete message in the parts it came in. */
  protected receiveParts(parts: readonly Buffer[], id: number | null): void {
    if (parts.length === 1 || this.#clean !== null || this.loginClean !== null) this.receive(join(parts), id);
    else this.#receiveLong(parts, id);
  }

  #cleaned(message: Buffer): Buffer {
    const bytes = this.#clean === null ? message : this.#clean(message);
    return this.loginClean === null ? bytes : this.loginClean(bytes);
  }

  #receiveLong(parts: readonly Buffer[], id: number | null): void {
    const answer = readLongAnswer(parts);
    if (answer === null) this.#dispatch(join(parts), id);
    else this.pending.deliver(answer.id, answer.result);
  }

  /**
   * Passes a long answer on while it comes, if nothing has to see it whole. `parts` are what has come of it, `id` the request
   * that it came in reply to, `length` its bytes or -1. Null: it has to be read whole. Results of modern servers are searched for
   * questions, and those of servers with secrets for these.
   */
  protected follow(parts: readonly Buffer[], id: number | null, length: number): StreamedAnswer | null {
    if (this.#clean !== null || this.loginClean !== null || this.pending.era === 'modern') return null;
    const result = startLongResult(parts[0]!);
    if (result === null) return null;
    const pending = this.#requestOf(result.id, id);
    const stream = pending?.request.sink.stream?.(this.pending.era, length) ?? null;
    if (pending === null || stream === null) return null;
    const answer = new StreamedAnswer(pending, result, stream);
    for (const [i, part] of parts.entries()) answer.push(i === 0 ? part.subarray(result.before.length) : part);
    return answer;
  }

  /**
   * The request that an answer is for, by its id before the result, or the exchange that it came with. Null without either: on a
   * pipe it may be for any request, also for one that was answered before, and its bytes must not reach another client.
   */
  #requestOf(named: number | null, id: number | null): PendingRequest | null {
    if (named !== null && id !== null && named !== id) return null;
    const known = named ?? id;
    return known === null ? null : (this.pending.get(known) ?? null);
  }

  #dispatch(bytes: Buffer, id: number | null): void {
    let message: Message;
    try {
      message = readMessage(bytes);
    } catch (error) {
      this.invalid(bytes, messageOf(error));
      return;
    }
    if (isResponse(message)) {
      if (this.channel?.settle(message) !== true) this.pending.settle(message);
    } else if (isRequest(message)) this.questions.receive(message, id);
    else if (message.method === 'notifications/message') deliverLog(this.pending, message, id);
    else if (deliverNotification(this.pending, message, id)) return;
    else if (message.method === ACKNOWLEDGED) this.channel?.acknowledged(message);
    else if (!this.questions.hear(message)) this.events.notification(message);
  }

  /** The server sent something that is not a JSON-RPC message. */
  protected invalid(_bytes: Buffer, problem: string): void {
    this.events.note(`sent something that is not a JSON-RPC message (${problem})`);
  }

  /** Takes the response to request `id`, if the bytes are a response. It need not name the request. */
  protected settleReply(bytes: Buffer, id: number): void {
    try {
      const message = readMessage(this.#cleaned(bytes));
      if (isResponse(message)) this.pending.settle(message, id);
    } catch {
      // Not a JSON-RPC message, so it says nothing about the request.
    }
  }

  /** Whether a message other than a request may be sent. A server that asks without end and takes none is given up. */
  protected maySend(): boolean {
    const { messages, bytes } = this.untaken;
    if (messages >= MOST_UNTAKEN.messages || bytes >= MOST_UNTAKEN.bytes) this.end('does not take our messages');
    return !this.ended;
  }

  /** A message of so many bytes waits for the server, or with -1 does not any more. */
  protected waits(bytes: number, sign: 1 | -1): void {
    this.untaken.messages += sign;
    this.untaken.bytes += sign * bytes;
  }

  /** The connection broke. */
  protected end(reason: string, details: Readonly<Record<string, unknown>> = {}): void {
    if (this.ended) return;
    this.ended = true;
    this.channel?.stop();
    this.questions.close('the server is gone');
    const text = this.redact(`Server "${this.source}" ${reason} before it answered. Try again.`);
    this.pending.failAll(new GatewayError('source_broken', text, { details }));
    if (!this.isClosing) this.events.closed(reason);
  }

  /** The connection is closed on purpose. */
  protected shut(fault: CloseReason): void {
    this.ended = true;
    this.channel?.stop();
    this.questions.close('the server is being stopped');
    this.pending.failAll(closedError(this.source, fault));
  }
}

export function cancelMessage(requestId: number | string, reason?: string): Buffer {
  return notificationMessage('notifications/cancelled', toBytes({ requestId, reason }));
}
