import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { ensureBuilt, isAlive, root } from './setup.mjs';

const own = join(root, '.toolgate');
const bundled = join(own, `fixtures-${process.pid}`);

export async function setup() {
  usePythonItself();
  await bundleFixtures();
  try {
    // Some tests run dist/, so it is brought up to date even if vitest is started directly.
    await ensureBuilt();
  } catch (error) {
    // Tests of other files should run although one file does not compile.
    console.error(`${error.message} Tests that run dist/ use the last good build, if there is one.`);
  }
}

/** `python3` may be a script that looks for the Python to use, which takes longer than many a test. Here it looks once. */
function usePythonItself() {
  try {
    const python = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { stdio: 'pipe' }).toString();
    const folder = dirname(python.trim());
    if (!process.env.PATH.startsWith(folder + delimiter)) process.env.PATH = folder + delimiter + process.env.PATH;
  } catch {
    // Without Python its tests are skipped, or fail.
  }
}

export function teardown() {
  rmSync(bundled, { recursive: true, force: true });
}

/** Bundles the fixture servers with their SDK. Tests start them a thousand times, and most of that time is loading. */
async function bundleFixtures() {
  // vitest calls this once per project.
  if (process.env.TOOLGATE_FIXTURES !== undefined) return;
  const { rolldown } = await import('rolldown');
  const folder = join(root, 'test', 'fixtures');
  const names = readdirSync(folder).filter((name) => name.endsWith('.mjs'));
  mkdirSync(bundled, { recursive: true });
  removeLeftovers();
  const build = await rolldown({
    input: names.map((name) => join(folder, name)),
    platform: 'node',
    logLevel: 'silent',
  });
  await build.write({
    dir: bundled,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    minify: { mangle: false },
  });
  process.env.TOOLGATE_FIXTURES = bundled;
}

/** A run that was killed could not remove its bundles. */
function removeLeftovers() {
  for (const name of readdirSync(own)) {
    const [, pid] = /^fixtures-(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(own, name), { recursive: true, force: true });
  }
}
