/**
 * Resolves the imports of tool files. Files of the folder are bundled, packages come from the environment, and zod and
 * our own types come from Toolgate unless the environment has them. Imports that cannot be resolved are reported with
 * their line.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { isAbsolute, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'rolldown';
import { ownFile } from '../base/own-files.ts';
import type { BuildFailure } from '../tools/build-manifest.ts';
import { replaceImportMeta } from './import-meta.ts';

/** What tool files can import without installing it. */
const PROVIDED: Readonly<Record<string, string>> = {
  toolgate: 'toolgate.mjs',
  zod: 'zod.mjs',
  'zod/v4': 'zod.mjs',
  'zod/mini': 'zod-mini.mjs',
  'zod/v4-mini': 'zod-mini.mjs',
};

export interface BuildFolders {
  /** The real path of the folder of tool files. */
  readonly folder: string;
  /** The folder that has `node_modules`, if there are any packages. */
  readonly environment: string;
}

/** Adds to `failed` what cannot be resolved. */
export function toolPlugin({ folder, environment }: BuildFolders, failed: BuildFailure[]): Plugin {
  const fail = (source: string, importer: string, message: string) => {
    const { line, column } = positionOf(source, importer);
    failed.push({ file: displayPath(importer, folder), line, column, message });
    // Continues, to report all missing imports and not only the first.
    return { id: source, external: true };
  };
  return {
    name: 'toolgate',
    async resolveId(source, importer, { kind }) {
      // An entry, or a module of rolldown itself.
      if (importer === undefined || source.startsWith('\0') || importer.startsWith('\0')) return null;
      if (kind === 'new-url') return { id: source, external: true };
      if (isBuiltin(source)) return { id: source, external: true };
      if (/^[a-z][a-z+.-]+:/i.test(source) && !source.startsWith('file:'))
        return fail(source, importer, `Cannot import "${source}": tools import packages and files, not URLs.`);
      if (isLocal(source)) {
        const found = await this.resolve(source, importer, { skipSelf: true });
        if (found === null || found.external !== false)
          return fail(source, importer, `Cannot find "${source}" from ${displayPath(importer, folder)}.`);
        if (!isOwn(found.id, folder))
          return fail(source, importer, `"${source}" is outside the folder of the namespace; copy it into the folder.`);
        return found;
      }
      const name = packageName(source);
      if (existsSync(join(environment, 'node_modules', name))) return { id: source, external: true };
      const own = PROVIDED[source];
      if (own !== undefined) return { id: pathToFileURL(ownFile(`dist/worker/${own}`)).href, external: true };
      // It may be an alias: `paths` in the folder's tsconfig.json.
      const mapped = await this.resolve(source, importer, { skipSelf: true });
      if (mapped !== null && isOwn(mapped.id, folder)) return mapped;
      const message = `Cannot find package "${name}": add it to "dependencies" in the folder's package.json.`;
      return fail(source, importer, message);
    },
    transform(code, id) {
      if (!code.includes('import.meta') || !isAbsolute(id)) return null;
      const language = /\.(?:[cm]?ts)$/.test(id) ? 'ts' : /\.tsx$/.test(id) ? 'tsx' : 'jsx';
      let program: unknown;
      try {
        program = this.parse(code, { lang: language });
      } catch {
        // The bundler reports the syntax error itself, with its position.
        return null;
      }
      return replaceImportMeta(code, program, id);
    },
  };
}

/** Imports that resolve in the folder: paths, and the `imports` of its package.json. */
function isLocal(source: string): boolean {
  return /^(?:\.{1,2}(?:\/|$)|\/|#|file:)/.test(source) || isAbsolute(source);
}

function packageName(source: string): string {
  const [scope = '', name = ''] = source.split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

/** Whether a file may become part of the bundle. */
function isOwn(path: string, folder: string): boolean {
  return isBelow(path, folder) && !path.includes(`${sep}node_modules${sep}`);
}

export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder + sep);
}

/** A path for messages: relative to the folder. */
export function displayPath(path: string, folder: string): string {
  return isBelow(path, folder) ? relative(folder, path).split(sep).join('/') : path;
}

/** The position of an import. The bundler does not say, so it is found by the quoted name. */
function positionOf(source: string, importer: string): { line: number | null; column?: number } {
  let text: string;
  try {
    text = readFileSync(importer, 'utf8');
  } catch {
    return { line: null };
  }
  const quoted = [`'${source}'`, `"${source}"`, `\`${source}\``];
  const lines = text.split('\n');
  const at = lines.findIndex(
    (line) => quoted.some((name) => line.includes(name)) && /\b(?:from|import|require|export)\b/.test(line),
  );
  if (at < 0) return { line: null };
  const column = Math.max(...quoted.map((name) => lines[at]!.indexOf(name)));
  return { line: at + 1, column: column + 1 };
}
