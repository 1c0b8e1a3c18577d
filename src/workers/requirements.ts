/** Reads a folder's requirements.txt, and the files that it includes with -r and -c. */
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Packages } from '../config/folders.ts';
import { EnvironmentError } from './environment.ts';

export interface Requirements {
  /** Contents by path below the folder, in the order in which the files are included. */
  readonly files: ReadonlyMap<string, string>;
  /** The number of packages asked for. */
  readonly count: number;
}

const FILE = 'requirements.txt';
const MOST_FILES = 100;

/** A name that an installer would read as a file of the folder. */
const ARCHIVE = /\.(?:whl|zip|tgz|tar|tar\.\w+|tbz|txz|tlz)$/i;
/** A name with optional extras, versions, markers and hashes: what a registry knows. */
const OF_REGISTRY = /^[a-z0-9][\w.-]*\s*(?:\[[^\]]*\])?[^@/\\:;]*(?:;.*|--hash=.*)?$/i;
/** Options that change where packages are looked for, or which versions are taken, but run nothing. */
const HARMLESS =
  /^(?:(?:-i|--index-url|--extra-index-url|--trusted-host)\b[^$]*|--(?:pre|prefer-binary|require-hashes|no-index)|--only-binary\b.*)$/;

/** Null if the folder has no requirements.txt, or an empty one. With `registry`, throws for a line that asks for more. */
export async function readRequirements(folder: string, packages: Packages): Promise<Requirements | null> {
  const files = new Map<string, string>();
  const root = await realpath(folder).catch(() => folder);
  let count = 0;

  const visit = async (path: string, includedBy: string | null): Promise<void> => {
    const name = relative(root, path);
    if (files.has(name)) return;
    if (files.size >= MOST_FILES) throw new EnvironmentError(`${FILE} includes more than ${MOST_FILES} files.`);
    const text = await readInside(root, path, includedBy);
    if (text === null) return;
    files.set(name, text);
    for (const [index, line] of linesOf(text)) {
      const other = /^(?:-r|-c|--requirement|--constraint)(?:\s*=\s*|\s*)(?!\s)(.+)$/.exec(line)?.[1];
      const isIncluded = other !== undefined && !/^[a-z][a-z0-9+.-]*:/i.test(other);
      if (packages === 'registry' && !isIncluded && !isOfRegistry(line))
        throw new EnvironmentError(
          `${name}, line ${index}: "${line.slice(0, 80)}" is not a version of a package in a registry, and could run code while it is installed. Change the line, or allow it with folders.packages = "any".`,
        );
      if (other === undefined) {
        if (!line.startsWith('-') || /^(?:-e|--editable)\b/.test(line)) count += 1;
        // A URL is read by the installer.
      } else if (isIncluded) {
        await visit(resolve(dirname(path), other.replace(/^(["'])(.*)\1$/, '$2')), `${name}, line ${index}`);
      }
    }
  };

  await visit(join(root, FILE), null);
  const asks = [...files.values()].some((text) => linesOf(text).length > 0);
  return asks ? { files, count } : null;
}

function isOfRegistry(line: string): boolean {
  if (line.startsWith('-')) return HARMLESS.test(line);
  const [name = ''] = /^[\w.-]*/.exec(line) ?? [];
  return OF_REGISTRY.test(line) && !ARCHIVE.test(name);
}

async function readInside(root: string, path: string, includedBy: string | null): Promise<string | null> {
  const place = includedBy ?? FILE;
  let real: string;
  try {
    real = await realpath(path);
  } catch {
    if (includedBy === null) return null;
    throw new EnvironmentError(`${place}: the file "${basename(path)}" does not exist.`);
  }
  if (!real.startsWith(root + sep))
    throw new EnvironmentError(`${place}: "${basename(path)}" is outside the folder. Copy it into the folder.`);
  try {
    return await readFile(real, 'utf8');
  } catch (error) {
    throw new EnvironmentError(
      `${place}: "${basename(path)}" cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}

/** Number and text of each line that is not empty, without comments. A backslash joins a line with the next. */
function linesOf(text: string): [number, string][] {
  const lines: [number, string][] = [];
  let open: [number, string] | null = null;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line: [number, string] = open === null ? [index + 1, raw] : [open[0], open[1] + raw];
    open = null;
    if (line[1].endsWith('\\')) open = [line[0], line[1].slice(0, -1)];
    else lines.push(line);
  }
  if (open !== null) lines.push(open);
  return lines
    .map(([index, line]): [number, string] => [index, line.replace(/(^|\s)#.*$/, '').trim()])
    .filter(([, line]) => line !== '');
}
