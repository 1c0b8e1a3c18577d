/** Loads the tools of a build: imports its modules and searches their exports. A broken file does not affect others. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isObject } from '../src/base/objects.ts';
import type { BuildFailure, BuildManifest, BuiltFile } from '../src/tools/build-manifest.ts';
import { locationOf, textOf } from '../src/tools/fault.ts';
import { isToolLike, nameOf, type RunnableTool, readTool } from '../src/tools/read-tool.ts';

export interface FolderTools {
  readonly tools: ReadonlyMap<string, RunnableTool>;
  readonly failed: readonly BuildFailure[];
}

/** A file may wait at its top level for something that never happens. */
const IMPORT_TIMEOUT_MS = 30_000;

type Exports = Record<string, unknown>;

interface FoundTool {
  readonly given: Exports;
  /** The name of the export. */
  readonly exported: string;
}

export async function loadTools(build: string, manifest: BuildManifest, folder: string): Promise<FolderTools> {
  const failed: BuildFailure[] = [...manifest.failed];
  const modules = await Promise.all(manifest.files.map((file) => importFile(build, file, folder)));
  const tools = new Map<string, RunnableTool>();
  // A file may re-export a tool of another file: that is one tool.
  const seen = new Set<object>();
  for (const [at, module] of modules.entries()) {
    const { file } = manifest.files[at]!;
    if ('message' in module) {
      failed.push(module);
      continue;
    }
    for (const { given, exported } of findTools(module.exports, file)) {
      if (seen.has(given)) continue;
      seen.add(given);
      const name = nameOf(given, exported);
      const fail = (message: string) => failed.push({ file, line: lineOf(folder, file, exported), message });
      const other = tools.get(name);
      if (other !== undefined) {
        fail(
          `The tool "${name}" is in ${other.file === file ? 'this file twice' : `${other.file} already`}; rename one.`,
        );
        continue;
      }
      try {
        tools.set(name, await readTool(given, name, file));
      } catch (error) {
        fail(`The tool "${name}": ${textOf(error)}`);
      }
    }
  }
  return { tools, failed };
}

/**
 * Every tool among the exports, including those in records of tools, and in the exports object of a CommonJS module.
 */
function findTools(exports: Exports, file: string): FoundTool[] {
  const { default: main, ...named } = exports;
  const found = toolsIn(named);
  if (isToolLike(main)) found.push({ given: main, exported: file.replace(/\.[^.]+$/, '') });
  else if (isObject(main)) found.push(...toolsIn(main));
  return found;
}

function toolsIn(record: Exports): FoundTool[] {
  const found: FoundTool[] = [];
  for (const [exported, given] of Object.entries(record)) {
    if (isToolLike(given)) found.push({ given, exported });
    else if (isRecordOfTools(given)) found.push(...toolsIn(given));
  }
  return found;
}

function isRecordOfTools(value: unknown): value is Exports {
  if (!isObject(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every(isToolLike);
}

/** The line that probably exports the tool. A guess: the running code does not know its lines. */
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
  { file, module }: BuiltFile,
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
