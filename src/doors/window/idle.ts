/** When a shared gateway ends by itself: nobody has used it for `shared_idle`, neither a window nor a command. */
import type { Gateway } from '../../gateway/gateway.ts';

export interface IdleWatch {
  /** Somebody uses the gateway. Returns what to do when that is over. */
  enter(): () => void;
  close(): void;
}

/** The least that the first one has to arrive, in milliseconds: the process that starts the gateway may be slow. */
const FIRST = 10_000;

/** The time begins now, and again whenever the last one has gone. */
export function watchIdle(gateway: Gateway, end: () => void): IdleWatch {
  let users = 0;
  let wasUsed = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  function start(): void {
    clearTimeout(timer);
    const { shared, sharedIdle } = gateway.config;
    if (users > 0 || isClosed || (shared && sharedIdle === 0)) return;
    const least = wasUsed ? 0 : FIRST;
    timer = setTimeout(end, shared ? Math.max(sharedIdle, least) : 0);
  }

  start();
  // An edit may say that windows do not share any more, or give another time.
  const remove = gateway.addApplier({ name: 'end of an idle gateway', apply: start });
  return {
    enter() {
      users++;
      wasUsed = true;
      clearTimeout(timer);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        users--;
        start();
      };
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      remove();
    },
  };
}
