/**
 * Scans one folder of tools: its languages, its metadata, and a hash that changes with everything its workers are built
 * from. Anybody may write to the folder, even during the scan. So everything unusual is reported and left out, and
 * every size has a limit.
 */
import { type BigIntStats, constants, type Dirent } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { type Metadata, NO_METADATA, readMetadata } from './metadata.ts';
import { isSkipped, LANGUAGES, type Language, METADATA_FILE, matters, toolLanguage } from './tool-files.ts';

/** The tools of one language, which run in one worker. */
export interface NamespacePart {
  readonly language: Language;
  /** The names of the files that may define tools, sorted. */
  readonly files: readonly string[];
  /** Changes with everything that requires a new worker. */
  readonly hash: string;
}

export interface Namespace {
  readonly name: string;
  readonly folder: string;
  readonly metadata: Metadata;
  /** Empty if the folder has no tools. */
  readonly parts: readonly NamespacePart[];
  /** What is wrong in the folder. The rest of it is still served. */
  readonly problems: readonly string[];
  /** Changes with anything above. */
  readonly hash: string;
}

export interface ScannedFolder {
  readonly namespace: Namespace;
  /** The folders to watch for changes of the namespace, each with a mark that changes if another takes its place. */
  readonly watched: ReadonlyMap<string, string>;
}

/** Hashes of files by path. A hash is valid as long as the file's stamp (times, size, inode) is the same. */
export type Hashes = Map<string, { readonly stamp: string; readonly hash: string }>;

const MOST_ENTRIES = 20_000;
const MOST_FILES = 4_000;
const MOST_DEPTH = 12;
/** A larger file is not source code. Its stamp is used instead of its contents. */
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_METADATA = 64 * 1024;
const MOST_PROBLEMS = 20;

interface FolderWalk {
  readonly root: string;
  /** The real path of `root`. */
  readonly real: string;
  readonly files: Map<string, BigIntStats>;
  readonly watched: Map<string, string>;
  readonly problems: Set<string>;
  entries: number;
}

export async function scanFolder(name: string, folder: string, hashes: Hashes): Promise<ScannedFolder> {
  const walk: FolderWalk = {
    root: folder,
    real: await realpath(folder).catch(() => folder),
    files: new Map(),
    watched: new Map(),
    problems: new Set(),
    entries: 0,
  };
  await walkFolder(walk, '', 0);
  const paths = [...walk.files.keys()].sort();
  const { metadata, problems } = await metadataOf(walk);
  for (const problem of problems) walk.problems.add(problem);
  const parts: NamespacePart[] = [];
  for (const language of LANGUAGES) {
    const files = paths.filter((path) => !path.includes('/') && toolLanguage(path) === language);
    if (files.length === 0) continue;
    const sources = paths.filter((path) => matters(path, language));
    parts.push({ language, files, hash: await hashAll(walk, sources, hashes) });
  }
  const all = [...walk.problems];
  const shown =
    all.length <= MOST_PROBLEMS ? all : [...all.slice(0, MOST_PROBLEMS), `and ${all.length - MOST_PROBLEMS} more.`];
  const content = { name, folder, metadata, parts, problems: shown };
  return { namespace: { ...content, hash: sha256(JSON.stringify(content)) }, watched: walk.watched };
}

async function walkFolder(walk: FolderWalk, below: string, depth: number): Promise<void> {
  const entries = await entriesOf(walk, join(walk.root, below), below);
  if (entries === null) return;
  for (const entry of entries) {
    const { name } = entry;
    if (isSkipped(name)) continue;
    if (++walk.entries > MOST_ENTRIES || walk.files.size >= MOST_FILES) {
      walk.problems.add(
        'the folder has too many files: not all of them are watched. Keep data and packages elsewhere.',
      );
      return;
    }
    const path = below === '' ? name : `${below}/${name}`;
    if (entry.isDirectory()) {
      if (depth < MOST_DEPTH) await walkFolder(walk, path, depth + 1);
      else walk.problems.add(`${JSON.stringify(path)} is nested too deeply and is not watched.`);
      continue;
    }
    if (!LANGUAGES.some((language) => matters(path, language)) && !entry.isSymbolicLink()) continue;
    const stats = await statInside(walk, path, entry.isSymbolicLink());
    // Links to folders are not followed: their target is scanned where it is, and links may form a cycle.
    if (stats?.isFile() && LANGUAGES.some((language) => matters(path, language))) walk.files.set(path, stats);
  }
}

