/**
 * From tool files to modules that plain Node runs: one bundle for all files of a folder, so that a helper they share is
 * there once. It is written below the environment, where packages are found, under a hash of what was made.
 */
import { createHash, randomBytes } from 'node:crypto';
import { readdir, realpath, rename, rm, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { OutputChunk, RolldownOptions } from 'rolldown';
import { messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { type BuildFailure, type BuildManifest, MANIFEST } from '../tools/build-manifest.ts';
import { buildFailures } from './build-failure.ts';
import { type BuildPlaces, isBelow, toolPlugin } from './build-plugin.ts';
import { EnvironmentError } from './environment.ts';
import { pruneFolders } from './prune.ts';
import { toolLanguage } from './tool-files.ts';

export interface Build extends BuildManifest {
  /** Changes with every byte of it. */
  readonly key: string;
  /** Where it is. */
  readonly path: string;
}

/** Of one file, or of all. */
type Attempt =
  | { readonly chunks: readonly OutputChunk[]; readonly failed?: undefined }
  | { readonly failed: readonly BuildFailure[] };

/** Builds what can be built; what cannot is among `failed`, and hides nothing else. */
export async function buildTools(folder: string, environment: string): Promise<Build> {
  const places = { folder: await realpath(folder), environment: resolve(environment) };
  const files = await toolFiles(places.folder);
  const { chunks, failed } = await bundleAll(files, places);
  const built = new Map(chunks.filter((chunk) => chunk.isEntry).map((chunk) => [chunk.name, chunk.fileName]));
  const manifest: BuildManifest = {
    files: files.filter((file) => built.has(file)).map((file) => ({ file, module: built.get(file)! })),
    failed,
  };
  return { ...manifest, ...(await write(chunks, manifest, join(places.environment, 'build'))) };
}

/** Files only, and none that a link brings in from elsewhere. */
async function toolFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  for (const name of (await readdir(folder)).sort()) {
    if (toolLanguage(name) !== 'typescript') continue;
    const path = await realpath(join(folder, name)).catch(() => '');
    if (isBelow(path, folder) && (await isFile(path))) files.push(name);
  }
  return files;
}

async function bundleAll(
  files: readonly string[],
  places: BuildPlaces,
): Promise<{ chunks: readonly OutputChunk[]; failed: BuildFailure[] }> {
  if (files.length === 0) return { chunks: [], failed: [] };
  const whole = await bundle(files, places);
  if (whole.failed === undefined) return { chunks: whole.chunks, failed: [] };
  // Each for itself, to see which ones are to blame; then the good ones together.
  const good: string[] = [];
  const failed: BuildFailure[] = [];
  for (const file of files) {
    const alone = await bundle([file], places);
    if (alone.failed === undefined) good.push(file);
    else failed.push(...alone.failed.map((failure) => blamedOn(file, failure)));
  }
  const rest = good.length === 0 ? { chunks: [] } : await bundle(good, places);
  // It worked for each of them: a file has changed meanwhile, and the next build will tell.
  if (rest.failed !== undefined) return { chunks: [], failed: [...failed, ...rest.failed] };
  return { chunks: rest.chunks, failed };
}

/** A mistake in a helper is one of the tool file, which does not run; the message says where. */
function blamedOn(file: string, failure: BuildFailure): BuildFailure {
  if (failure.file === file) return failure;
  const place = failure.line === null ? failure.file : `${failure.file}:${failure.line}`;
  return { file, line: null, message: `${place}: ${failure.message}` };
}

async function bundle(files: readonly string[], places: BuildPlaces): Promise<Attempt> {
  const { rolldown } = await loadBundler();
  const failed: BuildFailure[] = [];
  const options: RolldownOptions = {
    input: Object.fromEntries(files.map((file) => [file, join(places.folder, file)])),
    cwd: places.folder,
    platform: 'node',
    plugins: [toolPlugin(places, failed)],
    // The one that stands in the folder, and none from above: what is there is not a part of the namespace.
    tsconfig: (await isFile(join(places.folder, 'tsconfig.json'))) ? 'tsconfig.json' : false,
    resolve: {
      extensions: ['.ts', '.mts', '.cts', '.tsx', '.js', '.mjs', '.cjs', '.jsx', '.json'],
      extensionAlias: {
        '.js': ['.ts', '.tsx', '.js'],
        '.mjs': ['.mts', '.mjs'],
        '.cjs': ['.cts', '.cjs'],
      },
    },
    transform: { target: 'node20.19' },
    treeshake: false,
    preserveEntrySignatures: 'strict',
    logLevel: 'silent',
  };
  let made: Awaited<ReturnType<typeof rolldown>> | undefined;
  try {
    made = await rolldown(options);
    const { output } = await made.generate({
      format: 'esm',
      dir: places.folder,
      entryFileNames: '[name].mjs',
      chunkFileNames: 'shared/[name]-[hash].mjs',
      sourcemap: 'inline',
      sourcemapPathTransform: (source, map) => resolve(map, '..', source),
    });
    if (failed.length > 0) return { failed: inOrder(failed) };
    return { chunks: output.filter((part) => part.type === 'chunk') };
  } catch (error) {
    // What is missing was found before, and often is the reason.
    return { failed: failed.length > 0 ? inOrder(failed) : buildFailures(error, files, places.folder) };
  } finally {
    await made?.close();
  }
}

async function loadBundler(): Promise<typeof import('rolldown')> {
  try {
    return await import('rolldown');
  } catch (error) {
    // Each platform has a package of its own, which npm leaves out with `--omit=optional`.
    throw new EnvironmentError(
      `The bundler for TypeScript tools cannot be loaded; install Toolgate again, with optional packages: ${messageOf(error)}`,
    );
  }
}

/** Imports are looked up side by side. */
function inOrder(failed: readonly BuildFailure[]): BuildFailure[] {
  return failed.toSorted((a, b) => a.file.localeCompare(b.file) || (a.line ?? 0) - (b.line ?? 0));
}

async function write(
  chunks: readonly OutputChunk[],
  manifest: BuildManifest,
  below: string,
): Promise<{ key: string; path: string }> {
  const contents = [
    ...chunks.map(({ fileName, code }) => [fileName, code] as const),
    [MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`] as const,
  ];
  const key = createHash('sha256').update(JSON.stringify(contents)).digest('hex').slice(0, 16);
  const path = join(below, key);
  if (await isFile(join(path, MANIFEST))) {
    const now = new Date();
    await utimes(path, now, now);
  } else {
    const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    for (const [name, text] of contents) await replaceFile(join(draft, name), text);
    // Whole or not at all. Where another process was faster, it is the same.
    await rename(draft, path).catch(() => rm(draft, { recursive: true, force: true }));
  }
  await pruneFolders(below, key);
  return { key, path };
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
