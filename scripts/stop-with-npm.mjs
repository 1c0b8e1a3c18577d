import { readFileSync } from 'node:fs';

/**
 * Stops this process when npm is stopped. npm starts scripts in a shell that does not pass signals on, so this polls whether
 * npm is still running: a process whose parent has ended gets another parent.
 */
export function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const before = lineage();
  const timer = setInterval(() => {
    if (lineage() === before) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, 500);
  timer.unref();
}

/** Our parent and, if that is npm's shell, npm. Not further up: with `nohup npm start` the terminal may close. */
function lineage() {
  const parent = process.ppid;
  try {
    const [, name, grandparent] = /^\d+ \((.*)\) \S (\d+)/.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'));
    return name === 'sh' ? `${parent} ${grandparent}` : `${parent}`;
  } catch {
    return `${parent}`;
  }
}
