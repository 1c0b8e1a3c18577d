/** Files that are replaced whole: whoever reads one sees it as it was before or as it is after. */
import { link, mkdir, open, rename, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

let serial = 0;

export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = await writeBeside(file, text);
  await rename(temporary, file);
}

/** The same, and when it is done the text is on the disk, whatever becomes of the machine. */
export async function replaceFileForGood(file: string, text: string): Promise<void> {
  const temporary = await writeBeside(file, text);
  await flush(temporary);
  await rename(temporary, file);
  // The new name is kept by the folder. Not every system lets one open a folder.
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

/** False where there is one already; then nothing changes, also if another process makes it at the same moment. */
export async function createFile(file: string, text: string): Promise<boolean> {
  const temporary = await writeBeside(file, text);
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

async function writeBeside(file: string, text: string): Promise<string> {
  const temporary = `${file}.${process.pid}.${++serial}.tmp`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(temporary, text, { mode: 0o600 });
  return temporary;
}
