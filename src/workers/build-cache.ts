/**
 * Folders that are built once per key and never changed afterwards. Several processes may need the same folder at the
 * same time, and any of them may die, or be suspended for an hour, while it builds. So every attempt has its own
 * folder, and one small file, written last, names the good one:
 *
 *     <root>/<key>/ready.json   the name of the good folder
 *     <root>/<key>/failed.json  why there is none, for a while
 *     <root>/<key>/building     the lock of the process that builds
 *     <root>/<key>/<random>/    an attempt
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { replaceFile, writeFailure } from '../base/files.ts';
import { printJson } from '../base/json-file.ts';
import { type Lock, tryLock } from '../base/lock.ts';
import { isObject } from '../base/objects.ts';
import { EnvironmentError } from './environment.ts';

export interface FolderBuild {
  /** The folder of all builds of one namespace. */
  readonly root: string;
  readonly key: string;
  readonly signal: AbortSignal | null;
  progress(message: string): void;
  /** Fills the folder, which does not exist yet. What it returns is written to ready.json. Throws if it fails. */
  build(folder: string): Promise<Readonly<Record<string, unknown>>>;
  /** Whether a finished folder still works. */
  isGood(folder: string): Promise<boolean>;
}

const READY = 'ready.json';
const FAILED = 'failed.json';
const LOCK = 'building';

/** A failure is not retried for this long. Not longer, because the network may have caused it. */
const FAILURE_LASTS = 10 * 60_000;
/** A builder without a sign of life for this long counts as dead. */
const SILENCE = 30_000;
const PAUSE = 100;
/** How much of the log of a failure is kept. */
const LOG_KEPT = 16 * 1024;

export async function buildOnce(job: FolderBuild): Promise<string> {
  const place = join(job.root, job.key);
  let lock: Lock | null = null;
  for (let waited = false; ; waited = true) {
    const ready = await findReady(place, job);
    if (ready !== null) return ready;
    await throwKnownFailure(place);
    lock = await lockPlace(place);
    if (lock !== null) break;
    if (!waited) job.progress('waiting for another process that builds the same environment');
    await pause(job.signal);
  }
  try {
    return (await findReady(place, job)) ?? (await build(place, lock, job));
  } finally {
    await lock.release();
  }
}

/** The next attempt builds again, although nothing has changed. */
export async function forgetFailures(root: string): Promise<void> {
  for (const key of await namesIn(root)) await rm(join(root, key, FAILED), { force: true });
}

/**
 * Gives a finished draft its name, in one step. If another process was faster, it wrote the same files: then `witness`, the
 * file that was written last, is there.
 */
export async function moveDraft(draft: string, place: string, witness: string): Promise<void> {
  try {
    await rename(draft, place);
  } catch (error) {
    await rm(draft, { recursive: true, force: true }).catch(() => {});
    if ((await contentOf(join(place, witness))) === null) throw writeFailure(place, error);
  }
}

/**
 * Removes old builds below `root`. The current one stays, and the one used before it, in case an edit is undone.
 *
 * @param usedFile the file in a build's folder whose time says when the build was last used.
 * @param keepMs builds that were used within this time stay too.
 */
export async function removeOlder(root: string, current: string, usedFile = READY, keepMs = 0): Promise<void> {
  const others = (await namesIn(root)).filter((name) => name !== current);
  const used = await Promise.all(others.map(async (name) => ({ name, at: await timeOf(join(root, name, usedFile)) })));
  used.sort((a, b) => b.at - a.at);
  for (const { name, at } of used.slice(1)) {
    const place = join(root, name);
    if (Date.now() - at < keepMs || (await contentOf(join(place, LOCK))) !== null) continue;
    await rm(join(place, READY), { force: true }).catch(() => {});
    await removeFolder(place);
  }
}

async function build(place: string, lock: Lock, job: FolderBuild): Promise<string> {
  // Removes attempts that were interrupted.
  for (const name of await namesIn(place, true)) await removeFolder(join(place, name));
  const name = randomBytes(4).toString('hex');
  const folder = join(place, name);
  try {
    const about = await job.build(folder);
    job.signal?.throwIfAborted();
    // Another process may have taken over, and removed our folder.
    if (!(await lock.isHeld()))
      throw new EnvironmentError('Building the environment took so long that another process took over. Try again.');
    await replaceFile(join(place, READY), printJson({ folder: name, key: job.key, ...about }));
    await rm(join(place, FAILED), { force: true });
    return folder;
  } catch (error) {
    await removeFolder(folder);
    if (job.signal?.aborted) throw new EnvironmentError('Building the environment was stopped.');
    const failure = toEnvironmentError(error);
    const { message, log } = failure;
    // On a full disk this fails too. The first failure is the one to report.
    await replaceFile(join(place, FAILED), JSON.stringify({ message, log: log.slice(-LOG_KEPT) })).catch(() => {});
    throw failure;
  }
}

async function findReady(place: string, job: FolderBuild): Promise<string | null> {
  const file = join(place, READY);
  const { folder } = await readJson(file);
  if (typeof folder !== 'string' || !/^[0-9a-f]{8}$/.test(folder)) return null;
  if (!(await job.isGood(join(place, folder)))) return null;
  // `removeOlder` reads when it was last used.
  const now = new Date();
  await utimes(file, now, now).catch(() => {});
  return join(place, folder);
}

async function throwKnownFailure(place: string): Promise<void> {
  const file = join(place, FAILED);
  if (Date.now() - (await timeOf(file)) > FAILURE_LASTS) return;
  const { message, log } = await readJson(file);
  if (typeof message === 'string') throw new EnvironmentError(message, String(log ?? ''));
}

async function lockPlace(place: string): Promise<Lock | null> {
  try {
    return await tryLock(join(place, LOCK), SILENCE);
  } catch (error) {
    throw toEnvironmentError(error);
  }
}

async function pause(signal: AbortSignal | null): Promise<void> {
  try {
    await sleep(PAUSE, undefined, signal === null ? {} : { signal });
  } catch {
    throw new EnvironmentError('Waiting for the environment was stopped.');
  }
}

function toEnvironmentError(error: unknown): EnvironmentError {
  if (error instanceof EnvironmentError) return error;
  return new EnvironmentError(`The environment could not be built: ${messageOf(error)}`, '', { cause: error });
}

async function namesIn(folder: string, foldersOnly = false): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => !foldersOnly || entry.isDirectory()).map(({ name }) => name);
}

/** Milliseconds since 1970; 0 if it does not exist. */
async function timeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

function contentOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null);
}

/** Empty if the file is missing or damaged. */
async function readJson(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const value: unknown = JSON.parse((await contentOf(file)) ?? '{}');
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** A folder that cannot be removed now is removed next time. */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}
