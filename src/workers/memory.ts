/**
 * How much memory a worker has, with every process that it started. What is resident counts, because the runtimes reserve
 * far more than they use; pages that processes share count once, because a fork is no second worker.
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface MemoryWatch {
  stop(): void;
}

/** How often is looked at one that works, and at one that does not. */
const LOOK = { busy: 200, idle: 2_000 };
const PAGE = 4_096;
/** More processes than that are not looked at one by one. */
const MOST = 1_000;

/** Tells once, when there is more than allowed. */
export function watchMemory(pid: number, most: number, isBusy: () => boolean, exceeded: () => void): MemoryWatch {
  let timer: NodeJS.Timeout | undefined;
  const lookIn = (ms: number) => {
    timer = setTimeout(look, ms).unref();
  };
  const look = () => {
    const used = residentOf(pid);
    if (used > most && shareOf(pid) > most) exceeded();
    else lookIn(used * 2 > most || isBusy() ? LOOK.busy : LOOK.idle);
  };
  if (process.platform === 'linux') lookIn(LOOK.busy);
  return { stop: () => clearTimeout(timer) };
}

/** Bytes, cheap to read; what is shared counts for each. */
export function residentOf(pid: number): number {
  return sum(pid, (one) => Number(read(one, 'statm').split(' ')[1] ?? 0) * PAGE);
}

function shareOf(pid: number): number {
  return sum(pid, (one) => {
    const kilobytes = /^Pss:\s+(\d+) kB/m.exec(read(one, 'smaps_rollup'))?.[1];
    return kilobytes === undefined ? Number(read(one, 'statm').split(' ')[1] ?? 0) * PAGE : Number(kilobytes) * 1024;
  });
}

function sum(pid: number, bytesOf: (pid: number) => number): number {
  const all = [pid];
  let bytes = 0;
  for (let i = 0; i < all.length && i < MOST; i++) {
    bytes += bytesOf(all[i]!);
    all.push(...childrenOf(all[i]!));
  }
  return bytes;
}

/** Any of its threads may have started them. */
function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      read(pid, `task/${task}/children`)
        .split(' ')
        .filter((text) => text.trim() !== '')
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** Empty for one that is gone. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
