/** One at a time, also among processes: for a file that several may read, change and write. */
import { randomBytes } from 'node:crypto';
import { link, readFile, rename, stat, unlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from './errors.ts';
import { createFile } from './files.ts';

/** Nobody holds it for longer than a few milliseconds: whoever seems to has died, or the machine stood still. */
const ABANDONED = 10_000;
const PATIENCE = 15_000;
const PAUSE = 10;

export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = `${file}.lock`;
  const mine = `${process.pid} ${randomBytes(9).toString('base64url')}\n`;
  const patience = Date.now() + PATIENCE;
  while (!(await createFile(lock, mine))) {
    await clear(lock);
    if (Date.now() > patience)
      throw new GatewayError('source_busy', `${lock} is held by another process. Remove it if there is none.`);
    await sleep(PAUSE * (0.5 + Math.random()));
  }
  try {
    return await work();
  } finally {
    // Not ours any more if we stood still for so long that another took it away.
    if ((await contentOf(lock)) === mine) await unlink(lock).catch(() => {});
  }
}

/** Takes away a lock whose owner is gone. */
async function clear(lock: string): Promise<void> {
  const held = await contentOf(lock);
  const age = await stat(lock).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => null,
  );
  if (held === null || age === null || (age < ABANDONED && isAlive(Number.parseInt(held, 10)))) return;
  const aside = `${lock}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  // Only one of several can move it; and what was moved may be a newer one, which goes back.
  await rename(lock, aside).catch(() => {});
  const moved = await contentOf(aside);
  if (moved === null) return;
  if (moved !== held) await link(aside, lock).catch(() => {});
  await unlink(aside).catch(() => {});
}

function contentOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
