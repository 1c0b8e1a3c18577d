/** One client request in progress: where its answer goes, in which form, and how to cancel it. */
import { type ErrorCode, GatewayError } from '../base/errors.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import type { Holder } from '../calls/holder.ts';
import { type Credential, REVOKED } from '../calls/identity.ts';
import type { ParkedCall } from '../calls/parked.ts';
import type { Pipeline } from '../calls/pipeline.ts';
import { mayAsk } from '../protocol/asked-by.ts';
import { ASKS, legacyResult, modernError, modernErrorObject, modernReply } from '../protocol/bridge.ts';
import type { ResultStream, Ticket } from '../protocol/contract.ts';
import { requiredUrls } from '../protocol/elicitation.ts';
import type { ClientAbilities } from '../protocol/envelope.ts';
import { findMember } from '../protocol/json.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { idText, type Message, parseParams } from '../protocol/message.ts';
import type { Headers } from '../protocol/param-headers.ts';
import { join, type Parts } from '../protocol/parts.ts';
import { inputRequired, type Question, unanswerable } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';
import { errorObject, errorReply, errorResult, type Reply, resultReply } from '../protocol/rpc.ts';

/** Above this many unread bytes a client counts as slow. Senders that can pause wait until it has caught up. */
export const SLOW = 1024 * 1024;

/** The way back to the client for one request. */
export interface Exchange {
  /** Sends a message that belongs to the request, before its answer. */
  send(message: Buffer): void;
  /** Sends the answer; nothing follows it. `status` is for HTTP, if the answer is the whole response. */
  finish(answer: Reply, status?: number): void;
  /**
   * Sends an answer with a result that is still coming, or returns null if that is not possible. Then `finish` and `abandon` mean
   * that it broke off. Absent: never. `length`: no more bytes than these will come, or -1.
   */
  begin?(id: string, length: number): ResultStream | null;
  /** The request was cancelled: no answer is sent. */
  abandon(): void;
  /** Called from time to time while the answer is pending. */
  keepAlive(): void;
  /** Whether the client is behind in reading what it was sent. Senders that can pause then wait for `whenDrained`. */
  readonly isFull: boolean;
  whenDrained(proceed: () => void): void;
  /**
   * The credential that admitted the request, if it can expire or be revoked before the request ends. Null or absent if
   * it cannot, or if another part of the door checks it.
   */
  readonly credential?: Credential | null;
  /** Whether no client is currently connected to read the answer. Absent: one always is. */
  readonly isGone?: boolean;
}

/** Errors about the request itself. A modern client gets them as protocol errors, over HTTP with their own status. */
const ABOUT_REQUEST: ReadonlySet<ErrorCode> = new Set([
  'parse',
  'request_invalid',
  'method_unknown',
  'envelope_invalid',
  'header_mismatch',
  'capability_missing',
  'revision_unsupported',
]);

/** The client that an answer is for. */
export interface Client {
  /** The name and version that we report to it. */
  readonly identity: object;
  /** Passes a server's question on to the client. */
  ask(answer: Answer, question: Question): void;
  /** The server returned questions in place of a result. It expects the same request again, with the answers in it. */
  askAll(answer: Answer, result: Buffer): void;
  /** The server requires the user to visit some URLs first. Returns true if the client has been informed. */
  sendTo(answer: Answer, urls: readonly Buffer[]): boolean;
  /** The request ended before it was answered, or while the client still had open questions from it. */
  left(answer: Answer): void;
}

export class Answer implements Holder {
  readonly message: Message;
  /** The id as the client wrote it. */
  readonly id: string;
  readonly exchange: Exchange;
  readonly client: Client;
  readonly owner: object;
  readonly capabilities: string;
  readonly asks: ReadonlySet<string>;
  readonly logLevel: LogLevel | null;
  readonly tasks: boolean;
  /** The client's era. A modern client over HTTP has headers to check. */
  readonly era: Era;
  readonly headers: Headers | null;
  /** The running requests of the same client; `sources/slots.ts` explains why this is an array. */
  readonly running: Answer[];
  /** Its index in `running`; -1 once it is over. */
  place: number;
  /** The call made for this request; null for requests that make none. */
  call: Call | null = null;
  /** Cancels the work behind the request. */
  ticket: Ticket | null = null;
  /** Whether the client has been asked a question during this request. */
  wasAsked = false;
  /** How often the server has returned questions and asked for the request again. */
  rounds = 0;
  /** How many questions it has returned in all. */
  questions = 0;
  /** Called when a request that brought answers gets a result that asks nothing more. Null if it brought none. */
  completed: (() => void) | null = null;
  /** The call that continues after this request has ended with a question. */
  parked: ParkedCall | null = null;
  isParked = false;

  constructor(
    message: Message,
    exchange: Exchange,
    running: Answer[],
    client: Client,
    audience: ClientAbilities,
    era: Era,
    headers: Headers | null,
  ) {
    this.message = message;
    this.id = idText(message);
    this.exchange = exchange;
    this.client = client;
    // Over HTTP, two requests without a session cannot be attributed to the same client. On one channel they can.
    this.owner = era === 'modern' ? exchange : client;
    this.capabilities = audience.capabilities;
    this.asks = audience.asks;
    this.logLevel = audience.logLevel;
    this.tasks = audience.tasks;
    this.era = era;
    this.headers = headers;
    this.running = running;
    this.place = running.push(this) - 1;
  }

  get awaySince(): number | null {
    return this.isParked ? (this.parked?.awaySince ?? null) : null;
  }

  /** Whether the client wants the call to run as an MCP task. */
  get wantsTask(): boolean {
    return this.message.taskStart >= 0 && this.message.method === 'tools/call';
  }

