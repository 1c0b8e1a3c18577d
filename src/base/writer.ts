/**
 * Which process has a file open for writing, as far as the system tells: Linux lists the open files of the processes of
 * this user. A program that saves in place keeps the file open until the last byte is written.
 */
import { readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Looking costs time, so on a machine with more open files than this the rest is not looked at. */
const MAX_FILES = 50_000;
/** How many files are looked at in one turn: about a millisecond. */
const FILES_A_TURN = 500;
/** The access mode in the flags of an open file: 0 is reading only. */
const ACCESS = 3;

/** The id of a process, or null if none is known. */
export async function writerOf(file: string): Promise<number | null> {
  if (process.platform !== 'linux') return null;
  const path = orElse(() => realpathSync(file), null);
  if (path === null) return null;
  let seen = 0;
  let turns = 1;
  for (const pid of orElse(() => readdirSync('/proc'), [])) {
    if (!/^\d+$/.test(pid)) continue;
    // The processes of other users cannot be looked at. Asynchronous calls would take many times as long.
    const open = orElse(() => readdirSync(`/proc/${pid}/fd`), []);
    if (open.some((fd) => targetOf(pid, fd) === path && isWriting(pid, fd))) return Number(pid);
    seen += open.length + 1;
    if (seen > MAX_FILES) return null;
    if (seen > turns * FILES_A_TURN) {
      turns++;
      await nextTurn();
    }
  }
  return null;
}

function targetOf(pid: string, fd: string): string {
  return orElse(() => readlinkSync(`/proc/${pid}/fd/${fd}`), '');
}

function isWriting(pid: string, fd: string): boolean {
  const info = orElse(() => readFileSync(`/proc/${pid}/fdinfo/${fd}`, 'utf8'), '');
  const flags = /^flags:\s+([0-7]+)$/m.exec(info)?.[1] ?? '0';
  return (Number.parseInt(flags, 8) & ACCESS) !== 0;
}

/** A process, and what it has open, may be gone at any moment. */
function orElse<T, Else>(read: () => T, otherwise: Else): T | Else {
  try {
    return read();
  } catch {
    return otherwise;
  }
}
