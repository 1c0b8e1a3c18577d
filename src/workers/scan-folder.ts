/**
 * What is in one folder of tools: its languages, what it says about itself, and a hash that changes with everything its
 * workers are made from. Folders are written by anybody and while we look, so all that is odd is left out and named, and
 * there is an end to everything.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants, type Dirent } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { type Metadata, NO_METADATA, readMetadata } from './metadata.ts';
import { isSkipped, LANGUAGES, type Language, METADATA_FILE, matters, toolLanguage } from './tool-files.ts';

/** The tools of one language: one worker. */
export interface Part {
  readonly language: Language;
  /** The files that may have tools, by name, sorted. */
  readonly files: readonly string[];
  /** Changes with whatever a worker has to be started anew for. */
  readonly hash: string;
}

export interface Namespace {
  readonly name: string;
  readonly folder: string;
  readonly metadata: Metadata;
  /** None where the folder has no tools. */
  readonly parts: readonly Part[];
  /** What is wrong in the folder; the rest of it is good all the same. */
  readonly problems: readonly string[];
  /** Changes with anything above. */
  readonly hash: string;
}

export interface ScannedFolder {
  readonly namespace: Namespace;
  /** The folders in which a change would be one of the namespace, with what tells one from another in its place. */
  readonly watched: ReadonlyMap<string, string>;
}

/** Hashes of files, by path, as long as they look the same. */
export type Hashes = Map<string, { readonly stamp: string; readonly hash: string }>;

const MOST_ENTRIES = 20_000;
const MOST_FILES = 4_000;
const MOST_DEPTH = 12;
/** A larger one is no source; that it looks different is all there is to say. */
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_METADATA = 64 * 1024;
const MOST_PROBLEMS = 20;

interface Walk {
  readonly root: string;
  /** Where the folder really is. */
  readonly real: string;
  readonly files: Map<string, BigIntStats>;
  readonly watched: Map<string, string>;
  readonly problems: Set<string>;
  entries: number;
}

export async function scanFolder(name: string, folder: string, hashes: Hashes): Promise<ScannedFolder> {
  const walk: Walk = {
    root: folder,
    real: await realpath(folder).catch(() => folder),
    files: new Map(),
    watched: new Map(),
    problems: new Set(),
    entries: 0,
  };
  await enter(walk, '', 0);
  const paths = [...walk.files.keys()].sort();
  const { metadata, problems } = await metadataOf(walk);
  for (const problem of problems) walk.problems.add(problem);
  const parts: Part[] = [];
  for (const language of LANGUAGES) {
    const files = paths.filter((path) => !path.includes('/') && toolLanguage(path) === language);
    if (files.length === 0) continue;
    const hash = await hashAll(
      walk,
      paths.filter((path) => matters(path, language)),
      hashes,
    );
    parts.push({ language, files, hash });
  }
  const all = [...walk.problems];
  const shown =
    all.length <= MOST_PROBLEMS ? all : [...all.slice(0, MOST_PROBLEMS), `and ${all.length - MOST_PROBLEMS} more.`];
  const rest = { name, folder, metadata, parts, problems: shown };
  return { namespace: { ...rest, hash: sha256(JSON.stringify(rest)) }, watched: walk.watched };
}

async function enter(walk: Walk, below: string, depth: number): Promise<void> {
  const folder = join(walk.root, below);
  const found = await look(walk, folder, below);
  if (found === null) return;
  for (const one of found) {
    const { name } = one;
    if (isSkipped(name)) continue;
    if (++walk.entries > MOST_ENTRIES || walk.files.size >= MOST_FILES) {
      walk.problems.add(
        'the folder has too many files: not all of them are followed. Keep data and packages elsewhere.',
      );
      return;
    }
    const path = below === '' ? name : `${below}/${name}`;
    if (one.isDirectory()) {
      if (depth < MOST_DEPTH) await enter(walk, path, depth + 1);
      else walk.problems.add(`${JSON.stringify(path)} is too deep in the folder and not followed.`);
      continue;
    }
    // Most of what may be here is no source.
    const isWanted = one.isSymbolicLink() || LANGUAGES.some((language) => matters(path, language));
    const stats = isWanted ? await statInside(walk, path, one.isSymbolicLink()) : null;
    // What a link to a folder leads to is looked at in its own place, and a ring of them has no end.
    if (stats?.isFile() && LANGUAGES.some((language) => matters(path, language))) walk.files.set(path, stats);
  }
}