  /** Returns false if it was already over. */
  end(): boolean {
    if (this.place < 0) return false;
    const last = this.running.pop()!;
    if (last !== this) {
      this.running[this.place] = last;
      last.place = this.place;
    }
    this.place = -1;
    return true;
  }

  /** Ends it without an answer. */
  cancel(reason: string): void {
    if (!this.end()) return;
    this.ticket?.cancel(reason);
    this.client.left(this);
    this.exchange.abandon();
  }

  /** Ends it because the client's credential was revoked. The call is cancelled at the server too. */
  turnOut(): void {
    if (this.place < 0) return;
    this.ticket?.cancel(REVOKED.message);
    this.client.left(this);
    this.refuse(REVOKED);
  }

  /** Sends the request through the pipeline. `message` is the original, or one derived from it. */
  start(pipeline: Pipeline, caller: Caller, message: Message): void {
    this.call = pipeline.create(caller, message, this, this.headers);
    this.ticket = this.call;
    this.call.start();
  }

  /** Whether the tool's output was listed to this client in a different form, so that its result must be converted. */
  get wraps(): boolean {
    return this.era === 'legacy' && this.call !== null && this.call.entry.item.traits.wrapsOutput;
  }

  result(result: Parts, era: Era): void {
    if (this.completed !== null && !mayAsk(result)) this.completed();
    if (this.isParked) this.parked?.deliver((holder) => holder.result(result, era));
    else if (era === this.era && !this.wraps) this.finish(resultReply(this.id, result));
    else if (this.era === 'modern') this.finish(modernReply(this.id, this.message.method, result));
    else this.translate(result, legacyResult(result, this.wraps));
  }

  /** A client of the same era gets the result as the server wrote it. */
  stream(era: Era, length: number): ResultStream | null {
    if (era !== this.era || this.wraps || this.isParked || this.completed !== null || this.place < 0) return null;
    const stream = this.exchange.begin?.(this.id, length) ?? null;
    if (stream === null) return null;
    return {
      write: (part) => stream.write(part),
      end: () => {
        if (!this.end()) return;
        if (this.wasAsked) this.client.left(this);
        stream.end();
      },
    };
  }

  /** Answers with a result that Toolgate produced itself. */
  own(result: Buffer): void {
    if (this.era === 'legacy') this.finish(resultReply(this.id, result));
    else this.finish(modernReply(this.id, this.message.method, result, this.client.identity));
  }

  translate(original: Parts, result: Buffer | GatewayError | typeof ASKS): void {
    if (result === ASKS) this.client.askAll(this, join(original));
    else if (result instanceof GatewayError) this.fail(result);
    else this.finish(resultReply(this.id, result));
  }

  error(error: Buffer, era: Era): void {
    if (this.isParked) {
      this.parked?.deliver((holder) => holder.error(error, era));
      return;
    }
    const isEarlier = era === 'legacy' && this.era === 'modern';
    const urls = isEarlier ? requiredUrls(error) : [];
    if (urls.length > 0 && this.client.sendTo(this, urls)) return;
    this.finish(errorReply(this.id, isEarlier ? modernError(error) : error));
  }

  fail(error: GatewayError): void {
    if (this.isParked) {
      this.parked?.deliver((holder) => holder.fail(error));
      return;
    }
    const isOurs = this.era === 'modern' && (ABOUT_REQUEST.has(error.code) || error.code === 'params_invalid');
    // Our errors about a tool are meant for the model, and models read results, not protocol errors. A client that
    // asked for an MCP task expects a task, so it gets the protocol error.
    if (this.message.method === 'tools/call' && !isOurs && !this.wantsTask) this.result(errorResult(error), 'legacy');
    else this.refuse(error);
  }

  /** Answers with a protocol error. */
  refuse(error: GatewayError): void {
    if (this.era === 'legacy') this.finish(errorReply(this.id, errorObject(error)));
    else
      this.finish(
        errorReply(this.id, modernErrorObject(error)),
        ABOUT_REQUEST.has(error.code) ? error.httpStatus : 200,
      );
  }

  finish(reply: Reply, status = 200): void {
    if (!this.end()) return;
    if (this.wasAsked) this.client.left(this);
    this.exchange.finish(reply, status);
  }

  notify(message: Buffer): void {
    if (this.isParked) this.parked?.holder?.notify(message);
    else if (this.place >= 0) this.exchange.send(message);
  }

  get isFull(): boolean {
    return this.exchange.isFull;
  }

  whenDrained(proceed: () => void): void {
    this.exchange.whenDrained(proceed);
  }

  ask(question: Question): void {
    if (this.place >= 0 || this.isParked) this.client.ask(this, question);
    else question.refuse(unanswerable(question.method, 'the call is over'));
  }

  park(questions: ReadonlyMap<string, Question>, state: string): void {
    this.isParked = true;
    this.finish(resultReply(this.id, inputRequired(questions, state)));
  }
}

/** Ids are compared as the client wrote them: `7` and `"7"` are different. */
export function findRunning(running: readonly Answer[], id: string): Answer | undefined {
  return running.find((answer) => answer.id === id);
}

/** Handles `notifications/cancelled`. */
export function cancelByMessage(running: readonly Answer[], message: Message): void {
  const { bytes, paramsStart, paramsEnd } = message;
  const id = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
  const answer = id === null ? undefined : findRunning(running, bytes.toString('latin1', id.start, id.end));
  if (answer === undefined) return;
  const { reason } = parseParams(message);
  answer.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
}

/** Cancels everything because the client has disconnected. */
export function cancelAll(running: readonly Answer[]): void {
  for (const answer of [...running]) answer.cancel('the client is gone');
}

/** How many of them still have a client waiting for the answer. */
export function countAwaited(running: readonly Answer[]): number {
  return running.filter(({ exchange }) => exchange.isGone !== true).length;
}
