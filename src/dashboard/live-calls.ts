/**
 * The calls of a gateway while somebody looks on: the last ones in a ring, those under way, and sums for each second.
 * Nothing of this exists while nobody looks.
 */
import type { Call, CallWatcher } from '../calls/call.ts';
import type { CallWatch } from '../calls/observers.ts';
import type { CallDetail, CallRow, Recording, StreamEvents, Tick } from './api-types.ts';
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
/** The most rows that are sent at once. */
const MOST_ROWS = 200;
/** How many calls that went well are shown when many come at once, and with each batch if that goes on: nobody reads quicker. */
const BURST = 120;
const STEADY = 12;

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
  /** How many calls that went well may be shown now. */
  #room = BURST;
  #lastId = 0;
  epoch = 0;
  /** Whether calls are shown one by one. If not, nothing is collected for that. */
  isShown = false;
  #valueBytes = 0;
  #second = emptySecond();

  constructor(options: LiveCallsOptions) {
    this.options = options;
    this.setClock();
  }

  /** Dates of calls are made from the other clock, because every look at a clock costs. */
  setClock(): void {
    this.epoch = Date.now() - performance.now();
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
    if (!this.isShown) return;
    if (this.#news.length < MOST_CALLS) this.#news.push(call);
    else this.#skipped++;
  }

  /**
   * What is new since the last time, oldest first, how many calls were left out, and how many have ended. Of more calls than people can read,
   * the first that went well are left out: `recent` still has them.
   */
  news(): StreamEvents['calls'] {
    const before = performance.now() - SLOW;
    for (const call of this.#running)
      if (!call.isShown && call.startedAt < before) {
        call.isShown = true;
        this.#tell(call);
      }
    const news = this.#news;
    const plain = news.reduce((count, call) => count + (call.isPlain ? 1 : 0), 0);
    let left = plain - this.#room;
    this.#room = Math.min(BURST, this.#room - Math.min(plain, this.#room) + STEADY);
    const shown = (left <= 0 ? news : news.filter((call) => !call.isPlain || left-- <= 0)).slice(-MOST_ROWS);
    const skipped = this.#skipped + news.length - shown.length;
    this.forgetNews();
    return { calls: shown.map((call) => call.row()), skipped, ended: this.#next };
  }

  forgetNews(): void {
    if (this.#news.length > 0) this.#news = [];
    this.#skipped = 0;
  }

  /** Whether somebody is shown calls from now on. */
  showNews(isShown: boolean): void {
    this.isShown = isShown;
    if (!isShown) this.forgetNews();
  }

  /** Ends the second. */
  tick(now: number): Tick {
    this.setClock();
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

  get endedCount(): number {
    return this.#next;
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
    this.showNews(false);
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
