/** Files of our own package, wherever it is installed and whatever bundle this code has become a part of. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** By the path from the root of the package: `dist/worker/host.mjs`. */
export function ownFile(path: string): string {
  return join(packageRoot(), path);
}

let known: string | null = null;

function packageRoot(): string {
  if (known !== null) return known;
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder);
  known = folder;
  return folder;
}
