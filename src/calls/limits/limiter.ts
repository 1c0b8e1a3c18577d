/**
 * What a call has to pass on its way to its server: limits of its agent, of the tool and of the server, and whether the
 * server is worth asking. One lane serves all calls of an agent to an item; where there is room it only counts.
 */

import { GatewayError, toGatewayError } from '../../base/errors.ts';
import { OK } from '../../observe/metrics.ts';
import type { Ticket } from '../../protocol/contract.ts';
import { findMember } from '../../protocol/json.ts';
import { join, type Parts, sizeOf } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';
import { startedTask } from '../../protocol/task.ts';
import type { Call, Callee, Limiter } from '../call.ts';
import type { Breaker } from './breaker.ts';
import type { ResultCache } from './cache.ts';
import type { DayCount } from './days.ts';
import type { Gate, Waiting } from './gate.ts';
import type { Rate } from './rate.ts';
import { argumentsTooLarge, busy, dayOver, tooFast, waitedTooLong } from './refusals.ts';
import type { SpillStore } from './spill-store.ts';
import { cutResult } from './truncate.ts';

export interface DayLimit {
  /** Whose it is, for messages. */
  readonly owner: string;
  readonly count: DayCount;
  readonly limit: number;
}

export interface SizeLimit {
  readonly owner: string;
  readonly bytes: number;
}

export interface LimiterLimits {
  /** In the order in which they are passed: always from the agent to the server, so that no two calls wait for each other. */
  readonly gates: readonly Gate[];
  readonly rates: readonly Rate[];
  readonly days: readonly DayLimit[];
  readonly maxArguments: SizeLimit | null;
  readonly maxResult: number | null;
  readonly timeout: number;
  readonly totalTimeout: number;
  /** Whether a call has all the time that the server is given, and not only what its agent is. */
  readonly isFair: boolean;
  /** Milliseconds that a result is good for; null where none is kept. */
  readonly cacheFor: number | null;
}

/** What all lanes share. */
export interface LimiterContext {
  readonly cache: ResultCache;
  readonly kept: SpillStore;
  /** The server that is in charge by now. */
  find(id: number): { readonly source: Callee } | undefined;
  /** A call that waited has reached no server. */
  refused(call: Call, error: GatewayError): void;
}

export class CallLimiter implements Limiter {
  readonly gates: readonly Gate[];
  readonly limits: LimiterLimits;
  readonly breaker: Breaker | null;
  readonly context: LimiterContext;
  readonly timeout: number;
  readonly totalTimeout: number;
  readonly isFair: boolean;
  /** Whether more than places is to be looked at. */
  readonly isStrict: boolean;
  readonly inspects: boolean;

  constructor(limits: LimiterLimits, breaker: Breaker | null, context: LimiterContext) {
    this.gates = limits.gates;
    this.limits = limits;
    this.breaker = breaker;
    this.context = context;
    this.timeout = limits.timeout;
    this.totalTimeout = limits.totalTimeout;
    this.isFair = limits.isFair;
    const { rates, days, maxArguments, maxResult, cacheFor } = limits;
    this.isStrict = rates.length > 0 || days.length > 0 || maxArguments !== null || cacheFor !== null;
    this.inspects = maxResult !== null || cacheFor !== null;
  }

  enter(call: Call): Ticket {
    if (this.isStrict && this.#answer(call)) return call;
    const { breaker, gates } = this;
    if (breaker !== null && !breaker.isClosed) this.#checkServer(breaker);
    for (let i = 0; i < gates.length; i++) if (!gates[i]!.enter()) return this.#wait(call, i);
    return this.go(call);
  }

  /** It is in everywhere. */
  go(call: Call): Ticket {
    call.limiter = this;
    if (this.breaker !== null && !this.breaker.isClosed) this.breaker.pass(call);
    return call.send();
  }

  leave(call: Call, outcome: number, error: GatewayError | null): void {
    const { gates, breaker } = this;
    // First, because the places it frees are of no use when the server is not asked any more.
    if (breaker !== null) breaker.over(call, outcome, error, this.isFair);
    this.free(gates.length);
  }

  /** Gives back the first so many places. */
  free(count: number): void {
    for (let i = count - 1; i >= 0; i--) this.gates[i]!.leave();
  }

  inspect(call: Call, outcome: number, result: Parts, era: Era): void {
    if (call.cacheKey !== null && outcome === OK && isWhole(result, era))
      this.context.cache.keep(call.cacheKey, result, era);
    this.show(call, result, era);
  }

  /** Hands over a result, cut where it has to be. */
  show(call: Call, result: Parts, era: Era): void {
    const { maxResult } = this.limits;
    const isLong = maxResult !== null && sizeOf(result) > maxResult;
    const cut = isLong && !isStartedTask(call, result) ? this.#cut(call, result, maxResult) : null;
    if (cut === null) call.inner.result(result, era);
    else if (cut instanceof GatewayError) call.inner.fail(cut);
    else call.inner.result(cut, 'legacy');
  }

  #cut({ method, entry, by }: Call, result: Parts, limit: number): Buffer | GatewayError | null {
    try {
      return cutResult(method, entry, result, limit, (kept) => this.context.kept.keep(by.principal, kept));
    } catch (error) {
      return toGatewayError(error);
    }
  }

