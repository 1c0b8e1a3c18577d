/**
 * The compiled limits for one agent's calls to one entry: those of the agent, the tool and the server, plus the
 * server's circuit breaker. A call that stays within its limits only increments counters here.
 */
import { GatewayError, toGatewayError } from '../../base/errors.ts';
import { findMember } from '../../protocol/json.ts';
import { join, type Parts, sizeOf } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';
import { startedTask } from '../../protocol/task.ts';
import type { Call, Limiter } from '../call.ts';
import { CACHED, OK } from '../outcome.ts';
import type { Breaker } from './breaker.ts';
import type { ResultCache } from './cache.ts';
import type { DayLimit } from './days.ts';
import type { Gate, Waiting } from './gate.ts';
import type { Rate } from './rate.ts';
import type { SharedBudgets, Spent } from './shared-budgets.ts';
import type { SpillStore } from './spill-store.ts';
import { cutResult } from './truncate.ts';

export interface SizeLimit {
  readonly owner: string;
  readonly bytes: number;
}

export interface LimiterLimits {
  /**
   * Always entered in this order, from the agent to the server. With one fixed order, two calls cannot deadlock waiting
   * for each other.
   */
  readonly gates: readonly Gate[];
  readonly rates: readonly Rate[];
  readonly days: readonly DayLimit[];
  readonly maxArguments: SizeLimit | null;
  readonly maxResult: number | null;
  readonly timeout: number;
  readonly totalTimeout: number;
  /**
   * Whether calls get the server's full timeout. If an agent's limit shortens it, a timeout does not count against the
   * server.
   */
  readonly hasFullTime: boolean;
  /** How long a result is cached, in milliseconds; null if it is not. */
  readonly cacheFor: number | null;
}

/** What all limiters share. */
export interface LimiterContext {
  readonly cache: ResultCache;
  readonly spilled: SpillStore;
  /** Null if there is one replica. */
  readonly shared: SharedBudgets | null;
}

export class CallLimiter implements Limiter {
  readonly gates: readonly Gate[];
  readonly limits: LimiterLimits;
  readonly breaker: Breaker | null;
  readonly context: LimiterContext;
  /** Whether there are limits to check in addition to the gates. */
  readonly hasBudgets: boolean;
  readonly inspects: boolean;

  constructor(limits: LimiterLimits, breaker: Breaker | null, context: LimiterContext) {
    this.gates = limits.gates;
    this.limits = limits;
    this.breaker = breaker;
    this.context = context;
    const { rates, days, maxArguments, maxResult, cacheFor } = limits;
    this.hasBudgets = rates.length > 0 || days.length > 0 || maxArguments !== null || cacheFor !== null;
    this.inspects = maxResult !== null || cacheFor !== null;
  }

  /** Throws if a limit is reached. Returns false if the call was answered from the cache or waits for its turn. */
  enter(call: Call): boolean {
    const { limits } = this;
    call.timeout = limits.timeout;
    call.totalTimeout = limits.totalTimeout;
    if (this.hasBudgets) {
      const { shared } = this.context;
      if (shared !== null) return this.#spendShared(call, shared);
      if (this.#spend(call)) return false;
    }
    return this.#pass(call);
  }

  /** The call waits until the store has counted it. It has no place meanwhile. */
  #spendShared(call: Call, shared: SharedBudgets): boolean {
    const { maxArguments, rates, days, cacheFor } = this.limits;
    if (maxArguments !== null) requireSmall(call, maxArguments);
    if (rates.length + days.length === 0 && cacheFor === null) return this.#pass(call);
    this.#requireRoom(call);
    call.cacheKey = cacheFor === null ? null : shared.keyOf(call.entry, call.message);
    const waiting = {
      quit() {
        call.waiting = null;
      },
    };
    call.waiting = waiting;
    shared.spend(rates, days, call.cacheKey).then(
      (spent) => {
        if (call.waiting !== waiting) return;
        call.waiting = null;
        try {
          if (this.#mayGoOn(call, spent) && this.#pass(call)) call.resume();
        } catch (error) {
          call.refuse(error);
        }
      },
      (error: unknown) => {
        if (call.waiting !== waiting) return;
        call.waiting = null;
        call.refuse(error);
      },
    );
    return false;
  }

  /** Throws if a budget is used up. False if the call was answered with a kept result. */
  #mayGoOn(call: Call, spent: Spent): boolean {
    switch (spent.state) {
      case 'used up':
        throw tooFast(spent.rate, spent.pause);
      case 'day over':
        throw dayOver(spent.day.owner, spent.day.limit, spent.day.count.days.left);
      case 'away':
        return !this.#spend(call, spent.parts);
      case 'taken':
        if (spent.kept === null) {
          if (call.cacheKey !== null) call.counter!.cacheMisses++;
          return true;
        }
        call.begin();
        call.end(CACHED, null, spent.kept.result);
        this.#deliver(call, spent.kept.result, spent.kept.era);
        return false;
      default:
        return spent satisfies never;
    }
  }

