/** Finds all namespaces: the folders below `tools/` in the data folder, and those that the configuration names. */
import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Problem } from '../catalog/catalog.ts';
import { type Hashes, markOf, type Namespace, scanFolder } from './scan-folder.ts';
import { isSkipped, nameProblem } from './tool-files.ts';

/** A folder outside the data folder, and the name of its namespace. */
export interface NamedFolder {
  readonly name: string;
  readonly folder: string;
}

export interface NamespaceScan {
  /** Those below `tools/` sorted by name, then those of the configuration in the order given there. */
  readonly namespaces: readonly Namespace[];
  /** `source` is the namespace, or the name of an entry that cannot be one. */
  readonly problems: readonly Problem[];
}

export interface DetailedScan extends NamespaceScan {
  /** Every folder that was scanned, with a mark that changes if another folder takes its place. */
  readonly watched: ReadonlyMap<string, string>;
}

const MOST_NAMESPACES = 1_000;

export function toolsFolder(dataDir: string): string {
  return join(dataDir, 'tools');
}

/** Never rejects: what cannot be read is reported as a problem. With `hashes`, unchanged files are not read again. */
export async function scanNamespaces(
  dataDir: string,
  more: readonly NamedFolder[] = [],
  hashes: Hashes = new Map(),
): Promise<DetailedScan> {
  const problems: Problem[] = [];
  const watched = new Map<string, string>();
  const folders = [...(await foldersIn(toolsFolder(dataDir), problems, watched)), ...more];
  const found = await Promise.all(folders.map(({ name, folder }) => scanFolder(name, folder, hashes)));
  for (const { namespace, watched: inside } of found) {
    for (const message of namespace.problems) problems.push({ source: namespace.name, message });
    for (const [folder, mark] of inside) watched.set(folder, mark);
  }
  return { namespaces: found.map(({ namespace }) => namespace), problems, watched };
}

async function foldersIn(root: string, problems: Problem[], watched: Map<string, string>): Promise<NamedFolder[]> {
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
  const folders: NamedFolder[] = [];
  for (const name of names) {
    const folder = join(root, name);
    const kind = await kindOf(folder, join(real, name));
    if (kind === 'other') continue;
    const why =
      kind === 'link'
        ? 'it is a link; copy the folder here, or name it with folder = in the configuration'
        : nameProblem(name);
    if (why !== null)
      problems.push({ source: name, message: `${JSON.stringify(name)} in ${root} is ignored: ${why}.` });
    else if (folders.length === MOST_NAMESPACES)
      problems.push({
        source: name,
        message: `there are more than ${MOST_NAMESPACES} namespaces: ${JSON.stringify(name)} is ignored.`,
      });
    else folders.push({ name, folder });
  }
  return folders;
}

async function kindOf(folder: string, expected: string): Promise<'folder' | 'link' | 'other'> {
  try {
    if (!(await stat(folder)).isDirectory()) return 'other';
    return (await realpath(folder)) === expected ? 'folder' : 'link';
  } catch {
    return 'other';
  }
}
