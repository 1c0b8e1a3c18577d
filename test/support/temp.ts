import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { atEnd } from './cleanup.ts';

/** Contents by relative path. */
export type Files = Record<string, string | Uint8Array>;

/** A new folder with the given files, removed at the end. */
export function tempFolder(files: Files = {}): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolgate-')));
  // Asynchronous retries, because a gateway in this process may still be writing to the folder.
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  writeFiles(folder, files);
  return folder;
}

export function writeFiles(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}
