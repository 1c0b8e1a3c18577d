/** Files that are replaced as a whole: a reader sees the old text or the new one, never half of one. */
import { randomBytes } from 'node:crypto';
import { chmod, link, mkdir, open, readdir, realpath, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { GatewayError, messageOf } from './errors.ts';

export function replaceFile(file: string, data: string | Uint8Array): Promise<void> {
  return viaTemporary(file, data, (temporary) => rename(temporary, file));
}

/**
 * Like `replaceFile`, but waits until the data is on the disk, so that a power failure does not lose it. `mode`: who may
 * read and write it; only this user if absent.
 */
export async function replaceFileDurably(file: string, data: string | Uint8Array, mode?: number): Promise<void> {
  await viaTemporary(file, data, async (temporary) => {
    if (mode !== undefined) await chmod(temporary, mode);
    await flush(temporary);
    await rename(temporary, file);
  });
  // The folder holds the new name. Not every system can open a folder.
  await flush(dirname(file)).catch(() => {});
}

async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** False if the file already exists, even if another process created it at the same moment. Then it stays unchanged. */
export function createFile(file: string, data: string | Uint8Array): Promise<boolean> {
  return viaTemporary(file, data, async (temporary) => {
    const isCreated = await link(temporary, file).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') return false;
        throw error;
      },
    );
    // The file has its name by now. What stays of the other name is removed later.
    await unlink(temporary).catch(() => {});
    return isCreated;
  });
}

/** Writes a temporary file next to `file`, and gives it to `use`. If either fails, the temporary file is removed. */
async function viaTemporary<T>(
  file: string,
  data: string | Uint8Array,
  use: (temporary: string) => Promise<T>,
): Promise<T> {
  // A name that nobody can guess, and `wx`: in a folder that others can write, a link could be waiting under it.
  const temporary = `${file}.${process.pid}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(temporary, data, { mode: 0o600, flag: 'wx' });
    return await use(temporary);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw writeFailure(file, error);
  }
}

const TEMPORARY = /\.\d+\.[0-9a-f]+\.tmp$/;
/** Longer than any write takes, also on another machine that shares the folder. */
const LEFT_AFTER = 3_600_000;

/** Removes the temporary files in these folders that killed processes left behind. */
export async function removeTemporaries(folders: readonly string[]): Promise<void> {
  for (const folder of folders)
    for (const name of await readdir(folder).catch(() => [])) {
      if (!TEMPORARY.test(name)) continue;
      const path = join(folder, name);
      const written = await stat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => null,
      );
      if (written !== null && Math.abs(Date.now() - written) > LEFT_AFTER) await unlink(path).catch(() => {});
    }
}

/** Removes the temporary files of this file that killed processes of this machine left behind. */
export async function removeTemporariesOf(file: string, isAlive: (pid: number) => boolean): Promise<void> {
  const target = await realpath(file).catch(() => file);
  const start = `${basename(target)}.`;
  for (const name of await readdir(dirname(target)).catch(() => [])) {
    const [, pid] = name.startsWith(start) ? (/^(\d+)\.[0-9a-f]+\.tmp$/.exec(name.slice(start.length)) ?? []) : [];
    if (pid !== undefined && !isAlive(Number(pid))) await unlink(join(dirname(target), name)).catch(() => {});
  }
}

/** What went wrong and what to do, by the code of the system. */
const CAUSES: Readonly<Record<string, readonly [string, string]>> = {
  EACCES: ['permission denied', 'Make its folder writable for this user.'],
  EPERM: ['it is not permitted', 'Make its folder writable for this user.'],
  EROFS: ['the file system is read-only', 'Choose a folder that can be written.'],
  ENOSPC: ['there is no space left on the disk', 'Make room there.'],
  EDQUOT: ['the disk quota is used up', 'Make room there.'],
  ENOTDIR: ['a file is in the place of a folder', 'Move that file away.'],
  EEXIST: ['a file is in the place of a folder', 'Move that file away.'],
  EISDIR: ['a folder is in its place', 'Move that folder away.'],
};

/** A file that could not be written: which one, why, and what to do. */
export function writeFailure(file: string, error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  const [why, remedy] = CAUSES[code] ?? [messageOf(error), 'Check its folder.'];
  const text = `${file} cannot be written: ${why}${code in CAUSES ? ` (${code})` : ''}. ${remedy}`;
  return new GatewayError('storage_failed', text, { cause: error });
}

/**
 * Replaces a file that belongs to a person, in their folders: a link to it stays a link, and who may read it stays the same.
 */
export async function replaceOwned(file: string, data: string | Uint8Array): Promise<void> {
  const target = await realpath(file).catch(() => file);
  const found = await stat(target).catch(() => null);
  await replaceFileDurably(target, data, found === null ? undefined : found.mode & 0o777);
}