/** Sorted by name; null if there is nothing to scan. */
async function entriesOf(walk: FolderWalk, folder: string, below: string): Promise<Dirent[] | null> {
  try {
    // Before the names are read, so that a file added meanwhile is noticed.
    walk.watched.set(folder, markOf(await stat(folder, { bigint: true })));
    const entries = await readdir(folder, { withFileTypes: true });
    // A virtual environment that the author created here is not part of the tools.
    if (below !== '' && entries.some(({ name }) => name === 'pyvenv.cfg')) {
      walk.watched.delete(folder);
      return null;
    }
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Removed since its name was read.
    if (below !== '' && code === 'ENOENT') return null;
    walk.problems.add(`${below === '' ? 'the folder' : JSON.stringify(below)} cannot be read (${code}).`);
    return null;
  }
}

/** Null if the path leads out of the folder or cannot be read. */
async function statInside(walk: FolderWalk, path: string, isLink: boolean): Promise<BigIntStats | null> {
  const file = join(walk.root, path);
  try {
    if (isLink && !`${await realpath(file)}${sep}`.startsWith(walk.real + sep)) {
      walk.problems.add(
        `${JSON.stringify(path)} is a link out of the folder and is ignored. Copy the file instead of linking it.`,
      );
      return null;
    }
    return await stat(file, { bigint: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Removed, or a link to nothing.
    if (code !== 'ENOENT') walk.problems.add(`${JSON.stringify(path)} cannot be read (${code}).`);
    return null;
  }
}

async function metadataOf({ root, files }: FolderWalk): Promise<{ metadata: Metadata; problems: readonly string[] }> {
  const stats = files.get(METADATA_FILE);
  if (stats === undefined) return { metadata: NO_METADATA, problems: [] };
  if (stats.size > MOST_METADATA)
    return { metadata: NO_METADATA, problems: [`${METADATA_FILE}: is larger than 64 KiB. Make it shorter.`] };
  const bytes = await readBytes(join(root, METADATA_FILE), Number(stats.size));
  if (bytes === null) return { metadata: NO_METADATA, problems: [`${METADATA_FILE}: cannot be read.`] };
  return readMetadata(bytes.toString());
}

async function hashAll(
  { root, files, problems }: FolderWalk,
  paths: readonly string[],
  hashes: Hashes,
): Promise<string> {
  const contents: string[] = [];
  for (const path of paths) {
    const hash = await hashOf(join(root, path), files.get(path)!, hashes);
    if (hash === null) problems.add(`${JSON.stringify(path)} cannot be read.`);
    contents.push(JSON.stringify([path, hash]));
  }
  return sha256(contents.join(''));
}

async function hashOf(file: string, stats: BigIntStats, hashes: Hashes): Promise<string | null> {
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  const stamp = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  if (size > MOST_BYTES) return stamp;
  const known = hashes.get(file);
  // File systems have coarse clocks: a file written just now may be written again without a new stamp.
  const isSettled = Date.now() - Number(ctimeNs / 1_000_000n) > 1_000;
  if (known?.stamp === stamp && isSettled) return known.hash;
  const bytes = await readBytes(file, Number(size));
  if (bytes === null) return null;
  const hash = sha256(bytes);
  hashes.set(file, { stamp, hash });
  return hash;
}

/** Reads at most `size` bytes. If the file grows meanwhile, the next scan reads the rest. */
async function readBytes(path: string, size: number): Promise<Buffer | null> {
  try {
    // Without O_NONBLOCK, opening a pipe that has replaced the file would never return.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const bytes = Buffer.alloc(size);
      let length = 0;
      while (length < size) {
        const { bytesRead } = await file.read(bytes, length, size - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return bytes.subarray(0, length);
    } finally {
      await file.close();
    }
  } catch {
    return null;
  }
}

/** Changes if another folder takes the place of this one. */
export function markOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${birthtimeNs}`;
}
