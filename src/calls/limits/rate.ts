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

  /** Its name among replicas. */
  readonly key: string;

  constructor(owner: string, limit: RateLimit, key = '') {
    this.owner = owner;
    this.key = key;
    this.limit = limit;
    this.interval = limit.period / limit.count;
  }

  /**
   * Milliseconds until the next call is possible; 0 if it is possible now. A replica that counts alone has one of several
   * `parts` of the rate.
   */
  pause(now: number, parts = 1): number {
    const wait = this.fullAt - now - (this.limit.period - this.#usedBy(parts));
    return wait > ROUNDING ? wait : 0;
  }

  take(now: number, parts = 1): void {
    this.fullAt = Math.max(this.fullAt, now) + this.#usedBy(parts);
  }

  /** At least one call is possible. */
  #usedBy(parts: number): number {
    return this.interval * Math.min(parts, this.limit.count);
  }
}
