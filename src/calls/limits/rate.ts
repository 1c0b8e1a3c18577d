/**
 * How many calls in how long. As many as the rate names may come at once, and as time goes by new ones become possible one
 * by one (the generic cell rate algorithm): one number says all, and nothing has to run.
 */
import type { RateLimit } from '../../config/call-limits.ts';

/** What adding up fractions may be off by. */
const ROUNDING = 1e-6;

export class Rate {
  /** Whose it is, for messages. */
  readonly owner: string;
  readonly limit: RateLimit;
  /** Milliseconds that one call uses up. */
  readonly interval: number;
  /** When everything that was used is available again. */
  fullAt = 0;

  constructor(owner: string, limit: RateLimit) {
    this.owner = owner;
    this.limit = limit;
    this.interval = limit.period / limit.count;
  }

  /** Milliseconds until a call is possible; 0 for now. */
  pause(now: number): number {
    const wait = this.fullAt - now - (this.limit.period - this.interval);
    return wait > ROUNDING ? wait : 0;
  }

  take(now: number): void {
    this.fullAt = Math.max(this.fullAt, now) + this.interval;
  }
}
