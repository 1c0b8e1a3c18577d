/** The `.gitignore` of a data folder: toolsets of a project can be committed, what belongs to this machine cannot. */
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../base/files.ts';

const TEXT = '*\n!toolsets/\n!toolsets/*.json\n';
/** What earlier versions wrote. */
const FORMER = '*\n';

/** A file that somebody changed stays as it is. */
export async function writeIgnoreFile(dataDir: string): Promise<void> {
  const file = join(dataDir, '.gitignore');
  await mkdir(dataDir, { recursive: true });
  const before = await readFile(file, 'utf8').catch(() => null);
  if (before === null || before === FORMER) await replaceFile(file, TEXT).catch(() => {});
}
