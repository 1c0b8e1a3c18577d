/** Files that are replaced as a whole: a reader sees the old text or the new one, never half of one. */
import { link, mkdir, open, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

let serial = 0;

export async function replaceFile(file: string, data: string | Uint8Array): Promise<void> {
  const temporary = await writeTemporary(file, data);
  await rename(temporary, file);
}

/** Like `replaceFile`, but waits until the data is on the disk, so that a power failure does not lose it. */
export async function replaceFileDurably(file: string, data: string | Uint8Array): Promise<void> {
  const temporary = await writeTemporary(file, data);
  await flush(temporary);
  await rename(temporary, file);
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
export async function createFile(file: string, data: string | Uint8Array): Promise<boolean> {
  const temporary = await writeTemporary(file, data);
  try {
    await link(temporary, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    await unlink(temporary);
  }
}

async function writeTemporary(file: string, data: string | Uint8Array): Promise<string> {
  const temporary = `${file}.${process.pid}.${++serial}.tmp`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(temporary, data, { mode: 0o600 });
  return temporary;
}
