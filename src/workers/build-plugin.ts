/**
 * How a tool file finds what it imports: files of its own folder are bundled, packages stay where the environment has them,
 * and zod and our own types come from us where it has none. What is found nowhere is written down with its line.
 */
import { existsSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { isAbsolute, join, relative, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from 'rolldown';
import { ownFile } from '../base/own-files.ts';
import type { BuildFailure } from '../tools/build-manifest.ts';
import { replaceImportMeta } from './import-meta.ts';

/** What every tool file may import without installing it. */
const PROVIDED: Readonly<Record<string, string>> = {
  toolgate: 'toolgate.mjs',
  zod: 'zod.mjs',
  'zod/v4': 'zod.mjs',
  'zod/mini': 'zod-mini.mjs',
  'zod/v4-mini': 'zod-mini.mjs',
};

export interface BuildPlaces {
  /** Where the tool files are, as it really is: no link on the way. */
  readonly folder: string;
  /** Where `node_modules` is, if there is one. */
  readonly environment: string;
}

export function toolPlugin({ folder, environment }: BuildPlaces, failed: BuildFailure[]): Plugin {
  const fail = (source: string, importer: string, message: string) => {
    const { line, column } = positionOf(source, importer);
    failed.push({ file: shown(importer, folder), line, column, message });
    // Goes on, to find all that is missing and not only the first.
    return { id: source, external: true };
  };
  return {
    name: 'toolgate',
    async resolveId(source, importer, { kind }) {
      // An entry, or one of rolldown's own.
      if (importer === undefined || source.startsWith('\0') || importer.startsWith('\0')) return null;
      if (kind === 'new-url') return { id: source, external: true };
      if (isBuiltin(source)) return { id: source, external: true };
      if (/^[a-z][a-z+.-]+:/i.test(source) && !source.startsWith('file:'))
        return fail(source, importer, `Cannot import "${source}": tools import packages and files, no addresses.`);
      if (isLocal(source)) {
        const found = await this.resolve(source, importer, { skipSelf: true });
        if (found === null || found.external !== false)
          return fail(source, importer, `Cannot find "${source}" from ${shown(importer, folder)}.`);
        if (!isOwn(found.id, folder))
          return fail(source, importer, `"${source}" is outside of the namespace's folder; copy it into the folder.`);
        return found;
      }
      const name = packageName(source);
      if (existsSync(join(environment, 'node_modules', name))) return { id: source, external: true };
      const own = PROVIDED[source];
      if (own !== undefined) return { id: pathToFileURL(ownFile(`dist/worker/${own}`)).href, external: true };
      // As `paths` in the folder's own tsconfig.json may have it.
      const mapped = await this.resolve(source, importer, { skipSelf: true });
      if (mapped !== null && isOwn(mapped.id, folder)) return mapped;
      const message = `Cannot find package "${name}": add it to "dependencies" in the package.json of the folder.`;
      return fail(source, importer, message);
    },
    transform(code, id) {
      if (!code.includes('import.meta') || !isAbsolute(id)) return null;
      const language = /\.(?:[cm]?ts)$/.test(id) ? 'ts' : /\.tsx$/.test(id) ? 'tsx' : 'jsx';
      let program: unknown;
      try {
        program = this.parse(code, { lang: language });
      } catch {
        // The bundler says it better, and with the place.
        return null;
      }
      return replaceImportMeta(code, program, id);
    },
  };
}

/** Names that are looked up in the folder: paths, and the `imports` of its package.json. */
function isLocal(source: string): boolean {
  return /^(?:\.{1,2}(?:\/|$)|\/|#|file:)/.test(source) || isAbsolute(source);
}

function packageName(source: string): string {
  const [scope = '', name = ''] = source.split('/');
  return scope.startsWith('@') ? `${scope}/${name}` : scope;
}

/** What the bundle may take in. */
function isOwn(path: string, folder: string): boolean {
  return isBelow(path, folder) && !path.includes(`${sep}node_modules${sep}`);
}

export function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder + sep);
}

/** A path as people know it: from the folder on. */
export function shown(path: string, folder: string): string {
  return isBelow(path, folder) ? relative(folder, path).split(sep).join('/') : path;
}

/** Where the import stands. The bundler does not say; the name in quotes does. */
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
