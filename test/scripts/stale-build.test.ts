/** `toolgate` in a checkout whose sources are newer than its build. */
import { execFile } from 'node:child_process';
import { cpSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { tempFolder } from '../support/temp.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A checkout in small: the real program and scripts, with one source and a build that prints a word. */
async function checkout(): Promise<string> {
  const folder = tempFolder({
    'package.json': '{ "type": "module" }',
    'package-lock.json': '{}',
    'tsconfig.json': '{}',
    'src/inner/one.ts': 'export {};',
    'host/two.ts': 'export {};',
    'dashboard/src/three.ts': 'export {};',
    'dashboard/index.html': '',
    'dashboard/vite.config.ts': '',
    'dist/cli/main.js': 'export const run = async () => { process.stdout.write("ran"); return 0; };',
  });
  for (const path of ['bin/toolgate.mjs', 'scripts']) cpSync(join(root, path), join(folder, path), { recursive: true });
  const print = 'console.log((await import("./scripts/setup.mjs")).sourceHash())';
  const hashed = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', print], { cwd: folder });
  writeFileSync(join(folder, 'dist/.stamp'), hashed.stdout.trim());
  return folder;
}

const run = (folder: string) => promisify(execFile)(process.execPath, [join(folder, 'bin/toolgate.mjs')]);

it('is named on standard error, and runs', async () => {
  const folder = await checkout();
  const source = join(folder, 'src/inner/one.ts');
  const later = new Date(statSync(join(folder, 'dist/.stamp')).mtimeMs + 1_000);
  expect(await run(folder)).toEqual({ stdout: 'ran', stderr: '' });
  // Only the time differs, as after a checkout of another branch and back.
  utimesSync(source, later, later);
  expect(await run(folder)).toEqual({ stdout: 'ran', stderr: '' });
  writeFileSync(source, 'export const one = 1;');
  utimesSync(source, later, later);
  expect(await run(folder)).toEqual({
    stdout: 'ran',
    stderr: `toolgate: this is an old build. The sources in ${folder} have changed: run npm run build there.\n`,
  });
  // A package has no scripts, and nothing is compared.
  rmSync(join(folder, 'scripts'), { recursive: true });
  expect(await run(folder)).toEqual({ stdout: 'ran', stderr: '' });
});
