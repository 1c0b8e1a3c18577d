import { readFileSync } from 'node:fs';

/**
 * npm starts us through a shell that does not pass signals on, so when npm is stopped nobody tells us: we look whether it is still there.
 * A process whose parent has ended gets another one.
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

/** Our parent and, where that is npm's shell, npm. Further up is nothing of ours: a terminal may close behind `nohup npm start`. */
function lineage() {
  const parent = process.ppid;
  try {
    const [, name, grandparent] = /^\d+ \((.*)\) \S (\d+)/.exec(readFileSync(`/proc/${parent}/stat`, 'utf8'));
    return name === 'sh' ? `${parent} ${grandparent}` : `${parent}`;
  } catch {
    return `${parent}`;
  }
}
