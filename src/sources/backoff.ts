/** When a server that failed is tried again: after growing pauses, and after long ones where it ends time after time. */

export interface Backoff {
  /** How often it has failed in a row. */
  readonly failures: number;
  /** `hasEnded`: its process is gone. Otherwise it did not come so far, or does not want us. */
  failed(hasEnded: boolean): void;
  /** It works, until it fails or is stopped. */
  works(): void;
  stopped(): void;
  /** Tries it after a pause; gives the state that it is in until then, and why. */
  later(reason: string): readonly ['down' | 'crash_loop', string];
  /** Something has changed: forgets a loop. Whether it was in one. */
  revive(): boolean;
  clear(): void;
}

/** A server that stayed up this long is not in a crash loop. */
const STEADY = 30_000;
/** One that ends so often within that time is; then it is left alone for longer and longer. */
const LOOP = { ends: 5, within: 60_000, first: 30_000, most: 300_000 };

/** `loops`: whether it is told from one that fails now and then when it only ever ends. */
export function createBackoff(again: () => void, loops: boolean): Backoff {
  let failures = 0;
  let upSince: number | null = null;
  let timer: NodeJS.Timeout | undefined;
  let ends: number[] = [];
  /** How often it was left alone in this loop. */
  let rests = 0;

  function ended(wasUp: number): void {
    const now = Date.now();
    if (wasUp > LOOP.within) rests = 0;
    ends = [...ends.filter((end) => now - end < LOOP.within), now];
  }

  return {
    get failures() {
      return failures;
    },
    failed(hasEnded) {
      const wasUp = upSince === null ? 0 : Date.now() - upSince;
      if (wasUp > STEADY) failures = 0;
      upSince = null;
      failures++;
      if (loops && hasEnded) ended(wasUp);
    },
    works() {
      upSince = Date.now();
    },
    stopped() {
      failures = 0;
    },
    later(reason) {
      const isLoop = rests > 0 || ends.length >= LOOP.ends;
      const pause = isLoop ? Math.min(LOOP.first * 2 ** rests++, LOOP.most) : backoffDelay(failures);
      timer = setTimeout(again, pause);
      timer.unref();
      if (!isLoop) return ['down', reason];
      const next = `It is tried again in ${pause / 1000} s, and at once when its folder is edited or the configuration read again`;
      return [
        'crash_loop',
        `ended ${LOOP.ends} times within ${LOOP.within / 1000} s; the last time it ${reason}. ${next}`,
      ];
    },
    revive() {
      const wasLoop = rests > 0;
      rests = 0;
      ends = [];
      failures = wasLoop ? 0 : failures;
      return wasLoop;
    },
    clear: () => clearTimeout(timer),
  };
}

/** Milliseconds before a server that failed so often in a row is tried again: twice as long each time, and never all at once. */
export function backoffDelay(failures: number): number {
  return withJitter(Math.min(FIRST * 2 ** (failures - 1), MOST));
}

/** Give or take a quarter, so that what began together does not go on together. */
export function withJitter(pause: number): number {
  return pause * (0.75 + Math.random() / 2);
}

const FIRST = 250;
const MOST = 30_000;
