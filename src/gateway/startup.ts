/** The start of a gateway, while servers are tried for the first time: lists wait for its end, and so do calls of unknown items. */

export interface StartupWindow {
  /** Resolves at its end; null from then on. */
  readonly current: Promise<void> | null;
  /** The same, but resolves after a second at the latest. */
  readonly brief: Promise<void> | null;
}

/** What servers say about themselves is worth this wait, but only at the first start: later starts know it from before. */
const BRIEF = 1_000;

/** Ends when `needed` is done and either `tried` is or `most` milliseconds have passed. Then `ended` is called. */
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
