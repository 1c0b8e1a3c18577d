/** One request of a client under way: where its answer goes, in which form, and how to stop it. */

import { type ErrorCode, GatewayError } from '../base/errors.ts';
import type { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import { type Credential, REVOKED } from '../calls/identity.ts';
import type { Holder, ParkedCall } from '../calls/parked.ts';
import type { Pipeline } from '../calls/pipeline.ts';
import { ASKS, legacyResult, modernError, modernErrorObject, modernReply } from '../protocol/bridge.ts';
import type { Ticket } from '../protocol/contract.ts';
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

/** A client with more than this to read is given nothing more, where whoever says it can be made to wait. */
export const SLOW = 1024 * 1024;

/** The way back for one request. */
export interface Exchange {
  /** A message that belongs to the request and comes before its answer. */
  send(message: Buffer): void;
  /** The answer; nothing follows. `status` is for HTTP, where the answer is all there is. */
  finish(answer: Reply, status?: number): void;
  /** The request was cancelled: there is no answer. */
  abandon(): void;
  /** Called now and then while the answer is not there. */
  keepAlive(): void;
  /** Whether the client has not read what it was sent; then whoever can wait does. */
  readonly isFull: boolean;
  whenDrained(goOn: () => void): void;
  /** What its request was let in by, where that may end before it; null or absent where it does not, or is seen to elsewhere. */
  readonly pass?: Credential | null;
  /** Whether nobody is there at present who would read the answer. Absent: somebody always is. */
  readonly isGone?: boolean;
}

/** Errors about the request itself: to a modern client they are protocol errors, with a status of their own over HTTP. */
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
  /** Who we are to it. */
  readonly identity: object;
  /** The server asks the client something back. */
  ask(answer: Answer, question: Question): void;
  /** The server's result is none yet: it wants answers to what it asks first, in the same request sent again. */
  askAll(answer: Answer, result: Buffer): void;
  /** The server cannot answer before the user has been at some addresses; true where the client has been told. */
  sendTo(answer: Answer, urls: readonly Buffer[]): boolean;
  /** The request is over before its answer, or before the client has answered what it was asked. */
  left(answer: Answer): void;
}

export class Answer implements Holder {
  readonly message: Message;
  /** As the client wrote it. */
  readonly id: string;
  readonly exchange: Exchange;
  readonly client: Client;
  readonly owner: object;
  readonly capabilities: string;
  readonly asks: ReadonlySet<string>;
  readonly logLevel: LogLevel | null;
  readonly tasks: boolean;
  /** The era of the client; a modern one over HTTP has headers to check. */
  readonly era: Era;
  readonly headers: Headers | null;
  /** The requests of the same client, in an array for the reason that slots.ts gives. */
  readonly running: Answer[];
  /** Where it stands among them; -1 when it is over. */
  place: number;
  /** The call that it makes; null for other requests. */
  call: Call | null = null;
  /** What cancels it. */
  ticket: Ticket | null = null;
  /** Whether the client has been asked something in its course. */
  wasAsked = false;
  /** How often the server has asked for answers and the request again. */
  rounds = 0;
  /** The call that goes on after this request has ended with a question. */
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
    // Over HTTP nothing says that two requests without a session are of the same client; those on one channel are.
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

  /** Whether the client wants the call to be run as a task. */
  get wantsTask(): boolean {
    return this.message.taskStart >= 0 && this.message.method === 'tools/call';
  }

  /** False when it was over already. */
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

  /** Ends it because its client is no longer let in. The server hears that nobody waits for it. */
  turnOut(): void {
    if (this.place < 0) return;
    this.ticket?.cancel(REVOKED.message);
    this.client.left(this);
    this.refuse(REVOKED);
  }

  /** Sends the request through the pipeline. `message` is its own, or one made from it. */
  start(pipeline: Pipeline, caller: Caller, message: Message): void {
    this.call = pipeline.create(caller, message, this, this.headers);
    this.ticket = this.call;
    this.call.start();
  }

  /** Whether the client was listed the output of the tool in another form. */
  get wraps(): boolean {
    return this.era === 'legacy' && this.call !== null && this.call.entry.item.traits.wrapsOutput;
  }

  result(result: Parts, era: Era): void {
    if (this.isParked) this.parked?.deliver((holder) => holder.result(result, era));
    else if (era === this.era && !this.wraps) this.finish(resultReply(this.id, result));
    else if (this.era === 'modern') this.finish(modernReply(this.id, this.message.method, result));
    else this.translate(result, legacyResult(result, this.wraps));
  }

  /** A result of Toolgate's own. */
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
    // Errors of Toolgate's own about a tool are for the model, and models read results. One that waits for a task does not.
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

  whenDrained(goOn: () => void): void {
    this.exchange.whenDrained(goOn);
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

/** What `notifications/cancelled` asks for. */
export function cancelByMessage(running: readonly Answer[], message: Message): void {
  const { bytes, paramsStart, paramsEnd } = message;
  const id = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
  const answer = id === null ? undefined : findRunning(running, bytes.toString('latin1', id.start, id.end));
  if (answer === undefined) return;
  const { reason } = parseParams(message);
  answer.cancel(typeof reason === 'string' ? reason : 'cancelled by the client');
}

/** The client is gone. */
export function cancelAll(running: readonly Answer[]): void {
  for (const answer of [...running]) answer.cancel('the client is gone');
}

/** How many of them somebody waits for. */
export function countAwaited(running: readonly Answer[]): number {
  return running.filter(({ exchange }) => exchange.isGone !== true).length;
}
