// `npm run binary [FILE]`: makes one executable file with Node, Toolgate and the packages that it needs, for this system.
//
// It is a short shell program with an archive behind it. It unpacks itself once, into the user's cache, and from then on
// starts what is there. Node can also put a program into its own executable (SEA). That is not used here: such an
// executable runs only that program, so it cannot start Node for workers and for the shared gateway, and on macOS it has
// to be signed again. Here Node stays as it was published.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { copyInstalledTree } from './installed-tree.mjs';
import { ensureBuilt, ensureInstalled, root } from './setup.mjs';

const run = promisify(execFile);

/** The shell program. `name` is its folder in the cache: each build has its own. */
const launcher = ({ version, target, name }) => `#!/bin/sh
# Toolgate ${version} for ${target}: Node, Toolgate and its packages in one file. They are unpacked into
# \${XDG_CACHE_HOME:-~/.cache}/toolgate/program when it is first run. That folder can be removed at any time.
set -eu
PATH="\${PATH:-}:/usr/bin:/bin"
export PATH
case "$0" in /*) TOOLGATE_BINARY=$0 ;; *) TOOLGATE_BINARY=$(pwd)/$0 ;; esac
export TOOLGATE_BINARY
cache=\${XDG_CACHE_HOME:-\${HOME:?Set HOME or XDG_CACHE_HOME: Toolgate is unpacked there.}/.cache}/toolgate/program
there=$cache/${name}
if [ ! -f "$there/complete" ]; then
  (
    umask 077
    mkdir -p "$cache"
    # Left by first runs that were killed.
    find "$cache" -maxdepth 1 -name 'new.*' -mmin +60 -exec rm -rf {} +
    new=$(mktemp -d "$cache/new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    trap 'exit 143' HUP INT TERM
    tail -c +OFFSET "$TOOLGATE_BINARY" | gzip -dc | tar -xf - -C "$new" ||
      { echo "toolgate: it could not be unpacked into $cache. Is there room on the disk?" >&2; exit 1; }
    [ -f "$new/complete" ] || { echo "toolgate: $TOOLGATE_BINARY is damaged. Get it again." >&2; exit 1; }
    # Another first run may have been faster. Then its folder is used.
    "$new/node" -e 'try { require("node:fs").renameSync(process.argv[1], process.argv[2]) } catch {}' "$new" "$there"
  )
  [ -f "$there/complete" ] || { echo "toolgate: $there cannot be used. Remove it, and try again." >&2; exit 1; }
fi
exec "$there/node" "$there/toolgate/bin/toolgate.mjs" "$@"
`;

/** With the place where the archive begins, which depends on how long that number is. */
function withOffset(text) {
  const without = Buffer.byteLength(text) - 'OFFSET'.length;
  const digits = [3, 4, 5].find((count) => String(without + count + 1).length === count);
  return text.replace('OFFSET', String(without + digits + 1));
}

/** Node may be passed on only with its license. */
async function copyLicense(to) {
  const base = dirname(dirname(process.execPath));
  for (const from of ['LICENSE', 'share/doc/nodejs/copyright', 'share/doc/nodejs/LICENSE', 'share/doc/node/LICENSE'])
    if (existsSync(join(base, from))) return copyFile(join(base, from), to);
  console.warn('The license of Node was not found. Add it before you pass the file on.');
}

async function main([file]) {
  await ensureInstalled();
  await ensureBuilt();
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const target = `${process.platform}-${process.arch}`;
  const out = resolve(file ?? join(root, `build/toolgate-${version}-${target}`));
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-binary-'));
  try {
    const tree = join(folder, 'tree');
    await copyInstalledTree(join(tree, 'toolgate'));
    await copyFile(process.execPath, join(tree, 'node'));
    await chmod(join(tree, 'node'), 0o755);
    await copyLicense(join(tree, 'toolgate/LICENSE.node'));
    await writeFile(join(tree, 'complete'), `${version} ${process.version}\n`);
    const archive = join(folder, 'archive.tar.gz');
    // Owners and times are left out, so that the same build gives the same file.
    const isGnu = (await run('tar', ['--version'])).stdout.includes('GNU');
    const plain = isGnu ? ['--owner=0', '--group=0', '--numeric-owner', '--mtime=@0', '--sort=name'] : [];
    // The mark that it is complete comes last.
    await run('tar', ['-cf', join(folder, 'archive.tar'), ...plain, '-C', tree, 'node', 'toolgate', 'complete']);
    await run('gzip', ['-n', join(folder, 'archive.tar')]);
    const bytes = await readFile(archive);
    const name = `${version}-${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`;
    const head = Buffer.from(withOffset(launcher({ version, target, name })));
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, Buffer.concat([head, bytes]));
    await chmod(out, 0o755);
    console.log(`${out}: ${Math.round((head.length + bytes.length) / 1e6)} MB`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

await main(process.argv.slice(2));
