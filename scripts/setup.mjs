// Everything that other scripts need first: installed packages, a current build, the tools of the tests.
// Plain Node without dependencies, because it runs on a fresh clone. It prints only to stderr.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { SOURCES } from './sources.mjs';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const lockFor = (what) => join(root, '.toolgate', `${what}.lock`);

/** Installs the packages of the project according to package-lock.json. */
export function ensureInstalled() {
  return ensurePackages('packages', root, 'Installing packages');
}

/** Installs the programs that tests run. Not in the root folder, where a Node binary would shadow `node`. */
export async function ensureTestTools({ wide }) {
  const tools = join(root, 'test', 'tools');
  await ensurePackages('tools', tools, 'Installing test tools');
  if (!wide) return;
  await Promise.all([
    ensurePackages('wide-tools', join(tools, 'wide'), 'Installing tools of the wide tests'),
    ensurePackages('clients', join(tools, 'clients'), 'Installing published clients'),
  ]);
}

/** Builds dist/ unless it is current. With `check: false` types are only written: the caller checks them itself. */
export function ensureBuilt({ check = true } = {}) {
  return once(
    'build',
    () => readText(join(root, 'dist', '.stamp')) === sourceHash(),
    () => step('Building', () => build({ check })),
  );
}

/** Builds in another folder and then swaps, so that nobody ever sees half of a build. */
export async function build({ check = true } = {}) {
  const stamp = sourceHash();
  const dist = join(root, 'dist');
  const next = join(root, '.toolgate', `build-${process.pid}`);
  const old = join(root, '.toolgate', `old-${process.pid}`);
  try {
    mkdirSync(next, { recursive: true });
    // At the same time. Both are waited for, because a half of a build is removed when it failed.
    const parts = await Promise.allSettled([
      writeTypes(next, check),
      bundle(next).then(() => buildDashboard(join(next, 'dashboard'))),
    ]);
    for (const { reason } of parts) if (reason !== undefined) throw reason;
    await writeManual(next);
    writeFileSync(join(next, '.stamp'), stamp);
    // Two renames: between them dist/ is missing for an instant, but never incomplete.
    if (existsSync(dist)) renameSync(dist, old);
    renameSync(next, dist);
  } finally {
    rmSync(next, { recursive: true, force: true });
    rmSync(old, { recursive: true, force: true });
  }
}

/** The declarations of the package, and those for editors. */
async function writeTypes(folder, check) {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const types = join(folder, 'types');
  const options = ['-p', 'tsconfig.json', '--emitDeclarationOnly', '--outDir', types, ...(check ? [] : ['--noCheck'])];
  if ((await run(process.execPath, [tsc, ...options])) !== 0)
    throw new Error('The build failed; the errors are above.');
  const { bundleTypes } = await import('./api/types.mjs');
  writeFileSync(join(folder, 'index.d.ts'), bundleTypes(types, 'index.d.ts'));
  const provided = readFileSync(join(root, 'host', 'provided', 'toolgate.ts'), 'utf8');
  writeFileSync(join(types, 'provided.d.ts'), provided.replaceAll('../../src/', './'));
  writeEditorTypes(join(folder, 'editor'), bundleTypes(types, 'provided.d.ts'));
  rmSync(types, { recursive: true });
}

/** The page of the dashboard. Its files are compressed here, because the gateway should not do that for each browser. */
async function buildDashboard(folder) {
  const { build: buildPage } = await import('vite');
  const { output } = await buildPage({
    root: join(root, 'dashboard'),
    configFile: join(root, 'dashboard', 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: folder },
  });
  copyLicenses(output, join(folder, 'licenses'));
  for (const { parentPath, name } of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!/\.(html|js|css|svg|json|webmanifest)$/.test(name)) continue;
    const path = join(parentPath, name);
    const bytes = readFileSync(path);
    writeFileSync(`${path}.br`, brotliCompressSync(bytes));
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** The manual page, from the table of commands in the new build. */
async function writeManual(folder) {
  const stdout = new PassThrough();
  const { run: toolgate } = await import(pathToFileURL(join(folder, 'cli', 'main.js')).href);
  const io = { env: {}, cwd: () => root, stdin: process.stdin, stdout, stderr: process.stderr };
  if ((await toolgate(['help', 'man'], io)) !== 0) throw new Error('The manual page could not be written.');
  writeFileSync(join(folder, 'toolgate.1'), stdout.read());
}

/** The types of what tool files can import without installing it, for editors. */
function writeEditorTypes(folder, own) {
  mkdirSync(folder);
  writeFileSync(join(folder, 'toolgate.d.ts'), own);
  // Version 3 of zod is not provided, and its sources are no declarations.
  const filter = (path) => !/zod\/(v3|src)(\/|$)/.test(path) && !/(?<!\.d)\.[cm]?[jt]s$|\.(md|json|cts)$/.test(path);
  cpSync(join(root, 'node_modules', 'zod'), join(folder, 'zod'), { recursive: true, filter });
}

/** A few files instead of hundreds, without unused code: loading them is most of the start-up time. */
async function bundle(folder) {
  const { rolldown } = await import('rolldown');
  const { buildDocsPage } = await import('./docs-page.mjs');
  const docsPage = await buildDocsPage(root);
  writeFileSync(join(folder, 'docs.html'), docsPage);
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const bundler = await rolldown({
    input: {
      index: join(root, 'src/index.ts'),
      'cli/main': join(root, 'src/cli/main.ts'),
      tokenizer: join(root, 'src/observe/token-program.ts'),
    },
    platform: 'node',
    external: Object.keys({ ...dependencies, ...optionalDependencies }),
    logLevel: 'warn',
    transform: { define: { DOCS_PAGE: JSON.stringify(docsPage) } },
  });
  const { output } = await bundler.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    codeSplitting: { groups: chunkGroups() },
    // Function names are kept for readable stacks.
    minify: { mangle: { keepNames: true } },
  });
  for (const { type, fileName, code } of output)
    if (type === 'chunk') writeFileSync(join(folder, fileName), toAscii(code));
  copyLicenses([...output, ...(await bundleWorker(join(folder, 'worker')))], join(folder, 'licenses'));
}

