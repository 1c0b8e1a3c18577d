import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBuilt, root } from './setup.mjs';

const bundled = join(root, '.toolgate', `fixtures-${process.pid}`);

export async function setup() {
  await bundleFixtures();
  try {
    // Tests that start the gateway run dist/, so it is brought up to date also when vitest is called directly.
    await ensureBuilt();
  } catch (error) {
    // Someone else's half-written file must not stop the tests of one that is fine.
    console.error(`${error.message} Tests that start the gateway use the last good build, if there is one.`);
  }
}

export function teardown() {
  rmSync(bundled, { recursive: true, force: true });
}

/** The fixture servers with their SDK in a file or two each: they are started a thousand times, and loading is most of what that takes. */
async function bundleFixtures() {
  // Once, however many projects there are.
  if (process.env.TOOLGATE_FIXTURES !== undefined) return;
  const { rolldown } = await import('rolldown');
  const folder = join(root, 'test', 'fixtures');
  const names = readdirSync(folder).filter((name) => name.endsWith('.mjs'));
  mkdirSync(bundled, { recursive: true });
  const made = await rolldown({
    input: names.map((name) => join(folder, name)),
    platform: 'node',
    logLevel: 'silent',
  });
  await made.write({
    dir: bundled,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    minify: { mangle: false },
  });
  process.env.TOOLGATE_FIXTURES = bundled;
}
