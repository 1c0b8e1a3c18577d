/** Where a server speaks unasked: opened again, with growing pauses, whenever it ends. */

export interface Listening {
  /** The server has taken it. */
  taken(): void;
  /** It has ended. */
  lost(): void;
  stop(): void;
}

const PAUSE = { first: 1_000, most: 30_000 };
/** What held this long has not failed. */
const STEADY = 60_000;

/** `missed`: there was nobody to hear of changes for a while, and now there is. */
export function keepListening(open: () => void, missed: () => void): Listening {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let pause = PAUSE.first;
  let opened = performance.now();
  let isAgain = false;

  function again(): void {
    timer = undefined;
    opened = performance.now();
    isAgain = true;
    open();
  }

  open();
  return {
    taken() {
      if (isAgain) missed();
    },
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
