/** Finds files of this package in any installation, even if this code is part of a bundle. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `path` starts at the root of the package: `dist/worker/host.mjs`. */
export function ownFile(path: string): string {
  return join(packageRoot(), path);
}

let root: string | null = null;

function packageRoot(): string {
  if (root !== null) return root;
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder);
  root = folder;
  return folder;
}
