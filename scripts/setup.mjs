// What has to be there before anything can run: installed packages, a current build, the tests' own tools.
// Plain Node without dependencies, because it runs on a fresh clone. Everything it prints goes to stderr.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const lockFor = (what) => join(root, '.toolgate', `${what}.lock`);

/** The installed packages of the project, as package-lock.json has them. */
export function ensureInstalled() {
  return ensurePackages('packages', root, 'Installing packages');
}

/** The outside programs that tests run. They live apart: a Node binary in the root tree would shadow `node`. */
export function ensureTestTools() {
  return ensurePackages('tools', join(root, 'test', 'tools'), 'Installing test tools');
}

/** dist/, built from the present state of src/. */
export function ensureBuilt() {
  return once(
    'build',
    () => readText(join(root, 'dist', '.stamp')) === sourceHash(),
    () => step('Building', build),
  );
}

/** Builds beside dist/ and swaps, so that a failed build, or a second run, never meets half of one. */
export async function build() {
  const stamp = sourceHash();
  const dist = join(root, 'dist');
  const next = join(root, '.toolgate', `build-${process.pid}`);
  const old = join(root, '.toolgate', `old-${process.pid}`);
  try {
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const types = join(next, 'types');
    const code = await run(process.execPath, [tsc, '-p', 'tsconfig.json', '--emitDeclarationOnly', '--outDir', types]);
    if (code !== 0) throw new Error('The build failed; the errors are above.');
    const { bundleTypes } = await import('./api/types.mjs');
    writeFileSync(join(next, 'index.d.ts'), bundleTypes(types));
    rmSync(types, { recursive: true });
    await bundle(next);
    writeFileSync(join(next, '.stamp'), stamp);
    // Two renames: whoever starts the old build meanwhile finds one of the two whole.
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(next, dist);
  } finally {
    rmSync(next, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

/**
 * A few files instead of a hundred, without what is not used: that is most of the time a start takes.
 */
async function bundle(folder) {
  const { rolldown } = await import('rolldown');
  const { buildDocsPage } = await import('./docs-page.mjs');
  const docsPage = await buildDocsPage(root);
  writeFileSync(join(folder, 'docs.html'), docsPage);
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const made = await rolldown({
    input: { index: join(root, 'src/index.ts'), 'cli/main': join(root, 'src/cli/main.ts') },
    platform: 'node',
    external: Object.keys(dependencies),
    logLevel: 'warn',
    transform: { define: { DOCS_PAGE: JSON.stringify(docsPage) } },
  });
  const { output } = await made.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    // In one chunk: where its parts stood in several, those imported each other in a circle and failed at the start.
    codeSplitting: { groups: [{ name: 'zod', test: /node_modules[\\/]zod[\\/]/ }] },
    // Less to read at each start. Names of functions stay, so that a stack still says something.
    minify: { mangle: { keepNames: true } },
  });
  copyLicenses([...output, ...(await bundleWorker(join(folder, 'worker')))], join(folder, 'licenses'));
}

/** The licenses of the packages that a bundle contains; all others are installed with the package. */
function copyLicenses(output, folder) {
  const packages = output.flatMap(({ moduleIds = [] }) =>
    moduleIds.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
  mkdirSync(folder);
  for (const path of new Set(packages)) {
    const { name } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'));
    const license = readdirSync(path).find((file) => /^licen[cs]e/i.test(file));
    if (license === undefined) throw new Error(`${name} is bundled, but ${path} has no license file to ship with it.`);
    copyFileSync(join(path, license), join(folder, `${name.replace('/', '+')}.txt`));
  }
}

/**
 * What runs in the workers of Node, and what their tools may import from us: a folder that is whole without any package, so
 * that nothing else of ours has to be within their reach.
 */
async function bundleWorker(folder) {
  const { rolldown } = await import('rolldown');
  const source = (path) => join(root, 'host', path);
  const made = await rolldown({
    input: {
      host: source('main.ts'),
      lifeline: source('lifeline.ts'),
      toolgate: source('provided/toolgate.ts'),
      zod: source('provided/zod.ts'),
      'zod-mini': source('provided/zod-mini.ts'),
    },
    platform: 'node',
    logLevel: 'warn',
  });
  const { output } = await made.write({
    dir: folder,
    format: 'esm',
    // Modules by their own name, because their package.json may be out of reach.
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    minify: { mangle: false },
  });
  return output;
}

/** Runs a program to its end and gives its exit code. A signal to us ends it too, and then us. */
export async function run(
  command,
  args,
  { cwd = root, env = process.env, stdio = ['inherit', 2, 2], shell = false, timeout = undefined } = {},
) {
  const child = spawn(command, args, { cwd, env, stdio, shell, timeout, killSignal: 'SIGKILL' });
  let stoppedBy;
  const stop = (signal) => {
    stoppedBy = signal;
    child.kill(signal);
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, stop);
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? 1));
    });
  } finally {
    for (const signal of signals) process.off(signal, stop);
    if (stoppedBy) process.kill(process.pid, stoppedBy);
  }
}

