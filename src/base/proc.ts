/**
 * Looks at the processes of this machine, as Linux shows them in /proc. What cannot be seen is empty: on other systems
 * everything, the processes of other users, and a process that has just ended.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export function processIds(): number[] {
  return names('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** A file of a process, such as `status` or `environ`. */
export function processFile(pid: number, name: string): Buffer {
  return orElse(() => readFileSync(`/proc/${pid}/${name}`), Buffer.alloc(0));
}

export interface OpenFile {
  readonly fd: string;
  /** A path, or for example `socket:[4711]`. */
  readonly target: string;
}

export function openFiles(pid: number): OpenFile[] {
  const folder = `/proc/${pid}/fd`;
  return names(folder).map((fd) => ({ fd, target: orElse(() => readlinkSync(`${folder}/${fd}`), '') }));
}

/** Which file system a process sees: processes with the same one have the same text. */
export function fileSystemOf(pid: number): string {
  return orElse(() => readlinkSync(`/proc/${pid}/ns/mnt`), '');
}

function names(folder: string): string[] {
  return orElse(() => readdirSync(folder), []);
}

function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
