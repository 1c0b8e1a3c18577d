/**
 * Builds tool files into modules that plain Node runs: one bundle for all files of a folder, so that shared helpers
 * exist only once. The build is written below the environment, where Node finds the packages, in a folder named after
 * its hash.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readdir, realpath, stat, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { OutputChunk, RolldownOptions } from 'rolldown';
import { messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';
import { sha256 } from '../base/hash.ts';
import { printJson } from '../base/json-file.ts';
import { type BuildFailure, type BuildManifest, MANIFEST } from '../tools/build-manifest.ts';
import { moveDraft, removeOlder } from './build-cache.ts';
import { type BuildFolders, displayPath, isBelow, toolPlugin } from './build-plugin.ts';
import { EnvironmentError } from './environment.ts';
import type { FileVersion, FileVersions } from './file-version.ts';
import { toolLanguage } from './tool-files.ts';

export interface Build extends BuildManifest {
  /** Changes with every byte of the build. */
  readonly key: string;
  readonly path: string;
  readonly versions: FileVersions;
}

/** The result of bundling one file, or all of them. */
type BundleResult =
  | { readonly chunks: readonly OutputChunk[]; readonly failed?: undefined }
  | { readonly failed: readonly BuildFailure[] };

/** Workers of an older version may still finish calls and load a module for them, so recent builds are kept. */
const KEPT_MS = 60 * 60 * 1000;

/**
 * Builds what can be built. Files that cannot be built are listed in `failed` and do not affect the others. The last
 * good versions of changed files are part of the build.
 */
export async function buildTools(
  folder: string,
  environment: string,
  lastGood: FileVersions = new Map(),
): Promise<Build> {
  const folders = { folder: await realpath(folder), environment: resolve(environment) };
  const files = await toolFiles(folders.folder);
  const { chunks, failed } = await bundleAll(files, folders);
  const versions = versionsOf(chunks);
  const contents = new Map(chunks.map(({ fileName, code }) => [fileName, code]));
  const built = files.map((file) => {
    const good = lastGood.get(file);
    const module = versions.has(file) ? moduleOf(file) : null;
    if (good === undefined || good.hash === versions.get(file)?.hash) return { file, module, lastGood: null };
    for (const [name, text] of good.files) contents.set(`last-good/${good.hash}/${name}`, String(text));
    return { file, module, lastGood: `last-good/${good.hash}/${moduleOf(file)}` };
  });
  const manifest: BuildManifest = {
    files: built.filter(({ module, lastGood }) => module !== null || lastGood !== null),
    failed,
  };
  return { ...manifest, versions, ...(await write(contents, manifest, join(folders.environment, 'build'))) };
}

function moduleOf(file: string): string {
  return `${file}.mjs`;
}

/** The modules of each tool file: its own, and the shared ones that it imports. */
function versionsOf(chunks: readonly OutputChunk[]): FileVersions {
  const byName = new Map(chunks.map((chunk) => [chunk.fileName, chunk]));
  const versions = new Map<string, FileVersion>();
  for (const entry of chunks.filter((chunk) => chunk.isEntry)) {
    const files = new Map<string, string>();
    const add = (name: string) => {
      const chunk = byName.get(name);
      if (chunk === undefined || files.has(name)) return;
      files.set(name, chunk.code);
      for (const imported of [...chunk.imports, ...chunk.dynamicImports]) add(imported);
    };
    add(entry.fileName);
    const hash = sha256(JSON.stringify([...files].toSorted(([a], [b]) => (a < b ? -1 : 1)))).slice(0, 16);
    versions.set(entry.name, { hash, files });
  }
  return versions;
}

/** Regular files only, and no links that lead out of the folder. */
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
  folders: BuildFolders,
): Promise<{ chunks: readonly OutputChunk[]; failed: BuildFailure[] }> {
  if (files.length === 0) return { chunks: [], failed: [] };
  const all = await bundle(files, folders);
  if (all.failed === undefined) return { chunks: all.chunks, failed: [] };
  // Bundles each file alone to find the broken ones, then the good ones together.
  const good: string[] = [];
  const failed: BuildFailure[] = [];
  for (const file of files) {
    const alone = await bundle([file], folders);
    if (alone.failed === undefined) good.push(file);
    else failed.push(...alone.failed.map((failure) => attributedTo(file, failure)));
  }
  const rest = good.length === 0 ? { chunks: [] } : await bundle(good, folders);
  // Each was good alone, so a file has changed meanwhile. The next build will find out.
  if (rest.failed !== undefined) return { chunks: [], failed: [...failed, ...rest.failed] };
  return { chunks: rest.chunks, failed };
}

/** A mistake in a helper is reported for the tool file, which cannot run. The message says where the mistake is. */
function attributedTo(file: string, failure: BuildFailure): BuildFailure {
  if (failure.file === file) return failure;
  const location = failure.line === null ? failure.file : `${failure.file}:${failure.line}`;
  return { file, line: null, message: `${location}: ${failure.message}` };
}