function ensurePackages(name, folder, what) {
  return once(
    name,
    () => isInstalled(folder),
    () =>
      step(what, async () => {
        // --include=dev: NODE_ENV=production must not leave out the compiler.
        const args = ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
        const code = await run('npm', args, { cwd: folder, shell: process.platform === 'win32' });
        if (code !== 0)
          throw new Error(`npm ci failed in ${relative(root, folder) || 'the project folder'}; its message is above.`);
      }),
  );
}

/**
 * Whether node_modules holds what package-lock.json asks for. npm keeps its own record of what it installed, written last:
 * comparing with that notices an interrupted install and accepts one done by hand.
 */
function isInstalled(folder) {
  const wanted = readPackages(join(folder, 'package-lock.json'));
  const found = readPackages(join(folder, 'node_modules', '.package-lock.json'));
  if (!wanted) throw new Error(`${join(folder, 'package-lock.json')} is missing; restore it with git checkout.`);
  if (!found) return false;
  const same = (path) =>
    found[path]?.version === wanted[path]?.version && found[path]?.integrity === wanted[path]?.integrity;
  // Optional packages are those for other platforms; npm leaves them out.
  const needed = Object.keys(wanted).filter((path) => path !== '' && !wanted[path].optional);
  return (
    needed.every((path) => path in found && same(path)) &&
    Object.keys(found).every((path) => path in wanted && same(path))
  );
}

function readPackages(file) {
  const text = readText(file);
  return text === undefined ? undefined : JSON.parse(text).packages;
}

/** One hash over everything that the build reads. Contents rather than times: a checkout or a deleted file counts too. */
function sourceHash() {
  const hash = createHash('sha256');
  const sources = ['src', 'host'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((path) => /\.(ts|html|css)$/.test(path) && !path.endsWith('.test.ts'))
      .map((path) => join(folder, path)),
  );
  const makers = ['setup.mjs', 'docs-page.mjs', 'api/declarations.mjs', 'api/types.mjs'].map((name) =>
    join('scripts', name),
  );
  for (const path of [...sources.sort(), 'tsconfig.json', 'package.json', 'package-lock.json', ...makers]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Does the work if it is not done yet, in one process at a time. */
export async function once(what, isDone, work) {
  if (isDone()) return;
  const release = await acquireLock(lockFor(what));
  try {
    if (!isDone()) await work();
  } finally {
    release();
  }
}

async function acquireLock(lock) {
  mkdirSync(dirname(lock), { recursive: true });
  for (let waited = false; ; waited = true) {
    try {
      writeFileSync(lock, String(process.pid), { flag: 'wx' });
      return () => rmSync(lock, { force: true });
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (!waited) console.error('Waiting for another set-up of this folder…');
    await sleep(250);
    // A holder that is gone left its lock behind; an empty file is one that is just being written.
    const holder = Number(readText(lock));
    if (holder > 0 && !isAlive(holder)) rmSync(lock, { force: true });
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

export async function step(what, work) {
  const start = performance.now();
  console.error(`${what}…`);
  await work();
  console.error(`${what}: done in ${((performance.now() - start) / 1000).toFixed(1)} s`);
}

function readText(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}
