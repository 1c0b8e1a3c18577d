/** One REST call in progress. Its answer becomes the HTTP reply. */
import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Call } from '../../../calls/call.ts';
import type { Caller } from '../../../calls/caller.ts';
import { type Credential, REVOKED } from '../../../calls/identity.ts';
import type { Pipeline } from '../../../calls/pipeline.ts';
import { ASKS } from '../../../protocol/bridge.ts';
import type { Sink } from '../../../protocol/contract.ts';
import { NO_ABILITIES } from '../../../protocol/envelope.ts';
import { JsonError } from '../../../protocol/json.ts';
import type { Message } from '../../../protocol/message.ts';
import type { Parts } from '../../../protocol/parts.ts';
import { type Question, unanswerable } from '../../../protocol/question.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import type { Cancellable } from '../wire/cancel-on-close.ts';
import { sendReply } from '../wire/reply.ts';
import { ownFailure, QUESTION_REFUSED, type RestFailure, sendFailure, serverFailure, toolFailure } from './failure.ts';
import { bareResult } from './plain-result.ts';
import { withNumber } from './request-id.ts';
import { isWrapped } from './unwrap-output.ts';

export class RestCall implements Sink, Cancellable {
  // Plain fields: one of these is created for every call, and private fields are slower.
  readonly response: ServerResponse;
  readonly headers: readonly string[];
  /** As JSON. */
  readonly id: string;
  readonly backpressure: Backpressure;
  readonly credential: Credential;
  /** Whether errors are written as mcpo writes them. */
  readonly isMcpo: boolean;
  /** The running calls of the same caller; `sources/slots.ts` explains why this is an array. */
  readonly running: RestCall[];
  place: number;
  call: Call | null = null;

  constructor(
    response: ServerResponse,
    headers: readonly string[],
    id: string,
    backpressure: Backpressure,
    credential: Credential,
    isMcpo: boolean,
    running: RestCall[],
  ) {
    this.response = response;
    this.headers = headers;
    this.id = id;
    this.backpressure = backpressure;
    this.credential = credential;
    this.isMcpo = isMcpo;
    this.running = running;
    this.place = running.push(this) - 1;
  }

  // A REST client cannot be asked questions, and gets nothing before the answer.

  get owner(): object {
    return this;
  }

  get capabilities(): string {
    return NO_ABILITIES.capabilities;
  }

  get asks(): ReadonlySet<string> {
    return NO_ABILITIES.asks;
  }

  get logLevel(): null {
    return null;
  }

  get tasks(): boolean {
    return false;
  }

  get awaySince(): null {
    return null;
  }

  get isFull(): boolean {
    return false;
  }

  whenDrained(proceed: () => void): void {
    proceed();
  }

  notify(): void {}

  ask({ method, refuse }: Question): void {
    refuse(unanswerable(method, 'the tool was called over REST'));
  }

  start(pipeline: Pipeline, caller: Caller, message: Message): void {
    this.call = pipeline.create(caller, message, this);
    this.call.start();
  }

  result(result: Parts): void {
    if (!this.end()) return;
    try {
      const bare = bareResult(result, this.call !== null && isWrapped(this.call.entry.item));
      if (bare === ASKS) this.#send(ownFailure(QUESTION_REFUSED));
      else if (bare.isError) this.#send(toolFailure(bare.value));
      else sendReply(this.response, 200, { head: '', body: bare.value, tail: '' }, this.headers, this.backpressure);
    } catch (error) {
      // Long results have not been parsed until now.
      if (!(error instanceof JsonError || error instanceof SyntaxError)) throw error;
      const text = `The server answered with invalid JSON: ${error.message}.`;
      this.#send(ownFailure(new GatewayError('source_broken', text)));
    }
  }

  error(error: Buffer): void {
    if (this.end()) this.#send(serverFailure(error));
  }

  fail(error: GatewayError): void {
    if (this.end()) this.#send(ownFailure(error));
  }

  /** Ends the call without an answer. */
  cancel(reason: string): void {
    if (this.end()) this.call?.cancel(reason);
  }

  /** Ends the call if its credential was revoked, and cancels it at the server. */
  endIfRevoked(): void {
    if (!this.credential.revocation.isRevoked) return;
    this.call?.cancel(REVOKED.message);
    this.fail(REVOKED);
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

  #send(failure: RestFailure): void {
    const challenge = failure.status === 401 ? ['www-authenticate', 'Bearer realm="toolgate"'] : [];
    sendFailure(this.response, failure, [...withNumber(this.headers, this.id), ...challenge], this.isMcpo);
  }
}
