/** Finds the namespace that a manager tool names. Names and file names become paths, so they are checked here. */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { withLock } from '../base/lock.ts';
import { didYouMean } from '../base/text.ts';
import type { Config } from '../config/config.ts';
import type { ServerConfig } from '../config/servers.ts';
import { type FoundFolder, scanFolders } from '../gateway/folders.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { toolLanguage } from '../workers/tool-files.ts';

/** A namespace as the manager sees it: the folder, whatever state its workers are in. */
export interface ManagedNamespace {
  /** What clients call it. */
  readonly name: string;
  readonly found: FoundFolder;
  /** One for each language. */
  readonly servers: readonly ServerConfig[];
  /** Whether it is in the data folder. The manager does not change the others. */
  readonly isOwn: boolean;
}

/** A larger file is not source code. */
export const MOST_CODE = 1024 * 1024;
const FILE_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

export async function listManaged(config: Config): Promise<ManagedNamespace[]> {
  const { folders, servers } = await scanFolders(config);
  return folders.map((found) => {
    const own = servers.filter(({ launch }) => launch.kind === 'folder' && launch.folder === found.folder);
    const isOwn = dirname(found.folder) === toolsFolder(config.dataDir);
    const name = isOwn ? found.name : (own[0]?.namespace ?? found.key);
    return { name, found, servers: own, isOwn };
  });
}

export async function findManaged(config: Config, name: string): Promise<ManagedNamespace> {
  const all = await listManaged(config);
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  const known = all.map((one) => one.name);
  const hint =
    didYouMean(name, known) || (known.length === 0 ? ' There are none yet.' : ` There are: ${known.join(', ')}.`);
  throw new GatewayError(
    'usage',
    `There is no namespace ${JSON.stringify(name.slice(0, 80))}.${hint} list_namespaces lists them, create_namespace makes one.`,
  );
}

/** Throws for a folder that the configuration names: those are the user's own files. */
export async function findOwn(config: Config, name: string): Promise<ManagedNamespace> {
  const found = await findManaged(config, name);
  if (found.isOwn) return found;
  throw new GatewayError(
    'usage',
    `The configuration names the folder of "${name}", ${found.found.folder}. The manager only reads such a folder; edit its files yourself.`,
  );
}

/** One change of a namespace at a time, also by other processes. */
export function whileLocked<T>({ dataDir }: Config, namespace: string, work: () => Promise<T>): Promise<T> {
  // Names that begin with a dot are not namespaces.
  return withLock(join(toolsFolder(dataDir), `.${namespace}`), work);
}

/** Throws unless it is the name of a file directly in the folder that may define tools. */
export function requireToolFile(filename: string): void {
  if (FILE_NAME.test(filename) && toolLanguage(filename) !== null) return;
  throw new GatewayError(
    'usage',
    `${JSON.stringify(filename.slice(0, 80))} cannot be a tool file: its name has no folder, begins with a letter or digit, and ends in .py, .ts, .mts, .js or .mjs.`,
  );
}

/** The text of a file of a folder; null if there is none. Links are not followed. */
export async function readFileIn(folder: string, filename: string): Promise<string | null> {
  const file = join(folder, filename);
  const refuse = (why: string) => new GatewayError('usage', `${filename} ${why}.`);
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      if (error.code === 'ELOOP') throw refuse('is a link, and links are not followed');
      throw refuse(`cannot be read (${error.code})`);
    },
  );
  if (handle === null) return null;
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) throw refuse('is not a file');
    if (stats.size > MOST_CODE) throw refuse(`has more than ${MOST_CODE} bytes`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

/** Throws if something else than a file is in its place. */
export async function requirePlainFile(folder: string, filename: string): Promise<void> {
  const stats = await lstat(join(folder, filename)).catch(() => null);
  if (stats === null || stats.isFile()) return;
  const what = stats.isSymbolicLink() ? 'a link' : stats.isDirectory() ? 'a folder' : 'not a file';
  throw new GatewayError('usage', `${filename} is ${what}. Remove it yourself, or choose another name.`);
}
