/**
 * Whether a server is worth asking. One that fails time after time is not asked for a while, and its callers are answered at
 * once; then one call tries it, and the pauses grow for as long as that fails too.
 */

import { backoffDelay } from '../../base/backoff.ts';
import { GatewayError } from '../../base/errors.ts';
import { CANCELLED, FAILED, REFUSED, TIMEOUT } from '../outcome.ts';

/** How often in a row it may fail. */
const MOST = 5;

const TELLING: ReadonlySet<string> = new Set(['source_unavailable', 'source_timeout', 'source_broken']);

/** Whether it says something about the server. Others say that it is busy, or that it does not like the request. */
function isTelling({ code, details: { status } }: GatewayError): boolean {
  return TELLING.has(code) && !(typeof status === 'number' && status >= 400 && status < 500);
}

/** Whether a server that failed is asked at present. */
export interface BreakerState {
  /** `closed`: calls pass. `open`: they do not. `trying`: one call finds out. */
  readonly state: 'closed' | 'open' | 'trying';
  /** Failures in a row. */
  readonly failures: number;
  /** When it is tried again, as ISO 8601; null unless it is open. */
  readonly until: string | null;
}

export interface BreakerEvents {
  /** Nobody is let through from here on; `error` says so to those who wait. */
  opened(error: GatewayError): void;
  closed(): void;
}

export class Breaker {
  readonly server: string;
  readonly events: BreakerEvents;
  /** What is asked for every call. */
  isClosed = true;
  failures = 0;
  /** How often it has been opened without a success since. */
  openings = 0;
  /** When it is tried again, by `performance.now`. */
  due = 0;
  /** The call that finds out. */
  probe: object | null = null;
  last: GatewayError | null = null;

  constructor(server: string, events: BreakerEvents) {
    this.server = server;
    this.events = events;
  }

  /** Why a call is not let through; null where it may try. */
  refusal(): GatewayError | null {
    if (this.isClosed) return null;
    const wait = Math.max(0, this.due - performance.now());
    if (this.probe === null && wait === 0) return null;
    return this.explain(wait);
  }

  /** The call goes to the server. While it is not known to answer, that makes it the one that finds out. */
  pass(call: object): void {
    if (!this.isClosed) this.probe ??= call;
  }

  /** `hasFullTime`: the call had all the time that the server is given. */
  over(call: object, outcome: number, error: GatewayError | null, hasFullTime: boolean): void {
    const wasProbe = this.probe === call;
    if (wasProbe) this.probe = null;
    // Neither says anything about the server.
    if (outcome === CANCELLED || outcome === REFUSED) return;
    if (outcome !== FAILED && outcome !== TIMEOUT) this.close();
    else if (error !== null && isTelling(error) && (outcome === FAILED || hasFullTime)) this.fail(error, wasProbe);
  }

  /** It has been started anew: the next call finds out whether that helped. */
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

  fail(error: GatewayError, wasProbe: boolean): void {
    // When a connection breaks, all calls on it end with the same error: that is one failure.
    if (error === this.last) return;
    this.last = error;
    this.failures++;
    if (this.isClosed ? this.failures < MOST : !wasProbe) return;
    const isNew = this.isClosed;
    this.isClosed = false;
    const pause = backoffDelay(++this.openings);
    this.due = performance.now() + pause;
    if (isNew) this.events.opened(this.explain(pause));
  }

  explain(wait: number): GatewayError {
    const seconds = Math.max(1, Math.ceil(wait / 1000));
    const when = this.probe === null ? `it is tried again in ${seconds} s` : 'it is being tried again right now';
    const why = this.last === null ? '' : ` The last time: ${this.last.message}`;
    return new GatewayError(
      'source_unavailable',
      `Server "${this.server}" failed ${this.failures} times in a row and is not asked for now; ${when}.${why}`,
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
