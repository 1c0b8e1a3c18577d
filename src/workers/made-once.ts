/**
 * A folder that is made once for a key, whoever asks for it, and never changed: several processes may want it at the same
 * time, and any of them may die, or be stopped for an hour, in the middle. So every try has a folder of its own, and one
 * small file, written last, says which of them is good:
 *
 *     <place>/ready.json   the name of the good folder
 *     <place>/failed.json  why there is none, for a while
 *     <place>/making       who is at it; touched while he is
 *     <place>/<random>/    a try
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat, unlink, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../base/errors.ts';
import { createFile, replaceFile } from '../base/files.ts';
import { withLock } from '../base/lock.ts';
import { EnvironmentError } from './environment.ts';

export interface Making {
  /** Where all that was made for one namespace is. */
  readonly root: string;
  readonly key: string;
  readonly signal: AbortSignal | null;
  progress(message: string): void;
  /** Fills the folder, which is not there yet; what it gives is kept with it. Throws where that is not possible. */
  make(folder: string): Promise<Readonly<Record<string, unknown>>>;
  /** Whether what was made still works. */
  isGood(folder: string): Promise<boolean>;
}

/** How long a failure is taken for granted: what it depends on may be the network. */
const FAILURE_LASTS = 10 * 60_000;
const BEAT = 3_000;
/** Nobody who lives is silent for so long, unless the machine stood still. */
const SILENCE = 30_000;
const PAUSE = 100;
/** What is written down of a failure. */
const LOG_KEPT = 16 * 1024;

export async function madeOnce(making: Making): Promise<string> {
  const place = join(making.root, making.key);
  const mine = `${process.pid} ${hostname()} ${randomBytes(9).toString('base64url')}\n`;
  for (let waited = false; ; waited = true) {
    const made = await findMade(place, making);
    if (made !== null) return made;
    await throwKnownFailure(place);
    if (await claim(place, mine)) break;
    if (!waited) making.progress('waiting for another process that makes the same environment');
    await clearAbandoned(place);
    await pause(making.signal);
  }
  const beat = setInterval(() => touch(join(place, 'making')), BEAT);
  try {
    return (await findMade(place, making)) ?? (await make(place, mine, making));
  } finally {
    clearInterval(beat);
    await release(place, mine);
  }
}

async function claim(place: string, mine: string): Promise<boolean> {
  try {
    return await createFile(join(place, 'making'), mine);
  } catch (error) {
    throw toEnvironmentError(error);
  }
}

/** So that the next try is a real one. */
export async function forgetFailures(root: string): Promise<void> {
  for (const key of await namesIn(root)) await rm(join(root, key, 'failed.json'), { force: true });
}

/** All but the one in use and the one before it, to which one may want to go back. */
export async function removeOlder(root: string, key: string): Promise<void> {
  const others = (await namesIn(root)).filter((name) => name !== key);
  const used = await Promise.all(others.map(async (name) => ({ name, at: await usedAt(join(root, name)) })));
  used.sort((a, b) => b.at - a.at);
  for (const { name } of used.slice(1)) {
    const place = join(root, name);
    if ((await contentOf(join(place, 'making'))) !== null) continue;
    await rm(join(place, 'ready.json'), { force: true }).catch(() => {});
    await removeFolder(place);
  }
}

async function make(place: string, mine: string, making: Making): Promise<string> {
  // Of tries that were cut off.
  for (const name of await namesIn(place, true)) await removeFolder(join(place, name));
  const name = randomBytes(4).toString('hex');
  const folder = join(place, name);
  try {
    const about = await making.make(folder);
    making.signal?.throwIfAborted();
    // Taken over by another, who may have taken away what we made.
    if ((await contentOf(join(place, 'making'))) !== mine)
      throw new EnvironmentError('Making the environment took so long that another process took over. Try again.');
    await replaceFile(
      join(place, 'ready.json'),
      `${JSON.stringify({ folder: name, key: making.key, ...about }, null, 2)}\n`,
    );
    await rm(join(place, 'failed.json'), { force: true });
    return folder;
  } catch (error) {
    await removeFolder(folder);
    if (making.signal?.aborted) throw new EnvironmentError('Making the environment was stopped.');
    const failure = toEnvironmentError(error);
    const { message, log } = failure;
    // A full disk has no room for this either.
    await replaceFile(join(place, 'failed.json'), JSON.stringify({ message, log: log.slice(-LOG_KEPT) })).catch(
      () => {},
    );
    throw failure;
  }
}

async function findMade(place: string, making: Making): Promise<string | null> {
  const file = join(place, 'ready.json');
  const folder = nameIn(await contentOf(file));
  if (folder === null || !(await making.isGood(join(place, folder)))) return null;
  // When it was last used, for whoever clears up.
  await touch(file);
  return join(place, folder);
}

function nameIn(text: string | null): string | null {
  try {
    const { folder } = JSON.parse(text ?? 'null') as { folder?: unknown };
    return typeof folder === 'string' && /^[0-9a-f]{8}$/.test(folder) ? folder : null;
  } catch {
    return null;
  }
}

async function throwKnownFailure(place: string): Promise<void> {
  const file = join(place, 'failed.json');
  const age = await ageOf(file);
  if (age === null || age > FAILURE_LASTS) return;
  let known: { message?: unknown; log?: unknown };
  try {
    known = JSON.parse((await contentOf(file)) ?? '{}') as typeof known;
  } catch {
    return;
  }
  if (typeof known.message === 'string') throw new EnvironmentError(known.message, String(known.log ?? ''));
}

async function clearAbandoned(place: string): Promise<void> {
  const file = join(place, 'making');
  const held = await contentOf(file);
  if (held === null || !(await isAbandoned(file, held))) return;
  await withLock(file, async () => {
    if ((await contentOf(file)) === held) await unlink(file).catch(() => {});
  });
}

async function isAbandoned(file: string, held: string): Promise<boolean> {
  const age = await ageOf(file);
  const [pid, host] = held.split(' ');
  // Numbers of processes mean something on one machine only.
  return age !== null && (age > SILENCE || (host === hostname() && !isAlive(Number(pid))));
}

async function release(place: string, mine: string): Promise<void> {
  const file = join(place, 'making');
  if ((await contentOf(file)) === mine) await unlink(file).catch(() => {});
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
  return new EnvironmentError(`The environment could not be made: ${messageOf(error)}`, '', { cause: error });
}

async function namesIn(folder: string, foldersOnly = false): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => !foldersOnly || entry.isDirectory()).map(({ name }) => name);
}

async function usedAt(place: string): Promise<number> {
  return stat(join(place, 'ready.json')).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

function ageOf(file: string): Promise<number | null> {
  return stat(file).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => null,
  );
}

function contentOf(file: string): Promise<string | null> {
  return readFile(file, 'utf8').catch(() => null);
}

async function touch(file: string): Promise<void> {
  const now = new Date();
  await utimes(file, now, now).catch(() => {});
}

/** What cannot be removed now is left for the next time. */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
