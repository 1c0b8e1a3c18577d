/**
 * Versions of Python tool files. A tool file may import any other file of its folder, so a version of it is a copy of
 * all of them. Copies are written for a worker that may need them.
 */
import { randomBytes } from 'node:crypto';
import { readdir, readFile, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../base/files.ts';
import { sha256 } from '../base/hash.ts';
import { moveDraft, removeOlder } from './build-cache.ts';
import type { FileVersion, FileVersions } from './file-version.ts';
import { isSkipped, toolLanguage } from './tool-files.ts';

/** A folder with more than this is not tools only, and has no versions. */
const MOST = { files: 1_000, bytes: 16 * 1024 * 1024, depth: 12 };
/** A worker reads its copies when it starts, which may take a while. */
const KEPT_MS = 60 * 60 * 1000;

/** The current version of each tool file. Empty if the folder is too large. */
export async function readVersions(folder: string): Promise<FileVersions> {
  const files = new Map<string, Buffer>();
  let size = 0;
  const walk = async (below: string, depth: number): Promise<void> => {
    const entries = await readdir(join(folder, below), { withFileTypes: true }).catch(() => []);
    // A virtual environment that the author created here.
    if (below !== '' && entries.some(({ name }) => name === 'pyvenv.cfg')) return;
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`;
      if (isSkipped(entry.name) || size > MOST.bytes || files.size > MOST.files) continue;
      if (entry.isDirectory() && depth < MOST.depth) await walk(path, depth + 1);
      if (!entry.isFile() || !entry.name.endsWith('.py')) continue;
      const bytes = await readFile(join(folder, path)).catch(() => null);
      if (bytes !== null) files.set(path, bytes);
      size += bytes?.length ?? 0;
    }
  };
  await walk('', 0);
  if (size > MOST.bytes || files.size > MOST.files) return new Map();
  const contents = [...files].map(([path, bytes]) => [path, sha256(bytes)]);
  const version: FileVersion = { hash: sha256(JSON.stringify(contents)).slice(0, 16), files };
  const names = [...files.keys()].filter((path) => !path.includes('/') && toolLanguage(path) === 'python');
  return new Map(names.map((name) => [name, version]));
}

/** Writes copies of those versions that are not current. Returns their folder; null if all are current. */
export async function writeVersions(
  root: string,
  lastGood: FileVersions,
  current: FileVersions,
): Promise<string | null> {
  const older = [...lastGood].filter(([file, { hash }]) => current.has(file) && current.get(file)!.hash !== hash);
  if (older.length === 0) return null;
  const index = JSON.stringify(Object.fromEntries(older.map(([file, { hash }]) => [file, hash])));
  const key = sha256(index).slice(0, 16);
  const folder = join(root, key);
  if (await exists(join(folder, 'index.json'))) {
    const now = new Date();
    await utimes(folder, now, now);
  } else {
    const draft = `${folder}.${randomBytes(6).toString('hex')}.tmp`;
    for (const { hash, files } of new Set(older.map(([, version]) => version)))
      for (const [path, bytes] of files) await replaceFile(join(draft, hash, path), bytes);
    await replaceFile(join(draft, 'index.json'), index);
    await moveDraft(draft, folder, 'index.json');
  }
  await removeOlder(root, key, '.', KEPT_MS);
  return folder;
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
