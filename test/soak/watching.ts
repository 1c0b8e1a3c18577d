/** What the operating system reports about a gateway under load. Only on Linux, like processes.ts. */
import { readdirSync, readlinkSync } from 'node:fs';
import { atEnd } from '../support/cleanup.ts';
import { memoryOf } from '../support/running-gateway.ts';

export interface MemoryWatch {
  /** In MB: at the start, and the maximum so far. */
  readonly base: number;
  readonly most: number;
  now(): number;
}

export function watchMemory(pid: number): MemoryWatch {
  const now = () => Math.round(memoryOf(pid));
  const base = now();
  let most = base;
  const timer = setInterval(() => {
    most = Math.max(most, now());
  }, 200);
  atEnd(() => clearInterval(timer));
  return {
    base,
    get most() {
      return most;
    },
    now,
  };
}

/** The open sockets of a process. */
export function socketsOf(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith('socket:');
    } catch {
      return false;
    }
  }).length;
}