/** What is in a folder, by name; null where there is nothing to look at. */
async function look(walk: Walk, folder: string, below: string): Promise<Dirent[] | null> {
  try {
    // Before the names, so that what is added meanwhile is noticed.
    walk.watched.set(folder, markOf(await stat(folder, { bigint: true })));
    const found = await readdir(folder, { withFileTypes: true });
    // A virtual environment that somebody made here is not a part of the tools.
    if (below !== '' && found.some(({ name }) => name === 'pyvenv.cfg')) {
      walk.watched.delete(folder);
      return null;
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Gone since its name was read.
    if (below !== '' && code === 'ENOENT') return null;
    walk.problems.add(`${below === '' ? 'the folder' : JSON.stringify(below)} cannot be read (${code}).`);
    return null;
  }
}

/** What stands at a path; null where that is not to be followed. */
async function statInside(walk: Walk, path: string, isLink: boolean): Promise<BigIntStats | null> {
  const place = join(walk.root, path);
  try {
    if (isLink && !`${await realpath(place)}${sep}`.startsWith(walk.real + sep)) {
      walk.problems.add(
        `${JSON.stringify(path)} leads out of the folder and is left out. Copy it instead of linking it.`,
      );
      return null;
    }
    return await stat(place, { bigint: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Gone, or a link to nothing: the next change tells.
    if (code !== 'ENOENT') walk.problems.add(`${JSON.stringify(path)} cannot be read (${code}).`);
    return null;
  }
}

async function metadataOf({ root, files }: Walk): Promise<{ metadata: Metadata; problems: readonly string[] }> {
  const stats = files.get(METADATA_FILE);
  if (stats === undefined) return { metadata: NO_METADATA, problems: [] };
  if (stats.size > MOST_METADATA)
    return { metadata: NO_METADATA, problems: [`${METADATA_FILE}: is larger than 64 KiB. Make it shorter.`] };
  const bytes = await readBytes(join(root, METADATA_FILE), Number(stats.size));
  if (bytes === null) return { metadata: NO_METADATA, problems: [`${METADATA_FILE}: cannot be read.`] };
  return readMetadata(bytes.toString());
}

async function hashAll({ root, files, problems }: Walk, paths: readonly string[], hashes: Hashes): Promise<string> {
  const hash = createHash('sha256');
  for (const path of paths) {
    const place = join(root, path);
    const stats = files.get(path)!;
    const content = await hashOf(place, stats, hashes);
    if (content === null) problems.add(`${JSON.stringify(path)} cannot be read.`);
    hash.update(JSON.stringify([path, content]));
  }
  return hash.digest('hex');
}

async function hashOf(place: string, stats: BigIntStats, hashes: Hashes): Promise<string | null> {
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  const stamp = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  if (size > MOST_BYTES) return stamp;
  const known = hashes.get(place);
  // The clock of a file system has a grain: what was written just now may be written again and look the same.
  const isSettled = Date.now() - Number(ctimeNs / 1_000_000n) > 1_000;
  if (known?.stamp === stamp && isSettled) return known.hash;
  const bytes = await readBytes(place, Number(size));
  if (bytes === null) return null;
  const hash = sha256(bytes);
  hashes.set(place, { stamp, hash });
  return hash;
}

/** As many bytes as it had: it may grow while it is read, which the next look sees. */
async function readBytes(place: string, size: number): Promise<Buffer | null> {
  try {
    // A pipe that took the place of a file would never open.
    const file = await open(place, constants.O_RDONLY | constants.O_NONBLOCK);
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

/** Tells a folder from another that took its place. */
export function markOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${birthtimeNs}`;
}

function sha256(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}
