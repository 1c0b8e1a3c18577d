// Toolgate as it is installed: the files of the package, and the packages that it needs to run, from node_modules.
import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { root } from './setup.mjs';

const run = promisify(execFile);

async function npm(...args) {
  const { stdout } = await run('npm', [...args, '--ignore-scripts', '--loglevel=error'], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** Puts it into `folder`. The build has to be current. */
export async function copyInstalledTree(folder) {
  const [{ files }] = JSON.parse(await npm('pack', '--dry-run', '--json'));
  const listed = await npm('ls', '--omit=dev', '--all', '--parseable');
  const packages = listed
    .split('\n')
    .map((path) => relative(root, path))
    // Workspaces are links to folders of this repository, and no part of the package.
    .filter((path) => path.startsWith('node_modules/') && !path.startsWith('node_modules/@toolgate/'));
  for (const path of [...files.map((file) => file.path), ...packages]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await cp(join(root, path), join(folder, path), { recursive: true, dereference: true });
  }
}
