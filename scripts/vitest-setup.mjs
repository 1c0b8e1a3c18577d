import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { ensureBuilt, isAlive, root } from './setup.mjs';

const own = join(root, '.toolgate');
const bundled = join(own, `fixtures-${process.pid}`);
const compiled = join(own, `sources-${process.pid}`);

export async function setup() {
  usePythonItself();
  await Promise.all([bundleFixtures(), compileSources()]);
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
  rmSync(compiled, { recursive: true, force: true });
}

/**
 * Compiles src/ file by file, and tests load that in its place (vitest.config.ts). Otherwise vitest would transform each module
 * and evaluate it in each worker, which takes a worker five times as long. It is also closer to dist/: the bundler changes code.
 */
async function compileSources() {
  // vitest calls this once per project.
  if (process.env.TOOLGATE_COMPILED !== undefined) return;
  const { rolldown } = await import('rolldown');
  const src = join(root, 'src');
  const names = readdirSync(src, { recursive: true }).filter((name) => /(?<!\.test)\.ts$/.test(name));
  const build = await rolldown({
    input: Object.fromEntries(names.map((name) => [name.slice(0, -'.ts'.length), join(src, name)])),
    platform: 'node',
    external: (id) => !id.startsWith('.') && !isAbsolute(id),
    logLevel: 'silent',
  });
  await build.write({
    dir: compiled,
    format: 'esm',
    preserveModules: true,
    preserveModulesRoot: src,
    entryFileNames: '[name].mjs',
    sourcemap: 'inline',
  });
  process.env.TOOLGATE_COMPILED = compiled;
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

/** A run that was killed could not remove what it had made. */
function removeLeftovers() {
  for (const name of readdirSync(own)) {
    const [, pid] = /^(?:fixtures|sources)-(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(own, name), { recursive: true, force: true });
  }
}
