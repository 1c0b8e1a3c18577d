/** Loads the items of a build: imports its modules and searches their exports. A broken file does not affect others. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject } from '../src/base/objects.ts';
import type { BuildFailure, BuildManifest, BuiltFile } from '../src/tools/build-manifest.ts';
import { locationOf, textOf } from '../src/tools/fault.ts';
import { isItemLike, readItem, wordFor } from '../src/tools/read-item.ts';
import { nameOf, type RunnableItem } from '../src/tools/read-tool.ts';

/** The tools, prompts and resources of a folder. */
export interface FolderItems {
  readonly items: readonly RunnableItem[];
  readonly failed: readonly BuildFailure[];
}

/** A file may wait at its top level for something that never happens. */
const IMPORT_TIMEOUT_MS = 30_000;

type Exports = Record<string, unknown>;

interface FoundItem {
  readonly given: Exports;
  /** The name of the export. */
  readonly exported: string;
}

export async function loadItems(build: string, manifest: BuildManifest, folder: string): Promise<FolderItems> {
  const loaded = await Promise.all(manifest.files.map((file) => loadFile(build, file, folder)));
  const kept = new Set(loaded.filter(({ isKept }) => isKept).map(({ file }) => file));
  const failed = [...manifest.failed, ...loaded.flatMap(({ problems }) => problems)].map((failure) =>
    kept.has(failure.file) ? { ...failure, isKept: true } : failure,
  );
  const items = new Map<string, RunnableItem>();
  // A file may re-export an item of another file: that is one item.
  const seen = new Set<object>();
  for (const { file, found } of loaded) {
    for (const { given, exported, item } of found) {
      if (seen.has(given)) continue;
      seen.add(given);
      const { kind, name } = item;
      const other = items.get(`${kind} ${name}`);
      if (other === undefined) items.set(`${kind} ${name}`, item);
      else {
        const place = other.file === file ? 'this file twice' : `${other.file} already`;
        const message = `The ${kind} "${name}" is in ${place}; rename one.`;
        failed.push({ file, line: lineOf(folder, file, exported), message });
      }
    }
  }
  return { items: [...items.values()], failed };
}

/** The items of a file, and why it could not be loaded as it is now. */
interface LoadedFile {
  readonly file: string;
  readonly found: readonly LoadedItem[];
  readonly problems: readonly BuildFailure[];
  /** Whether the items are those of its last good version. */
  readonly isKept: boolean;
}

interface LoadedItem extends FoundItem {
  readonly item: RunnableItem;
}

/** Loads the last good version if the current one, or one of its items, has a mistake. */
async function loadFile(build: string, { file, module, lastGood }: BuiltFile, folder: string): Promise<LoadedFile> {
  const current = module === null ? null : await loadModule(build, file, module, folder);
  if (current?.problems.length === 0) return { file, ...current, isKept: false };
  const good = lastGood === null ? null : await loadModule(build, file, lastGood, folder);
  const problems = current?.problems ?? [];
  if (good?.problems.length === 0) return { file, found: good.found, problems, isKept: true };
  return { file, found: current?.found ?? [], problems, isKept: false };
}

async function loadModule(
  build: string,
  file: string,
  module: string,
  folder: string,
): Promise<Pick<LoadedFile, 'found' | 'problems'>> {
  const imported = await importFile(build, file, module, folder);
  if ('message' in imported) return { found: [], problems: [imported] };
  const found: LoadedItem[] = [];
  const problems: BuildFailure[] = [];
  for (const { given, exported } of findItems(imported.exports, file)) {
    try {
      found.push({ given, exported, item: await readItem(given, exported, file) });
    } catch (error) {
      const message = `The ${wordFor(given)} "${nameOf(given, exported)}": ${textOf(error)}`;
      problems.push({ file, line: lineOf(folder, file, exported), message });
    }
  }
  return { found, problems };
}

/**
 * Every item among the exports, including those in records of items, and in the exports object of a CommonJS module.
 */
function findItems(exports: Exports, file: string): FoundItem[] {
  const { default: main, ...named } = exports;
  const found = itemsIn(named);
  if (isItemLike(main)) found.push({ given: main, exported: file.replace(/\.[^.]+$/, '') });
  else if (isObject(main)) found.push(...itemsIn(main));
  return found;
}

function itemsIn(record: Exports): FoundItem[] {
  const found: FoundItem[] = [];
  for (const [exported, given] of Object.entries(record)) {
    if (isItemLike(given)) found.push({ given, exported });
    else if (isRecordOfItems(given)) found.push(...itemsIn(given));
  }
  return found;
}

function isRecordOfItems(value: unknown): value is Exports {
  if (!isObject(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every(isItemLike);
}

/** The line that probably exports the item. A guess: the running code does not know its lines. */
function lineOf(folder: string, file: string, exported: string): number | null {
  try {
    const named = new RegExp(
      `\\b(?:export|exports|module)\\b.*(?<![\\w$])${exported.replaceAll(/[^\w]/g, '\\$&')}(?![\\w$])`,
    );
    const lines = readFileSync(join(folder, file), 'utf8').split('\n');
    const at = lines.findIndex((line) => named.test(line));
    const other = at < 0 ? lines.findIndex((line) => /\bexport default\b|\bmodule\.exports\b/.test(line)) : at;
    return other < 0 ? null : other + 1;
  } catch {
    return null;
  }
}

async function importFile(
  build: string,
  file: string,
  module: string,
  folder: string,
): Promise<{ exports: Exports } | BuildFailure> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      const message = `It was not loaded within ${IMPORT_TIMEOUT_MS / 1000} s; is there an \`await\` outside of a function?`;
      timer = setTimeout(() => reject(new Error(message)), IMPORT_TIMEOUT_MS);
    });
    const exports = await Promise.race([import(pathToFileURL(join(build, module)).href), late]);
    return { exports: exports as Exports };
  } catch (error) {
    const location = locationOf(error, folder);
    const where = location !== null && location.file !== file ? `${location.file}:${location.line}: ` : '';
    // The log has the full error with its stack.
    console.error(error);
    return { file, line: location?.file === file ? location.line : null, message: `${where}${textOf(error)}` };
  } finally {
    clearTimeout(timer);
  }
}
