// `npm run deb [FILE]`: makes a Debian package of Toolgate for the architecture of this machine. It needs dpkg-deb. The
// package needs Node from elsewhere (`nodejs`), and brings everything else.
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { copyInstalledTree } from '../../scripts/installed-tree.mjs';
import { ensureBuilt, ensureInstalled, root } from '../../scripts/setup.mjs';

const run = promisify(execFile);
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/toolgate',
  zsh: 'usr/share/zsh/vendor-completions/_toolgate',
  fish: 'usr/share/fish/vendor_completions.d/toolgate.fish',
};

const control = ({ version, description, architecture, size }) => `Package: toolgate
Version: ${version}
Architecture: ${architecture}
Maintainer: Toolgate <toolgate@localhost>
Section: utils
Priority: optional
Installed-Size: ${size}
Depends: nodejs (>= 20.19)
Recommends: npm
Suggests: python3 (>= 3.10), bubblewrap
Description: ${description.replace(/:.*/, '')}
 Toolgate starts the MCP servers that an agent uses, shows it the tools that it
 needs, and decides what it may call. It also serves folders of tool files.
`;

async function main([file]) {
  await ensureInstalled();
  await ensureBuilt();
  const { version, description } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  const architecture = (await run('dpkg', ['--print-architecture'])).stdout.trim();
  const out = resolve(file ?? join(root, `build/toolgate_${version}_${architecture}.deb`));
  const folder = await mkdtemp(join(tmpdir(), 'toolgate-deb-'));
  try {
    const at = (path) => join(folder, path);
    const put = async (path, data) => {
      await mkdir(dirname(at(path)), { recursive: true });
      await writeFile(at(path), data);
    };
    await copyInstalledTree(at('usr/lib/toolgate'));
    await mkdir(at('usr/bin'), { recursive: true });
    await symlink('../lib/toolgate/bin/toolgate.mjs', at('usr/bin/toolgate'));
    await put(
      'usr/share/man/man1/toolgate.1.gz',
      gzipSync(await readFile(join(root, 'dist/toolgate.1')), { level: 9 }),
    );
    for (const [shell, path] of Object.entries(COMPLETIONS))
      await put(path, (await run(process.execPath, [join(root, 'bin/toolgate.mjs'), 'completion', shell])).stdout);
    await mkdir(at('usr/share/doc/toolgate'), { recursive: true });
    await copyFile(join(root, 'LICENSE'), at('usr/share/doc/toolgate/copyright'));
    await readableByAll(folder);
    const size = Math.ceil((await sizeOf(folder)) / 1024);
    await put('DEBIAN/control', control({ version, description, architecture, size }));
    await chmod(at('DEBIAN'), 0o755);
    await chmod(at('usr/lib/toolgate/bin/toolgate.mjs'), 0o755);
    await mkdir(dirname(out), { recursive: true });
    await run('dpkg-deb', ['--root-owner-group', '-Zgzip', '--build', folder, out]);
    console.log(out);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whatever the umask of the person who builds it. */
async function readableByAll(folder) {
  await chmod(folder, 0o755);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await readableByAll(path);
    else if (entry.isFile()) await chmod(path, (await stat(path)).mode & 0o100 ? 0o755 : 0o644);
  }
}

async function sizeOf(folder) {
  let size = 0;
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true }))
    if (entry.isFile()) size += (await stat(join(entry.parentPath, entry.name))).size;
  return size;
}

await main(process.argv.slice(2));
