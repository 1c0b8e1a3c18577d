/** Stops what has not been used for a while. */

export interface IdleTimer {
  use(): void;
  /** From now on it is looked after; also when the pause has changed. */
  arm(): void;
  disarm(): void;
}

/** `pause` gives milliseconds without use; null keeps it running. */
export function createIdleTimer(pause: () => number | null, isBusy: () => boolean, stop: () => void): IdleTimer {
  let timer: NodeJS.Timeout | undefined;
  let lastUse = Date.now();

  function arm(): void {
    clearTimeout(timer);
    const most = pause();
    if (most === null) return;
    const idle = Date.now() - lastUse;
    const busy = isBusy();
    if (!busy && idle >= most) {
      stop();
      return;
    }
    timer = setTimeout(arm, busy ? most : most - idle);
    timer.unref();
  }

  return {
    use() {
      lastUse = Date.now();
    },
    arm,
    disarm: () => clearTimeout(timer),
  };
}
