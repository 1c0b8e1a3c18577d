/**
 * Lock files: one process at a time works on a shared resource. A lock is taken over if its holder died, or has not
 * refreshed it for a while.
 */
import { randomBytes } from 'node:crypto';
import { link, readFile, rename, stat, unlink, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from './errors.ts';
import { createFile } from './files.ts';

export interface Lock {
  /** False if another process took the lock over because this one was suspended for too long. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * Milliseconds without a refresh after which a holder counts as dead. Holders refresh three times as often, unless
 * their machine is suspended.
 */
const SILENCE = 10_000;
const PATIENCE = 15_000;
const PAUSE = 10;

/** Works on `file` while no other process does. Waits 15 seconds for the others, then throws. */
export async function withLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const path = `${file}.lock`;
  const patience = Date.now() + PATIENCE;
  let lock = await tryLock(path);
  while (lock === null) {
    if (Date.now() > patience)
      throw new GatewayError(
        'source_busy',
        `Another process holds ${path}. Remove the file if no such process is running.`,
      );
    await sleep(PAUSE * (0.5 + Math.random()));
    lock = await tryLock(path);
  }
  try {
    return await work();
  } finally {
    await lock.release();
  }
}

/**
 * Null if another process holds it. `silence`: after how many milliseconds without a refresh a holder counts as dead.
 */
export async function tryLock(path: string, silence = SILENCE): Promise<Lock | null> {
  const mine = `${process.pid} ${hostname()} ${randomBytes(9).toString('base64url')}\n`;
  if (!(await createFile(path, mine))) {
    await removeAbandoned(path, silence);
    return null;
  }
  const touch = () => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  };
  const timer = setInterval(touch, silence / 3).unref();
  const isHeld = async () => (await contentOf(path)) === mine;
  return {
    isHeld,
    async release() {
      clearInterval(timer);
      if (await isHeld()) await unlink(path).catch(() => {});
    },
  };
}

/** What was seen of locks whose time is in the future, by path. */
const ahead = new Map<string, { readonly stamp: string; readonly since: number }>();

/** Whether a lock was not refreshed for so long. The clock of its holder may be ahead of ours: then we watch it ourselves. */
function isSilent(path: string, holder: string, mtimeMs: number, silence: number): boolean {
  const age = Date.now() - mtimeMs;
  if (age >= 0) {
    ahead.delete(path);
    return age >= silence;
  }
  const stamp = `${mtimeMs} ${holder}`;
  const seen = ahead.get(path);
  if (seen?.stamp !== stamp) ahead.set(path, { stamp, since: performance.now() });
  return seen?.stamp === stamp && performance.now() - seen.since >= silence;
}

async function removeAbandoned(path: string, silence: number): Promise<void> {
  const holder = await contentOf(path);
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory())
    throw new GatewayError('storage_failed', `${path} is a folder in the place of a lock file. Remove it.`);
  if (holder === null || found === null) return;
  if (!isSilent(path, holder, found.mtimeMs, silence) && !isDead(holder)) return;
  ahead.delete(path);
  const aside = `${path}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  // Only one of several processes can move the file. If it moved a newer lock, it puts that back.
  await rename(path, aside).catch(() => {});
  const moved = await contentOf(aside);
  if (moved === null) return;
  if (moved !== holder) await link(aside, path).catch(() => {});
  await unlink(aside).catch(() => {});
}

/** Whether a lock file was left behind: its holder died, or has not refreshed it for a while. */
export async function isAbandoned(path: string): Promise<boolean> {
  const holder = await contentOf(path);
  const found = await stat(path).catch(() => null);
  if (holder === null || found === null || found.isDirectory()) return false;
  return isDead(holder) || isSilent(path, holder, found.mtimeMs, SILENCE);
}

/** Process ids are valid only on their own machine, and several machines may share the folder. */
function isDead(holder: string): boolean {
  const [pid, host] = holder.trim().split(' ');
  return host === hostname() && !isAlive(Number(pid));
}

function contentOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null);
}

/**
 * Whether a process with this id runs on this machine. Ids are reused, so it may be a different process than before.
 */
export function isAlive(pid: number): boolean {
  // 0 and negative numbers address process groups.
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
