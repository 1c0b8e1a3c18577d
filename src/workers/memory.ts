/**
 * Measures the memory of a worker and of all processes it started. Resident memory counts, because runtimes reserve far
 * more than they use. Pages that processes share count once, because a fork does not double the memory.
 */
import { readdirSync } from 'node:fs';
import { processFile } from '../base/proc.ts';

export interface MemoryWatch {
  stop(): void;
}

/** Milliseconds between two looks at a worker. */
const LOOK = { busy: 200, idle: 2_000 };
const PAGE = 4_096;
/** The most processes that are counted. */
const MOST = 1_000;

/** Calls `exceeded` once, when the worker uses more than `most` bytes. */
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

/** In bytes. Cheap to read, but shared pages count for each process. */
export function residentOf(pid: number): number {
  return sum(pid, (one) => Number(read(one, 'statm').split(' ')[1] ?? 0) * PAGE);
}

/** In bytes, with shared pages divided among the processes that share them. */
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

/** Any of its threads may have started a child. */
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

function read(pid: number, file: string): string {
  return processFile(pid, file).toString();
}
