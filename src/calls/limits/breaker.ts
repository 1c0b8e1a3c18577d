/**
 * The circuit breaker of a server. After several failures in a row the server is not called for a while, and calls fail
 * at once. Then a single call tries it. The pauses grow for as long as those attempts fail too. While only the calls of
 * one agent have failed, only that agent is kept from calling: its requests may be the reason.
 */
import { backoffDelay } from '../../base/backoff.ts';
import { GatewayError } from '../../base/errors.ts';
import { NoFault } from '../../sources/tickets.ts';
import { CANCELLED, FAILED, REFUSED, TIMEOUT } from '../outcome.ts';

/** How many failures in a row open the breaker. */
const MOST = 5;

const TROUBLE: ReadonlySet<string> = new Set(['source_unavailable', 'source_timeout', 'source_broken']);

/** Whether the error shows that the server is in trouble. Other errors mean that it is busy or rejects the request. */
function showsTrouble(error: GatewayError): boolean {
  const { code, details } = error;
  const { status } = details;
  if (error instanceof NoFault) return false;
  return TROUBLE.has(code) && !(typeof status === 'number' && status >= 400 && status < 500);
}

/** Whether calls are currently sent to a server that has failed. */
export interface BreakerState {
  /** `closed`: calls pass. `open`: calls are refused. `trying`: one call is testing the server. */
  readonly state: 'closed' | 'open' | 'trying';
  /** Failures in a row. */
  readonly failures: number;
  /** When the server is tried again, as ISO 8601; null unless the breaker is open. */
  readonly until: string | null;
}

export interface BreakerEvents {
  /** From now on no call passes, or none of `culprit`. Waiting calls fail with `error`. */
  opened(error: GatewayError, culprit: string | null): void;
  closed(): void;
}

export class Breaker {
  readonly server: string;
  readonly events: BreakerEvents;
  /** Read for every call, so it is a plain field. */
  isClosed = true;
  failures = 0;
  /** How often the breaker has opened since the last success. */
  openings = 0;
  /** When the server is tried again, on the clock of `performance.now`. */
  due = 0;
  /** The call that is testing the server. */
  probe: object | null = null;
  last: GatewayError | null = null;
  /** The only agent whose calls have failed since the last success; null if there are several. */
  culprit: string | null = null;

  constructor(server: string, events: BreakerEvents) {
    this.server = server;
    this.events = events;
  }

  /** Why a call of this agent may not pass; null if it may. */
  refusal(agent: string): GatewayError | null {
    if (this.isClosed || (this.culprit !== null && this.culprit !== agent)) return null;
    const wait = Math.max(0, this.due - performance.now());
    if (this.probe === null && wait === 0) return null;
    return this.explain(wait);
  }

  /** The call goes to the server. If the breaker is not closed, this is the call that tests the server. */
  pass(call: object): void {
    if (!this.isClosed) this.probe ??= call;
  }

  /** The call of this agent has ended. `hasFullTime`: it had the server's full timeout. */
  over(call: object, agent: string, outcome: number, error: GatewayError | null, hasFullTime: boolean): void {
    const wasProbe = this.probe === call;
    if (wasProbe) this.probe = null;
    // A cancelled or refused call says nothing about the server.
    if (outcome === CANCELLED || outcome === REFUSED) return;
    if (outcome !== FAILED && outcome !== TIMEOUT) this.close();
    else if (error !== null && showsTrouble(error) && (outcome === FAILED || hasFullTime))
      this.fail(agent, error, wasProbe);
  }

  /** The server has restarted, so the next call may test it at once. */
  restarted(): void {
    this.due = 0;
  }

  close(): void {
    this.failures = 0;
    this.openings = 0;
    this.last = null;
    if (this.isClosed) return;
    this.isClosed = true;
    this.events.closed();
  }

  fail(agent: string, error: GatewayError, wasProbe: boolean): void {
    // When a connection breaks, all of its calls end with the same error object. That counts as one failure.
    if (error === this.last) return;
    this.last = error;
    if (this.failures === 0) this.culprit = agent;
    else if (this.culprit !== agent) this.culprit = null;
    this.failures++;
    if (this.isClosed ? this.failures < MOST : !wasProbe) return;
    const isNew = this.isClosed;
    this.isClosed = false;
    const pause = backoffDelay(++this.openings);
    this.due = performance.now() + pause;
    if (isNew) this.events.opened(this.explain(pause), this.culprit);
  }

  explain(wait: number): GatewayError {
    const seconds = Math.max(1, Math.ceil(wait / 1000));
    const when = this.probe === null ? `it is tried again in ${seconds} s` : 'it is being tried again right now';
    const why = this.last === null ? '' : ` The last error: ${this.last.message}`;
    return new GatewayError(
      'source_unavailable',
      `Server "${this.server}" failed ${this.failures} times in a row and is not called for now; ${when}.${why}`,
      { details: { retryAfter: seconds } },
    );
  }

  state(): BreakerState {
    const { failures } = this;
    if (this.isClosed) return { state: 'closed', failures, until: null };
    if (this.probe !== null) return { state: 'trying', failures, until: null };
    const wait = Math.max(0, this.due - performance.now());
    return { state: 'open', failures, until: new Date(Date.now() + wait).toISOString() };
  }
}
