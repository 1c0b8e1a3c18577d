/** Each full minute, for as long as anything depends on the time of day. */
import { nextMinute } from '../access/permission.ts';

export interface Minutes {
  /** Something else may depend on the time now. */
  reset(): void;
  stop(): void;
}

export function createMinutes(isNeeded: () => boolean, tick: () => void): Minutes {
  let timer: NodeJS.Timeout | undefined;
  function schedule(): void {
    const now = Date.now();
    timer = setTimeout(() => {
      schedule();
      tick();
    }, nextMinute(now) - now);
    timer.unref();
  }
  const stop = () => clearTimeout(timer);
  return {
    reset() {
      stop();
      if (isNeeded()) schedule();
    },
    stop,
  };
}
