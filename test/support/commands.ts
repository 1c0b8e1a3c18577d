/** The commands that pages and examples use, as programs in a folder for PATH. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tempFolder } from './temp.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const tools = join(root, 'test', 'tools');

/** `toolgate`, and stand-ins for `npx` and `uvx` that use installed packages instead of downloading them. */
export function commandFolder(): string {
  const folder = tempFolder();
  shim(folder, 'toolgate', `exec "${process.execPath}" "${join(root, 'bin', 'toolgate.mjs')}" "$@"`);
  shim(
    folder,
    'npx',
    `[ "$1" = -y ] && shift; package=$1; shift
for modules in "${join(root, 'node_modules')}" "${join(tools, 'node_modules')}" "${join(tools, 'wide', 'node_modules')}"; do
  file="$modules/$package/dist/index.js"
  [ -e "$file" ] && exec "${process.execPath}" "$file" "$@"
done
echo "npx: there is no $package here" >&2; exit 1`,
  );
  shim(
    folder,
    'uvx',
    `while [ "$1" = --with ]; do shift 2; done; program=$1; shift
for version in v1 v2; do
  file="${join(tools, 'python')}/$version/bin/$program"
  [ -e "$file" ] && exec "$file" "$@"
done
echo "uvx: there is no $program here" >&2; exit 1`,
  );
  return folder;
}

/** Writes a shell script as an executable of this name. */
export function shim(folder: string, name: string, script: string): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}
