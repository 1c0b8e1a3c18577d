/** The namespaces there are: every folder below `tools/` of the data folder, and those that the configuration names. */
import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../catalog/catalog.ts';
import { type Hashes, markOf, type Namespace, scanFolder } from './scan-folder.ts';
import { isSkipped, nameProblem } from './tool-files.ts';

/** A folder that stands elsewhere, and the namespace that it is. */
export interface FolderPlace {
  readonly name: string;
  readonly folder: string;
}

export interface Scan {
  /** Those below `tools/` sorted by name, then those of the configuration in its order. */
  readonly namespaces: readonly Namespace[];
  /** By namespace, or by the name of what is none. */
  readonly problems: readonly Problem[];
}

export interface DetailedScan extends Scan {
  /** Every folder that was looked into, with what tells one from another in its place. */
  readonly watched: ReadonlyMap<string, string>;
}

const MOST_NAMESPACES = 1_000;

export function toolsFolder(dataDir: string): string {
  return join(dataDir, 'tools');
}

/** Never rejects: what cannot be read is a problem. `hashes` saves reading again what did not change. */
export async function scanNamespaces(
  dataDir: string,
  more: readonly FolderPlace[] = [],
  hashes: Hashes = new Map(),
): Promise<DetailedScan> {
  const problems: Problem[] = [];
  const watched = new Map<string, string>();
  const places = [...(await placesIn(toolsFolder(dataDir), problems, watched)), ...more];
  const found = await Promise.all(places.map(({ name, folder }) => scanFolder(name, folder, hashes)));
  for (const { namespace, watched: folders } of found) {
    for (const message of namespace.problems) problems.push({ source: namespace.name, message });
    for (const [folder, mark] of folders) watched.set(folder, mark);
  }
  return { namespaces: found.map(({ namespace }) => namespace), problems, watched };
}

async function placesIn(root: string, problems: Problem[], watched: Map<string, string>): Promise<FolderPlace[]> {
  let names: string[];
  let real: string;
  try {
    watched.set(root, markOf(await stat(root, { bigint: true })));
    real = await realpath(root);
    names = (await readdir(root)).filter((name) => !isSkipped(name)).sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') problems.push({ source: 'tools', message: `${root} cannot be read (${code}).` });
    return [];
  }
  const places: FolderPlace[] = [];
  for (const name of names) {
    const folder = join(root, name);
    const kind = await kindOf(folder, join(real, name));
    if (kind === 'other') continue;
    const why =
      kind === 'link'
        ? 'it is a link: copy the folder here, or name it with folder = in the configuration'
        : nameProblem(name);
    if (why !== null)
      problems.push({ source: name, message: `${JSON.stringify(name)} in ${root} is left alone: ${why}.` });
    else if (places.length === MOST_NAMESPACES)
      problems.push({
        source: name,
        message: `there are more than ${MOST_NAMESPACES} namespaces: ${JSON.stringify(name)} is left alone.`,
      });
    else places.push({ name, folder });
  }
  return places;
}

async function kindOf(folder: string, expected: string): Promise<'folder' | 'link' | 'other'> {
  try {
    if (!(await stat(folder)).isDirectory()) return 'other';
    return (await realpath(folder)) === expected ? 'folder' : 'link';
  } catch {
    return 'other';
  }
}
