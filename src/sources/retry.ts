/** When a server that failed is tried again: after growing pauses. */

export interface Retry {
  /** How often it has failed in a row. */
  readonly failures: number;
  failed(): void;
  /** It works, until it fails or is stopped. */
  works(): void;
  stopped(): void;
  /** Tries it after a pause. */
  later(): void;
  clear(): void;
}

/** A server that stayed up this long is not in a crash loop. */
const STEADY = 30_000;

export function createRetry(again: () => void): Retry {
  let failures = 0;
  let upSince: number | null = null;
  let timer: NodeJS.Timeout | undefined;
  return {
    get failures() {
      return failures;
    },
    failed() {
      if (upSince !== null && Date.now() - upSince > STEADY) failures = 0;
      upSince = null;
      failures++;
    },
    works() {
      upSince = Date.now();
    },
    stopped() {
      failures = 0;
    },
    later() {
      timer = setTimeout(again, retryPause(failures));
      timer.unref();
    },
    clear: () => clearTimeout(timer),
  };
}

/** Milliseconds before a server that failed so often in a row is tried again: twice as long each time, and never all at once. */
export function retryPause(failures: number): number {
  return spread(Math.min(FIRST * 2 ** (failures - 1), MOST));
}

/** Give or take a quarter, so that what began together does not go on together. */
export function spread(pause: number): number {
  return pause * (0.75 + Math.random() / 2);
}

const FIRST = 250;
const MOST = 30_000;
