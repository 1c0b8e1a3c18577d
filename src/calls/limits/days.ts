/** Counts calls since midnight (UTC). The counts are saved at intervals, so that they survive a restart. */
import { messageOf } from '../../base/errors.ts';
import type { CallCounts, UsageStore } from '../../store/usage.ts';

/** The number of calls today. */
export class DayCount {
  readonly days: Days;
  count = 0;
  /** How many of them are not saved yet. */
  unsaved = 0;

  constructor(days: Days) {
    this.days = days;
  }

  isUsedUp(limit: number): boolean {
    this.days.checkDay();
    return this.count >= limit;
  }

  take(): void {
    this.count++;
    this.unsaved++;
    this.days.saveSoon();
  }
}

const DAY = 86_400_000;
/** Milliseconds between saves: the most that is lost if the process is killed. */
const SAVED_AFTER = 1_000;

export class Days {
  readonly store: UsageStore;
  readonly report: (problem: string) => void;
  readonly clock: () => number;
  readonly counts = new Map<string, DayCount>();
  today: number;
  /** Set after a failure. From then on nothing is saved, because the operator may still need the damaged file. */
  isLost = false;
  /** Today's counts in the file; null before it is read. */
  known: CallCounts | null = null;
  saving: Promise<void> | null = null;
  timer: NodeJS.Timeout | undefined;

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
    this.known ??= this.read();
    const count = new DayCount(this);
    count.count = this.known.get(key) ?? 0;
    this.counts.set(key, count);
    return count;
  }

  read(): CallCounts {
    try {
      return this.store.read(this.date);
    } catch (error) {
      this.lose(error);
      return new Map();
    }
  }

  /** Resets all counts if a new day has begun. */
  checkDay(): void {
    const today = Math.floor(this.clock() / DAY);
    if (today === this.today) return;
    this.today = today;
    this.known = new Map();
    for (const one of this.counts.values()) {
      one.count = 0;
      one.unsaved = 0;
    }
  }

  /** Drops the counters that are zero. */
  sweep(): void {
    this.checkDay();
    for (const [key, { count }] of this.counts) if (count === 0) this.counts.delete(key);
  }

  /** Milliseconds until the next day. */
  get left(): number {
    return (Math.floor(this.clock() / DAY) + 1) * DAY - this.clock();
  }

  get date(): string {
    return new Date(this.today * DAY).toISOString().slice(0, 10);
  }

  saveSoon(): void {
    if (this.isLost || this.timer !== undefined) return;
    this.timer = setTimeout(() => void this.save(), SAVED_AFTER);
    this.timer.unref();
  }

  /** Only one save runs at a time. */
  async save(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const before = this.saving;
    this.saving = (async () => {
      await before;
      await this.write();
    })();
    await this.saving;
  }

  async write(): Promise<void> {
    this.checkDay();
    const unsaved = [...this.counts].filter(([, one]) => one.unsaved > 0);
    if (unsaved.length === 0 || this.isLost) return;
    const { today } = this;
    const added = new Map(unsaved.map(([key, one]) => [key, one.unsaved]));
    try {
      const sums = await this.store.add(this.date, added);
      if (today !== this.today) return;
      this.known = sums;
      for (const [key, one] of unsaved) {
        one.unsaved -= added.get(key)!;
        // Other processes may have added calls to the file.
        one.count = sums.get(key)! + one.unsaved;
      }
    } catch (error) {
      this.lose(error);
    }
  }

  lose(error: unknown): void {
    if (this.isLost) return;
    this.isLost = true;
    this.report(`calls of this day are counted in memory only: ${messageOf(error)}`);
  }

  async close(): Promise<void> {
    await this.save();
  }
}
