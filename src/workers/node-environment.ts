/**
 * Where the TypeScript tools of a namespace run: its npm packages, installed once for each state of package.json and lock
 * file, and below them the build of its tool files, because that is where packages are found from.
 */
import { createHash } from 'node:crypto';
import { mkdir, readFile, realpath, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { ownFile } from '../base/own-files.ts';
import { buildTools } from './build.ts';
import { type Environment, EnvironmentError, type EnvironmentRequest } from './environment.ts';
import { forgetFailures, madeOnce, removeOlder } from './made-once.ts';
import { runNpm } from './npm.ts';

export interface NodeOptions {
  /** What is taken from the process's own, unless told otherwise. */
  readonly env?: NodeJS.ProcessEnv;
  /** What the tools of the namespace may have in memory, in megabytes. */
  readonly memoryMb?: number;
  readonly installTimeout?: number;
}

/** package.json and what goes with it. */
interface Manifest {
  readonly text: string;
  readonly lock: { readonly name: string; readonly text: string } | null;
  /** How many packages it names. */
  readonly count: number;
}

/** Changes with how environments are made. */
const FORM = 1;
const MEMORY_MB = 512;
const INSTALL_TIMEOUT = 10 * 60_000;
const LOCKS = ['npm-shrinkwrap.json', 'package-lock.json'];

/** Throws an EnvironmentError where the packages cannot be installed. Tool files that do not build are told by the worker. */
export async function prepareNode(request: EnvironmentRequest, options: NodeOptions = {}): Promise<Environment> {
  const manifest = await readManifest(request.folder);
  const key = keyOf(manifest);
  const root = rootOf(request);
  const path = await madeOnce({
    root,
    key,
    signal: request.signal,
    progress: request.progress,
    isGood: isFolder,
    make: (folder) => install(folder, manifest, request, options),
  });
  const build = await buildTools(request.folder, path);
  await removeOlder(root, key);
  const memory = options.memoryMb ?? MEMORY_MB;
  return {
    key: `${key}-${build.key}-${memory}`,
    command: [
      process.execPath,
      '--enable-source-maps',
      `--max-old-space-size=${memory}`,
      ownFile('dist/worker/host.mjs'),
      '--build',
      await realpath(build.path),
    ],
    env: {},
    reads: [await realpath(process.execPath), ownFile('dist/worker'), await realpath(path)],
  };
}

/** A failed installation is not tried again for a while; after this it is. */
export async function forgetNodeFailures(request: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): Promise<void> {
  await forgetFailures(rootOf(request));
}

/** Beside those of Python, which are cleared by their own. No namespace has a dot in its name. */
function rootOf({ dataDir, namespace }: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): string {
  return resolve(dataDir, 'venvs', `${namespace}.node`);
}

async function install(
  folder: string,
  manifest: Manifest | null,
  { progress, signal }: EnvironmentRequest,
  { env = process.env, installTimeout = INSTALL_TIMEOUT }: NodeOptions,
): Promise<Record<string, unknown>> {
  await mkdir(folder, { recursive: true });
  if (manifest !== null && manifest.count > 0) {
    const { text, lock, count } = manifest;
    await writeFile(join(folder, 'package.json'), text);
    if (lock !== null) await writeFile(join(folder, lock.name), lock.text);
    progress(`installing ${count === 1 ? '1 package' : `${count} packages`} with npm`);
    await runNpm(lock === null ? 'install' : 'ci', { cwd: folder, env, timeout: installTimeout, signal });
  }
  return { node: process.version, made: new Date().toISOString() };
}

async function readManifest(folder: string): Promise<Manifest | null> {
  const text = await readText(join(folder, 'package.json'));
  if (text === null) return null;
  let lock: Manifest['lock'] = null;
  for (const name of LOCKS) {
    const found = await readText(join(folder, name));
    if (found !== null) lock ??= { name, text: found };
  }
  return { text, lock, count: countPackages(text) };
}

function countPackages(text: string): number {
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(text) as Record<string, unknown> | null;
  } catch (error) {
    throw new EnvironmentError(`package.json is not valid JSON: ${messageOf(error)}`);
  }
  const names = new Set<string>();
  for (const section of ['dependencies', 'optionalDependencies', 'peerDependencies']) {
    const packages = value?.[section];
    if (typeof packages === 'object' && packages !== null) for (const name of Object.keys(packages)) names.add(name);
  }
  return names.size;
}

/** The same for all that names no packages. */
function keyOf(manifest: Manifest | null): string {
  const files = manifest === null || manifest.count === 0 ? [] : [manifest.text, manifest.lock];
  const [major] = process.versions.node.split('.');
  const from = { form: FORM, node: [major, process.platform, process.arch], files };
  return createHash('sha256').update(JSON.stringify(from)).digest('hex').slice(0, 16);
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new EnvironmentError(`${file} cannot be read: ${messageOf(error)}`);
  }
}
