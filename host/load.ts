/** The tools of a build: its modules are imported, and what they export is looked through. One bad file hides nothing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildManifest, BuiltFile } from '../src/tools/build-manifest.ts';
import { type Failure, locationOf, textOf } from '../src/tools/fault.ts';
import { isObject, type Json } from '../src/tools/schema.ts';
import { isToolLike, nameOf, readTool, type RunnableTool } from '../src/tools/read-tool.ts';

export interface FolderTools {
  readonly tools: ReadonlyMap<string, RunnableTool>;
  readonly failed: readonly Failure[];
}

/** A file that waits at its top level for something that does not come. */
const PATIENCE_MS = 30_000;

/** A tool as it was found, and the name it is exported by. */
interface FoundTool {
  readonly given: Json;
  readonly exported: string;
}

export async function loadTools(build: string, manifest: BuildManifest, folder: string): Promise<FolderTools> {
  const failed: Failure[] = [...manifest.failed];
  const modules = await Promise.all(manifest.files.map((file) => importFile(build, file, folder)));
  const tools = new Map<string, RunnableTool>();
  // A file may pass on the tool of another: that is one tool.
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

/** Every tool among the exports. A record of tools counts for the tools in it; so does a whole module in CommonJS. */
function findTools(exports: Json, file: string): FoundTool[] {
  const { default: main, ...named } = exports;
  const found = toolsIn(named);
  if (isToolLike(main)) found.push({ given: main, exported: file.replace(/\.[^.]+$/, '') });
  else if (isObject(main)) found.push(...toolsIn(main));
  return found;
}

function toolsIn(record: Json): FoundTool[] {
  const found: FoundTool[] = [];
  for (const [exported, given] of Object.entries(record)) {
    if (isToolLike(given)) found.push({ given, exported });
    else if (isRecordOfTools(given)) found.push(...toolsIn(given));
  }
  return found;
}

function isRecordOfTools(value: unknown): value is Json {
  if (!isObject(value)) return false;
  const values = Object.values(value);
  return values.length > 0 && values.every(isToolLike);
}

/** Where a tool seems to be exported. Only a guess: what runs no longer knows. */
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
): Promise<{ exports: Json } | Failure> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const late = new Promise<never>((_, reject) => {
      const message = `It was not loaded within ${PATIENCE_MS / 1000} s; is there an \`await\` outside of a function?`;
      timer = setTimeout(() => reject(new Error(message)), PATIENCE_MS);
    });
    const exports = await Promise.race([import(pathToFileURL(join(build, module)).href), late]);
    return { exports: exports as Json };
  } catch (error) {
    const place = locationOf(error, folder);
    const where = place !== null && place.file !== file ? `${place.file}:${place.line}: ` : '';
    // People look for the whole of it in the log.
    console.error(error);
    return { file, line: place?.file === file ? place.line : null, message: `${where}${textOf(error)}` };
  } finally {
    clearTimeout(timer);
  }
}
