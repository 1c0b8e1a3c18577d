/** Where a server speaks unasked: opened again, with growing pauses, whenever it ends. */

export interface Listening {
  /** It has ended. */
  lost(): void;
  stop(): void;
}

const PAUSE = { first: 1_000, most: 30_000 };
/** What held this long has not failed. */
const STEADY = 60_000;

/** `missed`: there was nobody to hear of changes for a while. */
export function keepListening(open: () => void, missed: () => void): Listening {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let pause = PAUSE.first;
  let opened = performance.now();

  function again(): void {
    timer = undefined;
    opened = performance.now();
    open();
    missed();
  }

  open();
  return {
    lost() {
      if (stopped || timer !== undefined) return;
      if (performance.now() - opened > STEADY) pause = PAUSE.first;
      timer = setTimeout(again, pause);
      timer.unref();
      pause = Math.min(pause * 2, PAUSE.most);
    },
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
