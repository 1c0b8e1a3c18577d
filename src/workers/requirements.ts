/** What a folder asks for in requirements.txt, and in the files that it names with -r and -c. */
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { EnvironmentError } from './environment.ts';

export interface Requirements {
  /** Path below the folder to content, in the order in which they are named. */
  readonly files: ReadonlyMap<string, string>;
  /** How many packages are asked for. */
  readonly count: number;
}

const FILE = 'requirements.txt';
const MOST_FILES = 100;

/** Null where the folder has none, or one that asks for nothing. */
export async function readRequirements(folder: string): Promise<Requirements | null> {
  const files = new Map<string, string>();
  const root = await realpath(folder).catch(() => folder);
  let count = 0;

  const visit = async (path: string, named: string | null): Promise<void> => {
    const name = relative(root, path);
    if (files.has(name)) return;
    if (files.size >= MOST_FILES) throw new EnvironmentError(`${FILE}: it names more than ${MOST_FILES} files.`);
    const text = await readInside(root, path, named);
    if (text === null) return;
    files.set(name, text);
    for (const [index, line] of linesOf(text)) {
      const other = /^(?:-r|-c|--requirement|--constraint)(?:\s*=\s*|\s*)(?!\s)(.+)$/.exec(line)?.[1];
      if (other === undefined) {
        if (!line.startsWith('-') || /^(?:-e|--editable)\b/.test(line)) count += 1;
        // What is at an address is the installer's to read.
      } else if (!/^[a-z][a-z0-9+.-]*:/i.test(other)) {
        await visit(resolve(dirname(path), other.replace(/^(["'])(.*)\1$/, '$2')), `${name}, line ${index}`);
      }
    }
  };

  await visit(join(root, FILE), null);
  const asks = [...files.values()].some((text) => linesOf(text).length > 0);
  return asks ? { files, count } : null;
}

async function readInside(root: string, path: string, named: string | null): Promise<string | null> {
  const place = named === null ? FILE : named;
  let real: string;
  try {
    real = await realpath(path);
  } catch {
    if (named === null) return null;
    throw new EnvironmentError(`${place}: there is no file "${basename(path)}" at that place.`);
  }
  if (!real.startsWith(root + sep))
    throw new EnvironmentError(`${place}: "${basename(path)}" is outside of the folder. Copy it into the folder.`);
  try {
    return await readFile(real, 'utf8');
  } catch (error) {
    throw new EnvironmentError(
      `${place}: "${basename(path)}" cannot be read (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}

/** Number and text of the lines that say something, without comments. A backslash joins a line with the next. */
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
