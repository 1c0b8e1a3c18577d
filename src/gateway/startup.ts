/** The time at the start in which servers are still being tried: lists wait for its end, and calls of what is not there yet. */

export interface StartupWindow {
  /** Resolves at its end; null from then on. */
  readonly current: Promise<void> | null;
  /** The same, but for a moment only. */
  readonly brief: Promise<void> | null;
}

/** What servers say of themselves is worth this wait, at the first start only: later it is known from before. */
const BRIEF = 1_000;

/** Ends when all of `needed` is done and `tried` is, or `most` milliseconds have passed. Then `ended` is called. */
export function createStartupWindow(
  tried: Promise<void>,
  most: number,
  needed: Promise<void>,
  ended: () => void,
): StartupWindow {
  const moment = pause(BRIEF);
  let current: Promise<void> | null = Promise.all([Promise.race([tried, pause(most)]), needed]).then(() => {
    current = null;
    ended();
  });
  return {
    get current() {
      return current;
    },
    get brief() {
      return current === null ? null : Promise.race([current, moment]);
    },
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