/** A single character beyond Latin-1 makes V8 keep two bytes for each character of a file. */
function toAscii(code) {
  return code.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * One file for what every command loads, one for what a window adds, one for what `connect` adds, one for what a gateway adds. By itself the bundler
 * makes some forty files of these, by who imports what. What programs import without a gateway stands alone, so that they
 * stay small when they are bundled with us.
 */
function chunkGroups() {
  const starts = {
    start: 'src/cli/main.ts',
    window: 'src/cli/stdio.ts',
    remote: 'src/cli/connect.ts',
    gateway: 'src/cli/session.ts',
  };
  const groups = Object.entries(starts).map(([name, path], index) => {
    const loaded = new Set([join(root, path)]);
    const isLoaded = (id, modules) => {
      if (loaded.size === 1)
        for (const one of loaded)
          for (const imported of modules.getModuleInfo(one)?.importedIds ?? []) loaded.add(imported);
      return id !== join(root, path) && loaded.has(id);
    };
    return { name: (id, modules) => (isLoaded(id, modules) ? name : null), debugName: name, priority: 4 - index };
  });
  return [
    { name: 'errors', test: /\/src\/base\/(errors|version)\.ts$/, priority: 5 },
    // In one chunk, because several chunks of zod would import each other in a cycle. Not zod 3, which is loaded on demand.
    { name: 'zod', test: /node_modules[\\/]zod[\\/](?!v3)/, priority: 5 },
    { name: 'define-tool', test: /\/src\/tools\/define-tool\.ts$/, priority: 5 },
    ...groups,
  ];
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
 * The host program of Node workers, and what their tools can import from Toolgate. It needs no packages, so that isolated
 * workers need to see nothing else of Toolgate.
 */
async function bundleWorker(folder) {
  const { rolldown } = await import('rolldown');
  const source = (path) => join(root, 'host', path);
  const bundler = await rolldown({
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
  const { output } = await bundler.write({
    dir: folder,
    format: 'esm',
    // `.mjs`, because a worker may not see the package.json that says these are modules.
    entryFileNames: '[name].mjs',
    chunkFileNames: 'chunks/[name]-[hash].mjs',
    minify: { mangle: false },
  });
  return output;
}

/** Runs a program to its end and returns its exit code. Signals to this process are passed on to it. */
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
        // --include=dev: with NODE_ENV=production npm would skip the compiler.
        const args = ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
        await retry(3, async () => {
          const code = await run('npm', args, { cwd: folder, shell: process.platform === 'win32' });
          if (code !== 0)
            throw new Error(
              `npm ci failed in ${relative(root, folder) || 'the project folder'}; its message is above.`,
            );
        });
      }),
  );
}

/**
 * Whether node_modules contains what package-lock.json asks for. npm writes a record of what it installed at the very end.
 * Comparing with that record detects interrupted installations and accepts manual ones.
 */
function isInstalled(folder) {
  const wanted = readPackages(join(folder, 'package-lock.json'));
  const found = readPackages(join(folder, 'node_modules', '.package-lock.json'));
  if (!wanted) throw new Error(`${join(folder, 'package-lock.json')} is missing; restore it with git checkout.`);
  if (!found) return false;
  const same = (path) =>
    found[path]?.version === wanted[path]?.version && found[path]?.integrity === wanted[path]?.integrity;
  // Optional packages are for other platforms, and npm skips them.
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

const PAGE = ['dashboard/index.html', 'dashboard/vite.config.ts'];

/** A hash of everything that the build reads. Of contents and not of times, so that checkouts and deleted files count. */
export function sourceHash() {
  const hash = createHash('sha256');
  const sources = SOURCES.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((path) => /\.(tsx?|html|css|svg)$/.test(path) && !path.endsWith('.test.ts'))
      .map((path) => join(folder, path)),
  );
  const makers = ['setup.mjs', 'docs-page.mjs', 'api/declarations.mjs', 'api/types.mjs'].map((name) =>
    join('scripts', name),
  );
  for (const path of [...sources.sort(), 'tsconfig.json', 'package.json', 'package-lock.json', ...PAGE, ...makers]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(root, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Does the work unless it is already done, in one process at a time. */
export async function once(what, isDone, work) {
  if (isDone()) return;
  const release = await acquireLock(lockFor(what));
  try {
    if (!isDone()) await work();
  } finally {
    release();
  }
}

/** Tries work that needs the network several times. */
export async function retry(times, work) {
  for (let tried = 1; ; tried += 1) {
    try {
      return await work();
    } catch (error) {
      if (tried === times) throw error;
      console.error(`${error.message} Trying again…`);
      await sleep(tried * 2_000);
    }
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
    // The holder may have died. An empty file is a lock that is just being written.
    const holder = Number(readText(lock));
    if (holder > 0 && !isAlive(holder)) rmSync(lock, { force: true });
  }
}

export function isAlive(pid) {
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
