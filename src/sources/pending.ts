/** The requests of one connection that wait for an answer: their ids, their timeouts, and where the answers go. */
import { GatewayError } from '../base/errors.ts';
import { BadQuestion, errorOf, inquiryOf, MOST_OPEN_QUESTIONS, MOST_QUESTIONS, mayAsk } from '../protocol/asked-by.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { findMember, JsonError } from '../protocol/json.ts';
import { idText, type Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { AbandonedRequests } from './abandoned.ts';
import { readRefusal, type UpstreamRefusal } from './refusals.ts';
import { Slots } from './slots.ts';
import { NoFault } from './tickets.ts';

/** What a connection does when requests end. */
export interface PendingEvents {
  /** A request ended without an answer while the server may still be working on it. */
  abandoned(pending: PendingRequest, reason: string): void;
  /**
   * A modern server refused the form of our request. The request continues under the returned ticket, or has been
   * answered if there is none.
   */
  refused?(request: SourceRequest, refusal: UpstreamRefusal): Ticket | null;
  /** The server answered with an error object, which goes to the caller. */
  failed?(request: SourceRequest, error: Buffer): void;
  /** The last pending request is about to end. */
  idle?(): void;
}

/** One pending request. Defined at module level, because a class per connection would slow down every call. */
export class PendingRequest implements Ticket {
  readonly id: number;
  readonly request: SourceRequest;
  readonly table: PendingRequests;
  /** When it times out without a further sign of life. Never later than `latest`. */
  deadline: number;
  latest: number;
  /** The tool's own timeout in milliseconds, and when it has to be over; infinite if it has none. */
  ownTimeout: number = Number.POSITIVE_INFINITY;
  #ownLatest: number = Number.POSITIVE_INFINITY;
  #pausedAt = 0;
  #isHeld = false;
  /** Open questions that the server asked during this request. */
  pauses = 0;
  /** All questions that it asked. */
  #questions = 0;
  /** The HTTP exchange or function run of the request, which has to be stopped with it. */
  carrier: { abort(error: Error): void } | null = null;
  /** The ticket under which the request continues after `withdraw` or a refusal. */
  next: Ticket | null = null;

  constructor(table: PendingRequests, id: number, request: SourceRequest) {
    this.table = table;
    this.id = id;
    this.request = request;
    const now = performance.now();
    this.latest = now + request.totalTimeout;
    this.deadline = Math.min(now + request.timeout, this.latest);
  }

  /** A sign of life. */
  extend(): void {
    if (this.pauses > 0 || this.#isHeld) return;
    this.deadline = Math.min(performance.now() + this.request.timeout, this.latest, this.#ownLatest);
  }

  /** The tool has a timeout of its own, which signs of life do not extend. Its host has `grace` to report it. */
  limit(ownTimeout: number, grace: number): void {
    this.ownTimeout = ownTimeout;
    this.#ownLatest = performance.now() + ownTimeout + grace;
    this.extend();
  }

  /** Counts a question of the server. Returns why it is refused; null if it is not. */
  countQuestion(): string | null {
    if (this.pauses >= MOST_OPEN_QUESTIONS) return `the call has ${MOST_OPEN_QUESTIONS} open questions already`;
    if (this.#questions >= MOST_QUESTIONS) return `the call has asked ${MOST_QUESTIONS} questions already`;
    this.#questions++;
    return null;
  }

  /** Stops the clock while a person is asked; the returned function starts it again. */
  pause(): () => void {
    if (this.pauses++ === 0) this.#pausedAt = performance.now();
    this.deadline = this.latest;
    return () => {
      if (--this.pauses === 0) this.#ownLatest += performance.now() - this.#pausedAt;
      this.extend();
    };
  }

  /** Stops both clocks while its client does not read; the returned function starts them again. */
  holdClocks(): () => void {
    const since = performance.now();
    const { latest } = this;
    this.#isHeld = true;
    this.latest = Number.POSITIVE_INFINITY;
    this.deadline = Number.POSITIVE_INFINITY;
    return () => {
      const passed = performance.now() - since;
      this.#isHeld = false;
      this.latest = latest + passed;
      this.#ownLatest += passed;
      this.extend();
    };
  }

  /** Its answer broke off while it was passed on. */
  breakOff(problem: string): void {
    const { table, id } = this;
    const text = `Server "${table.source}" answered with something that is not a JSON-RPC message. ${problem}`;
    table.fail(id, new GatewayError('source_broken', text));
  }

  /** Whether its tool has exceeded its own timeout. */
  get isOverOwn(): boolean {
    return this.deadline === this.#ownLatest;
  }

  cancel(reason: string): void {
    if (this.table.withdraw(this.id)) this.table.abandon(this, reason);
    else this.next?.cancel(reason);
  }

  expire(): void {
    const { table, id, request } = this;
    const { method, timeout, totalTimeout, sink } = request;
    table.withdraw(id);
    table.abandon(this, TIMED_OUT);
    if (this.isOverOwn) {
      const text = `The tool "${request.item?.name}" of "${table.source}" did not finish within its own timeout of ${this.ownTimeout / 1000} s, and was told to stop.`;
      sink.fail(new GatewayError(table.timeoutCode, text));
      return;
    }
    const isTotal = this.deadline === this.latest && totalTimeout > timeout;
    const [limit, key] = isTotal ? [totalTimeout, 'total_timeout'] : [Math.min(timeout, totalTimeout), 'timeout'];
    const text = `Server "${table.source}" did not answer ${method} within ${limit / 1000} s and was told to stop. Try again, or raise its ${key} in the configuration.`;
    sink.fail(new GatewayError(table.timeoutCode, text));
  }
}

/** The reason for abandoning a request that got no answer in time. */
export const TIMED_OUT = 'timed out';

export class PendingRequests {
  readonly source: string;
  /** The era that the server speaks. */
  era: Era = 'legacy';
  readonly abandoned = new AbandonedRequests();
  /** The code of requests that got no answer in time. Workers have their own, because it is a tool that was too slow. */
  readonly timeoutCode: 'source_timeout' | 'execution_timeout';
  readonly #slots = new Slots<PendingRequest>();
  readonly #events: PendingEvents;

  constructor(source: string, events: PendingEvents, timeoutCode: PendingRequests['timeoutCode'] = 'source_timeout') {
    this.source = source;
    this.timeoutCode = timeoutCode;
    this.#events = events;
  }

  get size(): number {
    return this.#slots.size;
  }

  add(request: SourceRequest): PendingRequest {
    const pending = new PendingRequest(this, this.#slots.nextId(), request);
    if (this.#slots.size === 0) startClock(this);
    this.#slots.put(pending);
    return pending;
  }

  get(id: number): PendingRequest | undefined {
    return this.#slots.get(id);
  }

  all(): readonly PendingRequest[] {
    return this.#slots.all();
  }

  /** Removes a request without an answer; false if it was already removed. */
  withdraw(id: number): boolean {
    return this.#take(id) !== undefined;
  }

  #take(id: number): PendingRequest | undefined {
    const pending = this.#slots.take(id);
    if (pending !== undefined && this.#slots.size === 0) this.#events.idle?.();
    return pending;
  }

  abandon(pending: PendingRequest, reason: string): void {
    this.abandoned.add(pending.id, pending.request);
    this.#events.abandoned(pending, reason);
  }

  /** Delivers a result that was found without reading the whole message. */
  deliver(id: number, result: Parts): void {
    const pending = this.#take(id);
    if (pending === undefined) this.abandoned.answered(id);
    else this.#succeed(pending, result);
  }

  /** Delivers a response. `id` is the request that it came in reply to, for one that does not name it. */
  settle(message: Message, id?: number): void {
    const { bytes, idStart, resultStart, resultEnd, errorStart, errorEnd } = message;
    // Without an id it may be something else of the same shape.
    if (idStart < 0 && (id === undefined || !isErrorObject(bytes, errorStart, errorEnd))) return;
    const answered = id ?? Number(idText(message));
    const pending = this.#take(answered);
    if (pending === undefined) {
      this.abandoned.answered(answered);
      return;
    }
    const { sink, method } = pending.request;
    // Anything else is not a response. A caller would not recognise it, and would wait for its timeout.
    if (bytes[resultStart] === OPEN_BRACE) this.#succeed(pending, bytes.subarray(resultStart, resultEnd));
    else if (isErrorObject(bytes, errorStart, errorEnd))
      this.#settleError(pending, bytes.subarray(errorStart, errorEnd));
    else {
      const text = `Server "${this.source}" answered ${method} with neither a result nor an error.`;
      sink.fail(new GatewayError('source_broken', text));
    }
  }

  #settleError(pending: PendingRequest, error: Buffer): void {
    const { request } = pending;
    const refusal = this.#events.refused === undefined ? null : readRefusal(error, this.era);
    if (refusal !== null) {
      pending.next = this.#events.refused!(request, refusal);
      return;
    }
    let told: Buffer;
    try {
      told = errorOf(this.source, error);
    } catch (problem) {
      this.#failQuestion(pending, problem);
      return;
    }
    this.#events.failed?.(request, told);
    request.sink.error(told, this.era);
  }

  /** A modern server asks in its results. */
  #succeed(pending: PendingRequest, result: Parts): void {
    const { sink } = pending.request;
    if (this.era === 'legacy' || !mayAsk(result)) {
      sink.result(result, this.era);
      return;
    }
    let told: Parts;
    try {
      told = inquiryOf(this.source, result);
    } catch (problem) {
      this.#failQuestion(pending, problem);
      return;
    }
    sink.result(told, this.era);
  }

  #failQuestion({ request }: PendingRequest, problem: unknown): void {
    // Long results are not checked on their way here.
    if (!(problem instanceof BadQuestion) && !(problem instanceof JsonError)) throw problem;
    const text = `Server "${this.source}" asked a question that is not passed on: ${problem.message}.`;
    request.sink.fail(new GatewayError('source_broken', text));
  }

  /** Delivers an error object, for a connection that reads its messages itself. */
  refuse(id: number, error: Buffer): void {
    const pending = this.#slots.take(id);
    if (pending === undefined) this.abandoned.answered(id);
    else pending.request.sink.error(error, this.era);
  }

  fail(id: number, error: GatewayError): void {
    this.#take(id)?.request.sink.fail(error);
  }

  failAll(error: GatewayError): void {
    for (const { id } of this.#slots.all()) this.fail(id, error);
  }

  /** Ends requests that are due. Returns whether any are left. */
  tick(now: number): boolean {
    for (const pending of this.#slots.all()) if (pending.deadline <= now) pending.expire();
    return this.#slots.size > 0;
  }
}

// One clock for all connections, which runs only while requests are pending. A timer per call would cost more than all
// other bookkeeping of the call.
const TICK = 50;
const waiting = new Set<PendingRequests>();
let clock: NodeJS.Timeout | null = null;

function startClock(table: PendingRequests): void {
  waiting.add(table);
  clock ??= setInterval(tick, TICK);
}

function tick(): void {
  const now = performance.now();
  for (const table of waiting) if (!table.tick(now)) waiting.delete(table);
  if (waiting.size > 0 || clock === null) return;
  clearInterval(clock);
  clock = null;
}

const OPEN_BRACE = 0x7b;

function isErrorObject(bytes: Buffer, start: number, end: number): boolean {
  if (start < 0 || bytes[start] !== OPEN_BRACE) return false;
  const code = findMember(bytes, 'code', start, end);
  const message = findMember(bytes, 'message', start, end);
  return (
    code !== null &&
    message !== null &&
    /^-?\d/.test(bytes.toString('latin1', code.start, code.end)) &&
    bytes[message.start] === 0x22
  );
}

/** Why a connection is closed: what its server did wrong, or the error for its calls. Absent if it is not needed. */
export type CloseReason = string | GatewayError | undefined;

/** The error for the calls of a connection that is closed. */
export function closedError(source: string, fault: CloseReason): GatewayError {
  if (fault === undefined) return new NoFault('source_unavailable', `Server "${source}" is being stopped.`);
  if (typeof fault !== 'string') return fault;
  return new GatewayError('source_broken', `Server "${source}" ${fault}. Try again in a moment.`);
}
