/**
 * Ends what a server left behind outside of its process group: a process with a session of its own, whose parent is
 * gone. Every process of a server inherits a variable with a mark of its start, which the system shows in /proc. One that
 * clears its environment is not found; only a sandbox holds that.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

export const MARK_VARIABLE = 'TOOLGATE_RUN';
/** The beginning of all marks of this process, for the watchdog. */
export const OWN_MARKS: string = randomBytes(8).toString('hex');

/** A process may start another one while we look. */
const ROUNDS = 5;
let starts = 0;

/** A mark for one start of a server. */
export function newMark(): string {
  return `${OWN_MARKS}.${++starts}.`;
}

export function killMarked(mark: string): void {
  const wanted = Buffer.from(`${MARK_VARIABLE}=${mark}`);
  for (let round = 0; round < ROUNDS; round++) {
    const found = processes().filter((pid) => environmentOf(pid)?.includes(wanted) === true);
    if (found.length === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Already gone.
      }
    }
  }
}

/** Empty on systems without /proc. */
function processes(): number[] {
  try {
    return readdirSync('/proc')
      .map(Number)
      .filter((pid) => Number.isInteger(pid) && pid !== process.pid);
  } catch {
    return [];
  }
}

/** Null for processes of other users, and for those that have ended. */
function environmentOf(pid: number): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/environ`);
  } catch {
    return null;
  }
}
