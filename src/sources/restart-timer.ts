/** Decides when a failed server is started again: after growing delays, and after long ones if it keeps ending. */
import { backoffDelay } from '../base/backoff.ts';

/** After a server was up for this long, its next failure counts as the first again. */
const STEADY = 30_000;
/** A server that ends this often within this time is in a crash loop, and is restarted after ever longer delays. */
const LOOP = { ends: 5, within: 60_000, first: 30_000, most: 300_000 };

export class RestartTimer {
  /** Failures in a row. */
  failures = 0;
  readonly #restart: () => void;
  readonly #findsLoops: boolean;
  #upSince: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #ends: number[] = [];
  /** Long waits in the current crash loop. */
  #waits = 0;

  /** `findsLoops`: whether a server that keeps ending is treated differently from one that fails now and then. */
  constructor(restart: () => void, findsLoops: boolean) {
    this.#restart = restart;
    this.#findsLoops = findsLoops;
  }

  /** The server is up. */
  works(): void {
    this.#upSince = Date.now();
  }

  /** `hasEnded`: its process is gone. Otherwise it never got that far, or refuses to serve us. */
  failed(hasEnded: boolean): void {
    const upFor = this.#upSince === null ? 0 : Date.now() - this.#upSince;
    if (upFor > STEADY) this.failures = 0;
    this.#upSince = null;
    this.failures++;
    if (this.#findsLoops && hasEnded) this.#noteEnd(upFor);
  }

  #noteEnd(upFor: number): void {
    const now = Date.now();
    if (upFor > LOOP.within) this.#waits = 0;
    this.#ends = [...this.#ends.filter((end) => now - end < LOOP.within), now];
  }

  /** The server was stopped on purpose. */
  stopped(): void {
    this.failures = 0;
  }

  /** Schedules the next attempt. Returns the state until then, and the reason for it. */
  schedule(reason: string): readonly ['down' | 'crash_loop', string] {
    const isLoop = this.#waits > 0 || this.#ends.length >= LOOP.ends;
    const delay = isLoop ? Math.min(LOOP.first * 2 ** this.#waits++, LOOP.most) : backoffDelay(this.failures);
    this.clear();
    this.#timer = setTimeout(this.#restart, delay);
    this.#timer.unref();
    if (!isLoop) return ['down', reason];
    const next = `It is tried again in ${delay / 1000} s, and at once when its folder is edited or the configuration read again`;
    return [
      'crash_loop',
      `ended ${LOOP.ends} times within ${LOOP.within / 1000} s; the last time it ${reason}. ${next}`,
    ];
  }

  /** Something changed, so the crash loop is forgotten. Returns whether there was one. */
  revive(): boolean {
    const wasLoop = this.#waits > 0;
    this.#waits = 0;
    this.#ends = [];
    if (wasLoop) this.failures = 0;
    return wasLoop;
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
