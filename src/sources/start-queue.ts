/**
 * Starts many servers in turns: as many at a time as the cores can take, so that none of them misses its time-out and
 * the gateway itself still answers. More are started while the cores are idle, because a server may just wait for
 * something. Servers that were quick the last time come first. A server whose time-out is counted is one that has
 * started, never one that waits here.
 */
import { availableParallelism, cpus } from 'node:os';

/** What decides when a server is started. */
export interface StartRank {
  readonly required: boolean;
  /** Milliseconds that its last start took; null if that is not known. */
  readonly startTime: number | null;
}

/** The place of one server among those that are starting. */
export interface StartTurn {
  /** Resolves when the server may start. */
  readonly come: Promise<void>;
  /** Its turn comes now. */
  skip(): void;
  /** It has started, or failed to. */
  leave(): void;
}

export interface StartQueue {
  join(rank: StartRank): StartTurn;
}

/**
 * With 30 servers on two busy cores, two per core take half as long again as all at once. Four take as long as all at
 * once, and the first ones are up much sooner.
 */
const PER_CORE = 4;
/** In milliseconds. How often idle cores are looked for while servers wait. */
const LOOK = 100;
/** A server that takes longer than this no longer keeps others from starting. */
const LONG = 5_000;
/** The share of the cores that has to be idle for more servers to start. */
const IDLE = 0.3;

interface WaitingStart {
  readonly rank: StartRank;
  readonly begin: () => void;
}

/** `most` servers start at a time; `idle` returns the share of the cores that was idle since it was last asked. */
export function createStartQueue(
  most: number = PER_CORE * availableParallelism(),
  idle: () => number = idleShare(),
): StartQueue {
  const waiting = new Set<WaitingStart>();
  let running = 0;
  let timer: NodeJS.Timeout | undefined;
  let isPlanned = false;

  /** Servers join one after another in the same turn of the event loop, so the first is chosen after the last joined. */
  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    queueMicrotask(() => {
      isPlanned = false;
      startMore(most - running);
    });
  }

  function startMore(count: number): void {
    const next = [...waiting].sort(byRank).slice(0, Math.max(0, count));
    for (const { begin } of next) begin();
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    } else if (timer === undefined) {
      idle();
      timer = setInterval(look, LOOK);
      timer.unref();
    }
  }

  function look(): void {
    startMore(idle() >= IDLE ? Math.max(1, most / 2) : most - running);
  }

  return {
    join(rank) {
      let come = () => {};
      let occupied: NodeJS.Timeout | null = null;
      const free = () => {
        if (occupied === null) return;
        clearTimeout(occupied);
        occupied = null;
        running--;
        plan();
      };
      const one: WaitingStart = {
        rank,
        begin() {
          if (!waiting.delete(one)) return;
          running++;
          occupied = setTimeout(free, LONG);
          occupied.unref();
          come();
        },
      };
      waiting.add(one);
      plan();
      return { come: new Promise((resolve) => (come = resolve)), skip: one.begin, leave: free };
    },
  };
}

/** Required servers first, then quick ones. What is not known comes last. Equal ones keep their order. */
function byRank(a: WaitingStart, b: WaitingStart): number {
  if (a.rank.required !== b.rank.required) return a.rank.required ? -1 : 1;
  const [one, other] = [a.rank.startTime ?? Number.MAX_VALUE, b.rank.startTime ?? Number.MAX_VALUE];
  return one - other;
}

/** Measures the share of all cores that was idle between two calls. */
function idleShare(): () => number {
  let before = { idle: 0, all: 0 };
  return () => {
    const now = { idle: 0, all: 0 };
    for (const { times } of cpus()) {
      now.idle += times.idle;
      now.all += times.user + times.nice + times.sys + times.irq + times.idle;
    }
    const all = now.all - before.all;
    const share = all <= 0 ? 0 : (now.idle - before.idle) / all;
    before = now;
    return share;
  };
}