  #pass(call: Call): boolean {
    const { breaker, gates } = this;
    if (breaker !== null && !breaker.isClosed) requireClosed(breaker, call);
    for (let i = 0; i < gates.length; i++) if (!gates[i]!.enter()) return this.#wait(call, i);
    this.occupy(call);
    return true;
  }

  /** The call has passed all gates. */
  occupy(call: Call): void {
    call.limiter = this;
    if (this.breaker !== null && !this.breaker.isClosed) this.breaker.pass(call);
  }

  leave(call: Call, outcome: number, error: GatewayError | null): void {
    const { gates, breaker, limits } = this;
    // The breaker goes first: if it opens, no waiting call may take the places that become free.
    if (breaker !== null) breaker.over(call, call.by.agent, outcome, error, limits.hasFullTime);
    this.free(gates.length);
  }

  /** Frees the call's place in the first `count` gates. */
  free(count: number): void {
    for (let i = count - 1; i >= 0; i--) this.gates[i]!.leave();
  }

  inspect(call: Call, outcome: number, result: Parts, era: Era): void {
    if (call.cacheKey !== null && outcome === OK && isComplete(result, era)) {
      const { shared, cache } = this.context;
      if (shared === null) cache.keep(call.cacheKey, result, era);
      else shared.keep(call.cacheKey, result, era, this.limits.cacheFor ?? 0);
    }
    this.#deliver(call, result, era);
  }

  /** Delivers a result, cut to the maximum size if it is longer. */
  #deliver(call: Call, result: Parts, era: Era): void {
    const { maxResult } = this.limits;
    const isLong = maxResult !== null && sizeOf(result) > maxResult;
    const cut = isLong && !isStartedTask(call, result) ? this.#cut(call, result, maxResult) : null;
    if (cut === null) call.inner.result(result, era);
    else if (cut instanceof GatewayError) call.inner.fail(cut);
    else call.inner.result(cut, 'legacy');
  }

  #cut({ method, entry, by }: Call, result: Parts, limit: number): Buffer | GatewayError | null {
    try {
      return cutResult(method, entry, result, limit, (text) => this.context.spilled.keep(by, text));
    } catch (error) {
      return toGatewayError(error);
    }
  }

  /** Throws if a budget is used up. Returns true if the call was answered from the cache. */
  #spend(call: Call, parts = 1): boolean {
    const { maxArguments, rates, days: all, cacheFor } = this.limits;
    const days = parts === 1 ? all : all.map((day) => ({ ...day, limit: Math.ceil(day.limit / parts) }));
    if (maxArguments !== null) requireSmall(call, maxArguments);
    const now = performance.now();
    for (const rate of rates) if (rate.pause(now, parts) > 0) throw tooFast(rate, rate.pause(now, parts));
    for (const { owner, count, limit } of days) if (count.isUsedUp(limit)) throw dayOver(owner, limit, count.days.left);
    const { cache } = this.context;
    call.cacheKey = cacheFor === null ? null : cache.keyOf(call.entry, call.message);
    const known = call.cacheKey === null ? null : cache.find(call.cacheKey, cacheFor!);
    // Check this before taking from the budgets: a call that is refused for another reason must not use them up.
    if (known === null) this.#requireRoom(call);
    for (let i = 0; i < days.length; i++) if (!days[i]!.count.take(days[i]!.limit)) this.#dayOver(i);
    for (const rate of rates) rate.take(now, parts);
    if (known === null) {
      if (call.cacheKey !== null) call.counter!.cacheMisses++;
      return false;
    }
    call.begin();
    call.end(CACHED, null, known.result);
    this.#deliver(call, known.result, known.era);
    return true;
  }

  /** Another process made the last calls of the day. */
  #dayOver(at: number): never {
    const { days } = this.limits;
    for (const { count } of days.slice(0, at)) count.giveBack();
    const { owner, limit, count } = days[at]!;
    throw dayOver(owner, limit, count.days.left);
  }

  #requireRoom(call: Call): void {
    if (this.breaker !== null) requireClosed(this.breaker, call);
    const full = this.gates.find((gate) => !gate.hasRoomFor(call.by.agent, busy));
    if (full !== undefined) throw busy(full);
  }

  #wait(call: Call, at: number): boolean {
    const gate = this.gates[at]!;
    if (!gate.hasRoomFor(call.by.agent, busy)) {
      this.free(at);
      throw busy(gate);
    }
    call.waiting = new WaitingCall(this, call, at);
    return false;
  }
}

