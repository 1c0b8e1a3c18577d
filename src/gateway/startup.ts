/**
 * The startup window, in which servers are tried for the first time. Lists wait for its end, and so do calls to unknown
 * items.
 */

export interface StartupWindow {
  /** Resolves when the window ends; null afterwards. */
  readonly current: Promise<void> | null;
  /** Like `current`, but resolves after a second at the latest. */
  readonly brief: Promise<void> | null;
}

/**
 * Milliseconds that a handshake waits for the servers' introductions. Only the very first start needs it: later starts
 * have them stored.
 */
const BRIEF = 1_000;

/**
 * The window ends when `needed` is done and either `tried` is done or `most` milliseconds have passed. Then `ended` is
 * called.
 */
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

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
