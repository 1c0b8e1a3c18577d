/**
 * Limits how many calls may start in a period, with the generic cell rate algorithm. A full burst may start at once;
 * after that, calls become possible one by one as time passes. The state is a single number, and no timer is needed.
 */
import type { RateLimit } from '../../config/call-limits.ts';

/** Tolerance for the rounding errors of adding up fractions. */
const ROUNDING = 1e-6;

export class Rate {
  /** Whose rate it is, for messages. */
  readonly owner: string;
  readonly limit: RateLimit;
  /** Milliseconds of the period that one call uses up. */
  readonly interval: number;
  /** When the full rate is available again. */
  fullAt = 0;

  constructor(owner: string, limit: RateLimit) {
    this.owner = owner;
    this.limit = limit;
    this.interval = limit.period / limit.count;
  }

  /** Milliseconds until the next call is possible; 0 if it is possible now. */
  pause(now: number): number {
    const wait = this.fullAt - now - (this.limit.period - this.interval);
    return wait > ROUNDING ? wait : 0;
  }

  take(now: number): void {
    this.fullAt = Math.max(this.fullAt, now) + this.interval;
  }
}
