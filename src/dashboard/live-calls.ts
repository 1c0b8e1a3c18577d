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
/** How many calls that went well are shown when many come at once, and in each second if that goes on: nobody reads quicker. */
const BURST = 120;
const STEADY = 50;

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
  /** In no order: each knows its place. */
  readonly #running: WatchedCall[] = [];
  /** The number of the first call that those who look have not been told of, and how many since then did not go well. */
  #untold = 0;
  #odd = 0;
  /** How many calls that went well may be shown now. */
  #room = BURST;
  #lastId = 0;
  epoch = 0;
  /** Called when there is something new. Null if calls are not shown one by one. */
  #tell: (() => void) | null = null;
  /** Whether more came in the last second than anyone can read. Then nobody is told of each one. */
  isBusy = false;
  #valueBytes = 0;
  #second = emptySecond();
  readonly #durations = new Float64Array(MOST_DURATIONS);
  /** What is kept of calls besides their figures. */
  recording: Recording;

  constructor(options: LiveCallsOptions) {
    this.options = options;
    this.recording = options.recording();
    this.renew();
  }

  /** Dates of calls are made from the other clock, and what is recorded is known, because every look at these costs. */
  renew(): void {
    this.epoch = Date.now() - performance.now();
    this.recording = this.options.recording();
  }

  begin(call: Call): CallWatch {
    const watched = new WatchedCall(++this.#lastId, call, this, this.#running.length);
    this.#running.push(watched);
    if (!this.isBusy) this.#tell?.();
    return watched;
  }

  ended(call: WatchedCall): void {
    const last = this.#running.pop()!;
    if (last !== call) {
      this.#running[call.place] = last;
      last.place = call.place;
    }
    const second = this.#second;
    second.calls++;
    second.bytesIn += call.bytesIn;
    second.bytesOut += call.bytesOut;
    if (!call.isPlain) {
      this.#odd++;
      if (call.outcome === 'refused') second.refused++;
      else if (call.outcome !== 'cancelled') second.errors++;
    }
    if (second.calls <= MOST_DURATIONS) this.#durations[second.calls - 1] = call.ms - call.heldMs;
    this.#keep(call);
    if (!this.isBusy) this.#tell?.();
  }

  #keep(call: WatchedCall): void {
    // Objects of seconds ago are in no cache any more: they are looked at only if they may have values.
    if (this.#next - this.#oldest === MOST_CALLS) {
      if (this.#valueBytes > 0) this.#dropOldest();
      else this.#oldest++;
    }
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

  /**
   * What is new since the last time, oldest first, how many calls were left out, and how many have ended. Of more calls than
   * people can read, the first that went well are left out: `recent` still has them.
   */
  news(): StreamEvents['calls'] {
    const before = performance.now() - SLOW;
    const shown = this.#running.filter((call) => !call.isShown && call.startedAt < before).slice(-MOST_ROWS);
    for (const call of shown) call.isShown = true;
    const ended = this.#next;
    const from = Math.max(this.#untold, this.#oldest);
    // From the last one back, only as far as there is one to show.
    let count = 0;
    for (let at = ended - 1; at >= from && shown.length < MOST_ROWS && (this.#room > 0 || this.#odd > 0); at--) {
      const call = this.#kept[at % MOST_CALLS]!;
      if (!call.isPlain) this.#odd--;
      else if (this.#room > 0) this.#room--;
      else continue;
      shown.push(call);
      count++;
    }
    const skipped = ended - this.#untold - count;
    this.#forgetNews();
    return { calls: shown.reverse().map((call) => call.row()), skipped, ended };
  }

  /** Whether a call is under way that may have to be shown soon, before it ends. */
  get isAwaited(): boolean {
    return this.isShown && !this.isBusy && this.#running.some(({ isShown }) => !isShown);
  }

  get isShown(): boolean {
    return this.#tell !== null;
  }

  /** Whether news would show anything that went well. If not, they wait for the end of the second, so that the last calls are shown then. */
  get hasRoom(): boolean {
    return this.#room > 0;
  }

  #forgetNews(): void {
    this.#untold = this.#next;
    this.#odd = 0;
  }

  /** Whether somebody is shown calls from now on: `tell` is called when there is something new, unless that would be too often. */
  showNews(tell: (() => void) | null): void {
    if (this.#tell === null) this.#forgetNews();
    this.#tell = tell;
  }

  /** Ends the second. */
  tick(now: number): Tick {
    this.renew();
    const sums = this.#second;
    const count = Math.min(sums.calls, MOST_DURATIONS);
    const sorted = this.#durations.subarray(0, count).sort();
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
    this.#room = Math.min(BURST, this.#room + STEADY);
    this.isBusy = sums.calls > STEADY;
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

  /** Nobody looks any more. */
  rest(): void {
    this.showNews(null);
    this.#second = emptySecond();
    this.isBusy = false;
  }

  /** Forgets arguments and results. */
  forgetValues(): void {
    for (const call of this.#all()) call.forgetValues();
    this.#valueBytes = 0;
  }
}

function emptySecond() {
  return { calls: 0, errors: 0, refused: 0, bytesIn: 0, bytesOut: 0 };
}
