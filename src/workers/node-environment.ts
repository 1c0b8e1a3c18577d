/**
 * What the TypeScript tools of a namespace run in: its npm packages, installed once for each state of package.json and
 * lock file, and below them the build of its tool files, because Node looks for packages in the folders above a module.
 */
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { sha256 } from '../base/hash.ts';
import { ownFile } from '../base/own-files.ts';
import { buildTools } from './build.ts';
import { buildOnce, forgetFailures, removeOlder } from './build-cache.ts';
import type { EnvironmentRequest, WorkerEnvironment } from './environment.ts';
import { installPackages, type PackageManifest, readManifest } from './node-install.ts';

export interface NodeOptions {
  /** The heap of the worker, in megabytes. */
  readonly memoryMb?: number;
  readonly installTimeout?: number;
}

/** Part of the key. Increase it when environments are built differently. */
const FORMAT = 1;
const MEMORY_MB = 512;
const INSTALL_TIMEOUT = 10 * 60_000;

/** Throws an EnvironmentError if the packages cannot be installed. The worker reports tool files that do not build. */
export async function prepareNode(request: EnvironmentRequest, options: NodeOptions = {}): Promise<WorkerEnvironment> {
  const { memoryMb = MEMORY_MB, installTimeout = INSTALL_TIMEOUT } = options;
  const manifest = await readManifest(request.folder, request.packages);
  const key = keyOf(manifest);
  const root = rootOf(request);
  const path = await buildOnce({
    root,
    key,
    signal: request.signal,
    progress: request.progress,
    isGood: isFolder,
    build: (folder) => installPackages(folder, manifest, request, installTimeout),
  });
  const build = await buildTools(request.folder, path, request.lastGood);
  await removeOlder(root, key);
  return {
    key: `${key}-${build.key}-${memoryMb}`,
    command: [
      process.execPath,
      '--enable-source-maps',
      `--max-old-space-size=${memoryMb}`,
      ownFile('dist/worker/host.mjs'),
      '--build',
      await realpath(build.path),
    ],
    env: {},
    reads: [await realpath(process.execPath), ownFile('dist/worker'), await realpath(path)],
    versions: async () => build.versions,
  };
}

/** A failed installation is not tried again for a while. This forgets the failure, so that it is. */
export async function forgetNodeFailures(request: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): Promise<void> {
  await forgetFailures(rootOf(request));
}

/** Next to the Python environment of the namespace. Names of namespaces have no dot, so the two cannot collide. */
function rootOf({ dataDir, namespace }: Pick<EnvironmentRequest, 'namespace' | 'dataDir'>): string {
  return resolve(dataDir, 'venvs', `${namespace}.node`);
}

/** The same for all folders that ask for no packages. */
function keyOf(manifest: PackageManifest | null): string {
  const files = manifest === null || manifest.count === 0 ? [] : [manifest.text, manifest.lock];
  const [major] = process.versions.node.split('.');
  const inputs = { form: FORMAT, node: [major, process.platform, process.arch], files };
  return sha256(JSON.stringify(inputs)).slice(0, 16);
}

function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