async function bundle(files: readonly string[], folders: BuildFolders): Promise<BundleResult> {
  const { rolldown } = await loadBundler();
  const failed: BuildFailure[] = [];
  const options: RolldownOptions = {
    input: Object.fromEntries(files.map((file) => [file, join(folders.folder, file)])),
    cwd: folders.folder,
    platform: 'node',
    plugins: [toolPlugin(folders, failed)],
    // Only the folder's own tsconfig.json: one in a folder above is not part of the namespace.
    tsconfig: (await isFile(join(folders.folder, 'tsconfig.json'))) ? 'tsconfig.json' : false,
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
  let build: Awaited<ReturnType<typeof rolldown>> | undefined;
  try {
    build = await rolldown(options);
    const { output } = await build.generate({
      format: 'esm',
      dir: folders.folder,
      entryFileNames: moduleOf('[name]'),
      chunkFileNames: 'shared/[name]-[hash].mjs',
      // Otherwise calls that look as if they had no effect are left out, though they may throw.
      minify: false,
      sourcemap: 'inline',
      sourcemapPathTransform: (source, map) => resolve(map, '..', source),
    });
    if (failed.length > 0) return { failed: inOrder(failed) };
    return { chunks: output.filter((part) => part.type === 'chunk') };
  } catch (error) {
    // A missing import that the plugin has found is often the reason.
    return { failed: failed.length > 0 ? inOrder(failed) : bundlerFailures(error, files, folders.folder) };
  } finally {
    await build?.close();
  }
}

async function loadBundler(): Promise<typeof import('rolldown')> {
  try {
    return await import('rolldown');
  } catch (error) {
    // Each platform has its own package, which npm leaves out with `--omit=optional`.
    throw new EnvironmentError(
      `The bundler for TypeScript tools cannot be loaded; install Toolgate again, with optional packages: ${messageOf(error)}`,
    );
  }
}

/** Imports are resolved concurrently, so failures come in any order. */
function inOrder(failed: readonly BuildFailure[]): BuildFailure[] {
  return failed.toSorted((a, b) => a.file.localeCompare(b.file) || (a.line ?? 0) - (b.line ?? 0));
}

interface BundlerError {
  readonly message: string;
  readonly code?: string;
  readonly id?: string;
  readonly loc?: { readonly file?: string; readonly line: number; readonly column: number };
  readonly pos?: number;
}

/** The bundler's errors with file, line and a message of one line. */
function bundlerFailures(error: unknown, files: readonly string[], folder: string): BuildFailure[] {
  const all = (error as { errors?: readonly BundlerError[] }).errors ?? [{ message: messageOf(error) }];
  return all.map((one) => {
    const path = one.loc?.file ?? one.id;
    const file = path === undefined ? (files[0] ?? '') : displayPath(path, folder);
    return { file, ...positionOf(one, path), message: firstLine(one.message) };
  });
}

function positionOf(
  { loc, pos, message }: BundlerError,
  path: string | undefined,
): { line: number | null; column?: number } {
  if (loc !== undefined) return { line: loc.line, column: loc.column + 1 };
  if (pos !== undefined && path !== undefined) return positionAt(pos, path);
  // The code frame in the message has the position: `╭─[ a.ts:3:7 ]`.
  const frame = /\[\s*[^\]\n]*?:(\d+):(\d+)\s*\]/.exec(message);
  return frame === null ? { line: null } : { line: Number(frame[1]), column: Number(frame[2]) };
}

function positionAt(pos: number, path: string): { line: number | null; column?: number } {
  try {
    const before = readFileSync(path, 'utf8').slice(0, pos).split('\n');
    return { line: before.length, column: before.at(-1)!.length + 1 };
  } catch {
    return { line: null };
  }
}

/** Without colours, error codes and the code frame that follows. */
function firstLine(message: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters.
  const text = message.replaceAll(/\u001b\[[0-9;]*m/g, '');
  const [first = ''] = text.split('\n').filter((line) => line.trim() !== '');
  return first.replace(/^(?:Error: )?\[[A-Z_]+\]\s*(?:Error: )?/, '').trim();
}

async function write(
  modules: ReadonlyMap<string, string>,
  manifest: BuildManifest,
  root: string,
): Promise<{ key: string; path: string }> {
  const contents = [...modules, [MANIFEST, printJson(manifest)] as const];
  const key = sha256(JSON.stringify(contents)).slice(0, 16);
  const path = join(root, key);
  if (await isFile(join(path, MANIFEST))) {
    const now = new Date();
    await utimes(path, now, now);
  } else {
    const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`;
    for (const [name, text] of contents) await replaceFile(join(draft, name), text);
    await moveDraft(draft, path, MANIFEST);
  }
  await removeOlder(root, key, '.', KEPT_MS);
  return { key, path };
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}
