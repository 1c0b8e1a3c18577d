/**
 * Which process has a file open for writing, as far as the system tells: Linux lists the open files of the processes of
 * this user. A program that saves in place keeps the file open until the last byte is written.
 */
import { realpathSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openFiles, processFile, processIds } from './proc.ts';

/** Looking costs time, so on a machine with more open files than this the rest is not looked at. */
const MAX_FILES = 50_000;
/** How many files are looked at in one turn: about a millisecond. */
const FILES_A_TURN = 500;
/** The access mode in the flags of an open file: 0 is reading only. */
const ACCESS = 3;

/** The id of a process, or null if none is known. */
export async function writerOf(file: string): Promise<number | null> {
  if (process.platform !== 'linux') return null;
  const path = realPath(file);
  if (path === null) return null;
  let seen = 0;
  let turns = 1;
  for (const pid of processIds()) {
    // Asynchronous calls would take many times as long.
    const open = openFiles(pid);
    if (open.some(({ fd, target }) => target === path && isWriting(pid, fd))) return pid;
    seen += open.length + 1;
    if (seen > MAX_FILES) return null;
    if (seen > turns * FILES_A_TURN) {
      turns++;
      await nextTurn();
    }
  }
  return null;
}

function isWriting(pid: number, fd: string): boolean {
  const flags = /^flags:\s+([0-7]+)$/m.exec(processFile(pid, `fdinfo/${fd}`).toString())?.[1] ?? '0';
  return (Number.parseInt(flags, 8) & ACCESS) !== 0;
}

function realPath(file: string): string | null {
  try {
    return realpathSync(file);
  } catch {
    return null;
  }
}
