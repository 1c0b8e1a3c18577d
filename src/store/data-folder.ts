/** Whether the data folder can be used, and which of its files cannot be read. */
import { mkdir, readdir, readFile, unlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { messageOf } from '../base/errors.ts';

export interface DataProblem {
  readonly message: string;
  /** Whether something that people or programs saved is lost. What Toolgate only remembers is written again. */
  readonly isLoss: boolean;
  /** The damaged file that is in the way; absent if it is not about one. */
  readonly file?: string;
}

/** Its folders with JSON files that no other check reads, and whether Toolgate writes those again by itself. */
const FOLDERS: Readonly<Record<string, 'remembered' | 'saved'>> = {
  '.': 'saved',
  offers: 'remembered',
  verdicts: 'remembered',
  approvals: 'saved',
};

/** Files of the data folder itself that Toolgate only remembers. */
const REMEMBERED: ReadonlySet<string> = new Set(['names.json', 'equipped-clients.json']);

/** Their stores say what is wrong with these. */
const CHECKED_ELSEWHERE: ReadonlySet<string> = new Set(['agents.json']);

export async function examineDataFolder(dataDir: string): Promise<DataProblem[]> {
  return [...(await unwritable(dataDir)), ...(await damagedFiles(dataDir))];
}

/** Tries it: permissions alone do not tell about read-only file systems and full disks. */
async function unwritable(dataDir: string): Promise<DataProblem[]> {
  const probe = join(dataDir, `.writable.${process.pid}`);
  try {
    await mkdir(dataDir, { recursive: true });
    await writeFile(probe, '');
    return [];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const message = `${dataDir} cannot be written (${code ?? messageOf(error)}): no toolset, token or secret can be saved, and the audit has no place there. Make it writable for this user, or choose another with data_dir or DATA_DIR.`;
    return [{ message, isLoss: false }];
  } finally {
    await unlink(probe).catch(() => {});
  }
}

async function damagedFiles(dataDir: string): Promise<DataProblem[]> {
  const problems: DataProblem[] = [];
  for (const [folder, kind] of Object.entries(FOLDERS)) {
    const files = await readdir(join(dataDir, folder)).catch(() => []);
    for (const name of files.filter((one) => one.endsWith('.json')).sort()) {
      const file = join(dataDir, folder, name);
      if (CHECKED_ELSEWHERE.has(relative(dataDir, file))) continue;
      const why = await damageOf(file);
      if (why === null) continue;
      const isLoss = kind === 'saved' && !REMEMBERED.has(name);
      const remedy = kind === 'remembered' ? 'It is written again when its server is up' : 'Correct or remove it';
      problems.push({ message: `${file} is damaged (${why}). ${remedy}.`, isLoss, file });
    }
  }
  return problems;
}

/** What is wrong with a JSON file; null if nothing is, or if it is gone. */
async function damageOf(file: string): Promise<string | null> {
  try {
    JSON.parse(await readFile(file, 'utf8'));
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    // The message of the parser quotes the file, which may hold anything.
    return error instanceof SyntaxError ? 'it is not JSON' : message;
  }
}
