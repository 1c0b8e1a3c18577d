/**
 * Ends what a server left behind outside of its process group: a process with a session of its own, whose parent is
 * gone. Every process of a server inherits a variable with a mark of its start, which the system shows in /proc. One that
 * clears its environment is not found; only a sandbox holds that.
 */
import { randomBytes } from 'node:crypto';
import { processFile, processIds } from '../base/proc.ts';

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
    const found = processIds().filter((pid) => pid !== process.pid && processFile(pid, 'environ').includes(wanted));
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
