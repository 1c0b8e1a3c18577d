import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { atEnd } from './cleanup.ts';

/** Relative path to content. */
export type Files = Record<string, string | Uint8Array>;

/** A fresh folder with the given files, removed at the end. */
export function tempFolder(files: Files = {}): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'toolgate-')));
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
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
