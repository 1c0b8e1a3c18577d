/** Removes what was made for folders of tools that are gone: their environments, builds and sockets. */
import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { toolsFolder } from './namespaces.ts';
import { nameProblem } from './tool-files.ts';

/** Where each namespace has a folder, in the data folder. */
const PLACES = ['venvs', 'workers'];
/** Next to the environment for Python. */
const NODE = '.node';
/** Folders that a configuration names may belong to another gateway with the same data folder. */
const NAMED_LASTS = 30 * 24 * 60 * 60 * 1000;

/** Removes them for good, when a namespace is deleted. */
export async function removeEnvironments(dataDir: string, name: string): Promise<void> {
  for (const path of pathsOf(dataDir, name)) await rm(path, { recursive: true, force: true, maxRetries: 3 });
}

/**
 * Finds folders of namespaces that no longer exist. Call it from time to time with what it returned before: what is found
 * twice is removed. A folder that was only moved for a moment keeps its environment.
 *
 * @param served the namespaces that are served now.
 */
export async function sweepEnvironments(
  dataDir: string,
  served: ReadonlySet<string>,
  before: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const unused = new Set<string>();
  // Without it nothing is known: the volume may not be mounted.
  if (await isMissing(toolsFolder(dataDir))) return unused;
  for (const name of await namesIn(dataDir)) {
    if (served.has(name) || !(await isGone(dataDir, name))) continue;
    if (before.has(name)) await removeEnvironments(dataDir, name).catch(() => {});
    else unused.add(name);
  }
  return unused;
}

function pathsOf(dataDir: string, name: string): string[] {
  return [join(dataDir, 'venvs', name), join(dataDir, 'venvs', name + NODE), join(dataDir, 'workers', name)];
}

async function namesIn(dataDir: string): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const place of PLACES)
    for (const entry of await readdir(join(dataDir, place), { withFileTypes: true }).catch(() => []))
      if (entry.isDirectory()) names.add(entry.name.endsWith(NODE) ? entry.name.slice(0, -NODE.length) : entry.name);
  return names;
}

async function isGone(dataDir: string, name: string): Promise<boolean> {
  // Not ours, such as the environment that all share.
  const [first = '', id, ...rest] = name.split('.');
  if (nameProblem(first) !== null || rest.length > 0) return false;
  if (id === undefined) return isMissing(join(toolsFolder(dataDir), name));
  const times = await Promise.all(pathsOf(dataDir, name).map(lastUse));
  return Date.now() - Math.max(...times) > NAMED_LASTS;
}

function isMissing(path: string): Promise<boolean> {
  return stat(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === 'ENOENT',
  );
}

/** Milliseconds since 1970; 0 if it does not exist. */
async function lastUse(folder: string): Promise<number> {
  const inside = await readdir(folder).catch(() => []);
  const ready = await Promise.all(inside.map((key) => timeOf(join(folder, key, 'ready.json'))));
  return Math.max(await timeOf(folder), ...ready);
}

function timeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}
