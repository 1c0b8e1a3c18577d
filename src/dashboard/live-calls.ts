/**
 * The calls of a gateway while somebody looks on: the last ones in a ring, those under way, and sums for each second.
 * Nothing of this exists while nobody looks.
 */
import type { Call, CallWatcher } from '../calls/call.ts';
import type { CallWatch } from '../calls/observers.ts';
import type { CallDetail, CallRow, Recording, Tick } from './api-types.ts';
import { rounded, WatchedCall } from './watched-call.ts';

/** How many calls are kept, and how many seconds. */
export const MOST_CALLS = 2_000;
const MOST_TICKS = 300;
/** The most calls of a second whose durations are compared. */
const MOST_DURATIONS = 4_096;
/** Bytes of arguments and results that are kept of all together. */
const MOST_VALUES = 16 * 1_024 * 1_024;
/** A call that takes longer than this is shown before it has ended. Milliseconds. */
const SLOW = 150;
/** The most rows that are sent at once, and how many of them may be calls that went well: nobody reads quicker. */
const MOST_ROWS = 200;
const MOST_PLAIN = 40;

export interface LiveCallsOptions {
  readonly redact: (text: string) => string;
  recording(): Recording;
  inFlight(): number;
}

export class LiveCalls implements CallWatcher {
  readonly options: LiveCallsOptions;
  readonly ticks: Tick[] = [];
  /** The last calls: the one that ended as number N is at N modulo `MOST_CALLS`. */
  readonly #kept: (WatchedCall | null)[] = [];
  /** The numbers of the oldest that is kept, and of the next one. */
  #oldest = 0;
  #next = 0;
  readonly #running = new Set<WatchedCall>();
  /** Calls of which something is new for those who look. */
  #news: WatchedCall[] = [];
  #skipped = 0;
  #lastId = 0;
  #valueBytes = 0;
  #second = emptySecond();

  constructor(options: LiveCallsOptions) {
    this.options = options;
  }

  begin(call: Call): CallWatch {
    const watched = new WatchedCall(++this.#lastId, call, this);
    this.#running.add(watched);
    return watched;
  }

  ended(call: WatchedCall): void {
    this.#running.delete(call);
    const second = this.#second;
    second.calls++;
    second.bytesIn += call.bytesIn;
    second.bytesOut += call.bytesOut;
    if (call.outcome === 'refused') second.refused++;
    else if (call.outcome !== 'ok' && call.outcome !== 'cached' && call.outcome !== 'cancelled') second.errors++;
    if (second.count < MOST_DURATIONS) second.durations[second.count++] = call.ms - call.heldMs;
    this.#keep(call);
    this.#tell(call);
  }

  #keep(call: WatchedCall): void {
    if (this.#next - this.#oldest === MOST_CALLS) this.#dropOldest();
    this.#kept[this.#next++ % MOST_CALLS] = call;
    this.#valueBytes += call.valueBytes;
    while (this.#valueBytes > MOST_VALUES) this.#dropOldest();
  }

  #dropOldest(): void {
    const place = this.#oldest++ % MOST_CALLS;
    this.#valueBytes -= this.#kept[place]!.valueBytes;
    this.#kept[place] = null;
  }

  /** Those that are kept, oldest first. */
  #all(): WatchedCall[] {
    return Array.from({ length: this.#next - this.#oldest }, (_, i) => this.#kept[(this.#oldest + i) % MOST_CALLS]!);
  }

  #tell(call: WatchedCall): void {
    if (this.#news.length < MOST_CALLS) this.#news.push(call);
    else this.#skipped++;
  }

  /**
   * What is new since the last time, oldest first, and how many calls were left out. Of more calls than people can read,
   * the first that went well are left out: `recent` still has them.
   */
  news(): { readonly calls: readonly CallRow[]; readonly skipped: number } {
    const before = performance.now() - SLOW;
    for (const call of this.#running)
      if (!call.isShown && call.startedAt < before) {
        call.isShown = true;
        this.#tell(call);
      }
    const news = this.#news;
    let left = news.reduce((count, call) => count + (call.isPlain ? 1 : 0), 0) - MOST_PLAIN;
    const shown = (left <= 0 ? news : news.filter((call) => !call.isPlain || left-- <= 0)).slice(-MOST_ROWS);
    const skipped = this.#skipped + news.length - shown.length;
    this.forgetNews();
    return { calls: shown.map((call) => call.row()), skipped };
  }

  /** Nobody shows calls now. */
  forgetNews(): void {
    this.#news = [];
    this.#skipped = 0;
  }

  /** Ends the second. */
  tick(now: number): Tick {
    const { durations, count, ...sums } = this.#second;
    const sorted = durations.subarray(0, count).sort();
    const at = (share: number) => (count === 0 ? null : rounded(sorted[Math.ceil(share * count) - 1]!));
    const tick: Tick = {
      t: now,
      ...sums,
      inFlight: this.options.inFlight(),
      p50: at(0.5),
      p95: at(0.95),
      p99: at(0.99),
    };
    this.#second = emptySecond();
    this.ticks.push(tick);
    if (this.ticks.length > MOST_TICKS) this.ticks.shift();
    return tick;
  }

  /** Newest first. */
  recent(limit: number): CallRow[] {
    const all = [...this.#all(), ...this.#running].sort((a, b) => b.id - a.id);
    return all.slice(0, limit).map((call) => call.row());
  }

  /** How many calls are no longer kept. */
  get dropped(): number {
    return this.#oldest;
  }

  find(id: number): CallDetail | null {
    const call = [...this.#all(), ...this.#running].find((one) => one.id === id);
    return call === undefined ? null : call.detail();
  }

  /** Nobody looks any more. Calls under way are forgotten, because their ends are not noticed. */
  rest(): void {
    this.#running.clear();
    this.forgetNews();
    this.#second = emptySecond();
  }

  /** Forgets arguments and results. */
  forgetValues(): void {
    for (const call of this.#all()) call.forgetValues();
    this.#valueBytes = 0;
  }
}

function emptySecond() {
  return {
    calls: 0,
    errors: 0,
    refused: 0,
    bytesIn: 0,
    bytesOut: 0,
    count: 0,
    durations: new Float64Array(MOST_DURATIONS),
  };
}