  /** Throws where a limit is reached. True where it has been answered already, as an equal call before. */
  #answer(call: Call): boolean {
    const { maxArguments, rates, days, cacheFor } = this.limits;
    if (maxArguments !== null) checkArguments(call, maxArguments);
    const now = performance.now();
    for (const rate of rates) if (rate.pause(now) > 0) throw tooFast(rate, rate.pause(now));
    for (const { owner, count, limit } of days) if (count.isUsedUp(limit)) throw dayOver(owner, limit, count.days.left);
    const { cache } = this.context;
    call.cacheKey = cacheFor === null ? null : cache.keyOf(call.entry, call.message);
    const known = call.cacheKey === null ? null : cache.find(call.cacheKey, cacheFor!);
    // What is refused for another reason must not use up what it did not get.
    if (known === null) this.#checkPlaces();
    for (const rate of rates) rate.take(now);
    for (const { count } of days) count.take();
    if (known !== null) call.replay(this, known.result, known.era);
    else if (call.cacheKey !== null) call.row!.cacheMisses++;
    return known !== null;
  }

  #checkServer(breaker: Breaker): void {
    const refusal = breaker.refusal();
    if (refusal !== null) throw refusal;
  }

  #checkPlaces(): void {
    if (this.breaker !== null) this.#checkServer(this.breaker);
    const full = this.gates.find((gate) => gate.isFull);
    if (full !== undefined) throw busy(full);
  }

  #wait(call: Call, at: number): Ticket {
    const gate = this.gates[at]!;
    if (gate.isFull) {
      this.free(at);
      throw busy(gate);
    }
    new WaitingCall(this, call, at);
    return call;
  }
}

/** A call before a gate. */
class WaitingCall implements Waiting {
  readonly limiter: CallLimiter;
  readonly call: Call;
  /** The gate it waits at; it is in at those before. */
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
    call.waits = this;
    limiter.gates[at]!.join(this);
  }

  admitted(): void {
    const { limiter } = this;
    for (this.at++; this.at < limiter.gates.length; this.at++) {
      const gate = limiter.gates[this.at]!;
      if (gate.enter()) continue;
      if (gate.isFull) this.refuse(busy(gate));
      else gate.join(this);
      return;
    }
    const refusal = limiter.breaker?.refusal() ?? null;
    if (refusal !== null) this.refuse(refusal);
    else this.#go();
  }

  #go(): void {
    clearTimeout(this.timer);
    const { call, limiter } = this;
    call.waits = null;
    // It may have been replaced meanwhile.
    call.source = limiter.context.find(call.entry.sourceId)?.source ?? call.source;
    try {
      limiter.go(call);
    } catch (error) {
      // Nobody else is here to catch it.
      call.inner.fail(toGatewayError(error));
    }
  }

  /** It does not get in. */
  refuse(error: GatewayError): void {
    this.quit();
    this.limiter.context.refused(this.call, error);
    this.call.refuse(error);
  }

  /** It wants in no longer. */
  quit(): void {
    clearTimeout(this.timer);
    this.call.waits = null;
    this.gate?.quit(this);
    this.limiter.free(this.at);
  }
}

function checkArguments({ message }: Call, { owner, bytes }: SizeLimit): void {
  const { method, argumentsStart, argumentsEnd, paramsStart, paramsEnd } = message;
  const size = method === 'completion/complete' ? paramsEnd - paramsStart : argumentsEnd - argumentsStart;
  if (size > bytes) throw argumentsTooLarge(owner, size, bytes);
}

/** What is to be limited comes later then. */
function isStartedTask({ message }: Call, result: Parts): boolean {
  return message.taskStart >= 0 && startedTask(join(result)) !== null;
}

/** In the modern era a result may be a question, or a task. */
function isWhole(result: Parts, era: Era): boolean {
  if (era === 'legacy') return true;
  const bytes = join(result);
  const kind = findMember(bytes, 'resultType');
  return kind === null || bytes.toString('latin1', kind.start, kind.end) === '"complete"';
}