/** A call in the queue of a gate. */
class WaitingCall implements Waiting {
  readonly limiter: CallLimiter;
  readonly call: Call;
  /** The index of the gate it waits at. It already holds a place in every gate before that one. */
  at: number;
  gate: Gate | null = null;
  before: Waiting | null = null;
  after: Waiting | null = null;
  readonly timer: NodeJS.Timeout;

  constructor(limiter: CallLimiter, call: Call, at: number) {
    this.limiter = limiter;
    this.call = call;
    this.at = at;
    this.timer = setTimeout(() => this.refuse(waitedTooLong(limiter.gates[this.at]!, call.timeout)), call.timeout);
    this.timer.unref();
    limiter.gates[at]!.join(this);
  }

  get agent(): string {
    return this.call.by.agent;
  }

  admitted(): void {
    const { limiter, call } = this;
    for (this.at++; this.at < limiter.gates.length; this.at++) {
      const gate = limiter.gates[this.at]!;
      if (gate.enter()) continue;
      if (!gate.hasRoomFor(this.agent, busy)) this.refuse(busy(gate));
      else gate.join(this);
      return;
    }
    const refusal = limiter.breaker?.refusal(this.agent) ?? null;
    if (refusal !== null) {
      this.refuse(refusal);
      return;
    }
    clearTimeout(this.timer);
    limiter.occupy(call);
    call.resume();
  }

  /** Ends the wait with an error. */
  refuse(error: GatewayError): void {
    this.quit();
    this.call.fail(error);
  }

  /** Ends the wait because the caller no longer wants the answer. */
  quit(): void {
    clearTimeout(this.timer);
    this.call.waiting = null;
    this.gate?.quit(this);
    this.limiter.free(this.at);
  }
}

function requireClosed(breaker: Breaker, { by }: Call): void {
  const refusal = breaker.refusal(by.agent);
  if (refusal !== null) throw refusal;
}

function requireSmall({ message }: Call, { owner, bytes }: SizeLimit): void {
  const { method, argumentsStart, argumentsEnd, paramsStart, paramsEnd } = message;
  const size = method === 'completion/complete' ? paramsEnd - paramsStart : argumentsEnd - argumentsStart;
  if (size <= bytes) return;
  throw new GatewayError(
    'too_large',
    `The arguments have ${size} bytes, more than the ${bytes} that "max_arguments" allows (${owner}). Send less.`,
  );
}

/** Such a result only names the MCP task. The result that `max_result` applies to comes later. */
function isStartedTask({ message }: Call, result: Parts): boolean {
  return message.taskStart >= 0 && startedTask(join(result)) !== null;
}

/** In the modern era a result may also be a question or an MCP task. */
function isComplete(result: Parts, era: Era): boolean {
  if (era === 'legacy') return true;
  const bytes = join(result);
  const kind = findMember(bytes, 'resultType');
  return kind === null || bytes.toString('latin1', kind.start, kind.end) === '"complete"';
}

// Errors for calls that reach a limit. Each names the limit, its owner and when to try again.

/** Seconds. It is unknown how long the running calls will take, but a place may become free at any time. */
const BUSY_RETRY = 1;

function busy({ owner, running, waiting }: Gate): GatewayError {
  return new GatewayError(
    'source_busy',
    `${owner} is busy: ${calls(running)} under way and ${waiting} waiting, which is all that its "concurrency" and "queue" allow. Try again in ${BUSY_RETRY} s.`,
    { details: { retryAfter: BUSY_RETRY } },
  );
}

function waitedTooLong({ owner, limit }: Gate, ms: number): GatewayError {
  return new GatewayError(
    'source_busy',
    `${owner} is busy: the call has waited ${ms / 1000} s, because its "concurrency" allows ${calls(limit)} at one time. Try again in ${BUSY_RETRY} s.`,
    { details: { retryAfter: BUSY_RETRY } },
  );
}

function tooFast({ owner, limit }: Rate, pause: number): GatewayError {
  const seconds = Math.ceil(pause / 1000);
  return new GatewayError(
    'rate_limited',
    `${owner} has reached its "rate" of ${limit.text}. Try again in ${seconds} s.`,
    { details: { retryAfter: seconds } },
  );
}

function dayOver(owner: string, limit: number, left: number): GatewayError {
  const seconds = Math.ceil(left / 1000);
  return new GatewayError(
    'rate_limited',
    `${owner} has reached its "calls_per_day" of ${limit}. The next day (UTC) begins in ${seconds} s.`,
    { details: { retryAfter: seconds } },
  );
}

function calls(count: number): string {
  return count === 1 ? '1 call' : `${count} calls`;
}
