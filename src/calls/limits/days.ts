/** Counts calls since midnight (UTC), together with all processes that share the data folder. */
import { messageOf } from '../../base/errors.ts';
import type { UsageStore } from '../../store/usage.ts';

/** The calls of one limit today. */
export class DayCount {
  readonly days: Days;
  readonly key: string;
  /** Calls of all processes, as far as known, including those that are `left`. */
  taken = 0;
  /** Calls that this process has taken from the limit and not made yet. */
  left = 0;
  /** Calls that were made while the file could not be written. */
  unsaved = 0;

  constructor(days: Days, key: string) {
    this.days = days;
    this.key = key;
  }

  isUsedUp(limit: number): boolean {
    this.days.checkDay();
    return this.used >= limit && !this.days.isGivenBack(this, limit);
  }

  /** Calls that were made, as far as known. */
  get used(): number {
    return this.taken - this.left + this.unsaved;
  }

  /** Counts a call. False if the limit is reached, which may be news from another process. */
  take(limit: number): boolean {
    if (this.isUsedUp(limit) || (this.left === 0 && !this.days.reserve(this, limit))) return false;
    this.left--;
    return true;
  }

  /** A call that was counted is not made. */
  giveBack(): void {
    this.left++;
  }
}

export interface DayLimit {
  /** Whose limit it is, for messages. */
  readonly owner: string;
  readonly count: DayCount;
  readonly limit: number;
}

const DAY = 86_400_000;
/**
 * A limit is taken in so many parts. Each takes a line in the file, and what a killed process has not used of its part is
 * lost for the day. Limits up to this number are taken call by call.
 */
const PARTS = 10_000;
/** Milliseconds between attempts to write a file that could not be written, and between looks for calls that are given back. */
const AGAIN_AFTER = 1_000;

export class Days {
  readonly store: UsageStore;
  readonly report: (problem: string) => void;
  readonly clock: () => number;
  readonly counts = new Map<string, DayCount>();
  today: number;
  /** When the file could not be written, by `performance.now`; null if it can. */
  failedAt: number | null = null;
  lookedAt = Number.NEGATIVE_INFINITY;

  constructor(store: UsageStore, report: (problem: string) => void, clock: () => number = Date.now) {
    this.store = store;
    this.report = report;
    this.clock = clock;
    this.today = Math.floor(clock() / DAY);
  }

  of(key: string): DayCount {
    const known = this.counts.get(key);
    if (known !== undefined) return known;
    this.checkDay();
    const count = new DayCount(this, key);
    count.taken = this.store.taken(this.date, key);
    this.counts.set(key, count);
    return count;
  }

  /** Whether a process that ended has left calls of a limit that was reached. */
  isGivenBack(count: DayCount, limit: number): boolean {
    const now = performance.now();
    if (now - this.lookedAt < AGAIN_AFTER) return false;
    this.lookedAt = now;
    count.taken = this.store.taken(this.date, count.key);
    return count.used < limit;
  }

  /** Takes calls from a limit, at least one. False if it is reached. In memory only while the file cannot be written. */
  reserve(count: DayCount, limit: number): boolean {
    if (this.failedAt === null || performance.now() - this.failedAt >= AGAIN_AFTER) {
      try {
        this.#save(count);
        count.left += this.store.take(this.date, count.key, Math.max(1, Math.floor(limit / PARTS)), limit);
        count.taken = this.store.taken(this.date, count.key);
        if (this.failedAt !== null) this.report('calls of this day are counted in the data folder again');
        this.failedAt = null;
        return count.left > 0;
      } catch (error) {
        this.#fail(error);
      }
    }
    count.unsaved++;
    count.left++;
    return true;
  }

  /** Writes the calls that were made while that was not possible. */
  #save(count: DayCount): void {
    if (count.unsaved === 0) return;
    this.store.take(this.date, count.key, count.unsaved);
    count.unsaved = 0;
  }

  #fail(error: unknown): void {
    if (this.failedAt === null) this.report(`calls of this day are counted in memory only: ${messageOf(error)}`);
    this.failedAt = performance.now();
  }

  /** Resets all counts if a new day has begun. */
  checkDay(): void {
    const today = Math.floor(this.clock() / DAY);
    if (today === this.today) return;
    this.today = today;
    for (const one of this.counts.values()) {
      one.taken = 0;
      one.left = 0;
      one.unsaved = 0;
    }
  }

  /** Drops the counters that are zero. */
  sweep(): void {
    this.checkDay();
    for (const [key, { taken, unsaved }] of this.counts) if (taken + unsaved === 0) this.counts.delete(key);
  }

  /** Milliseconds until the next day. */
  get left(): number {
    return (Math.floor(this.clock() / DAY) + 1) * DAY - this.clock();
  }

  get date(): string {
    return new Date(this.today * DAY).toISOString().slice(0, 10);
  }

  /** Gives back what was taken and not used. */
  close(): void {
    this.checkDay();
    try {
      for (const count of this.counts.values()) {
        this.#save(count);
        if (count.left > 0) this.store.take(this.date, count.key, -count.left);
        count.left = 0;
      }
    } catch (error) {
      this.#fail(error);
    }
    this.store.close();
  }
}
