/**
 * Servers whose arguments or `cwd` name a folder with the configuration, the data folder or the key in it. Such a server is
 * mostly one that reads and writes files there, so an agent that may use it could rewrite the rules that bind it. Paths
 * are compared as they are written; nothing is read.
 */
import { isAbsolute, relative, resolve, sep } from 'node:path';
import type { Launch } from './launch.ts';
import { scanCommandLine } from './shell.ts';

/** A file or folder of Toolgate that nobody but the operator should write. */
export interface OwnPath {
  /** As in "the data folder". */
  readonly what: string;
  readonly path: string;
}

/**
 * Which of our own paths a folder of tools, or a program with these arguments, can reach; each with what leads there.
 * `usualCwd` is where programs without a `cwd` run: nobody chose it for them, and most do not look at it.
 */
export function reachText(
  target: Launch | { readonly folder: string },
  own: readonly OwnPath[],
  home: string | undefined,
  usualCwd: string,
): string | null {
  const reached = new Map<string, Set<string>>();
  for (const { written, path } of placesOf(target, usualCwd, home))
    for (const one of own)
      if (contains(path, one.path)) reached.set(written, (reached.get(written) ?? new Set()).add(one.what));
  if (reached.size === 0) return null;
  return [...reached].map(([written, whats]) => `"${written}", which contains ${[...whats].join(' and ')}`).join('; ');
}

interface Place {
  readonly written: string;
  readonly path: string;
}

function placesOf(target: Launch | { readonly folder: string }, usualCwd: string, home = '~'): Place[] {
  if (!('kind' in target)) return [{ written: target.folder, path: target.folder }];
  // A sandbox hides them.
  if (target.kind !== 'stdio' || target.sandbox !== undefined) return [];
  const named = wordsOf(target).flatMap((word) => {
    const path = pathIn(word, home);
    return path === null ? [] : { written: word, path: resolve(target.cwd, path) };
  });
  return target.cwd === usualCwd ? named : [...named, { written: target.cwd, path: target.cwd }];
}

function wordsOf({ file, args }: Extract<Launch, { kind: 'stdio' }>): readonly string[] {
  const [option, line] = args;
  const isLine = file === '/bin/sh' && option === '-c' && line !== undefined && args.length === 2;
  return isLine ? scanCommandLine(line.replace(/^exec /, '')).commands.flat() : args;
}

/** The path in an argument: `DIR`, `--option=DIR`, or `DIR:/inside` as programs that run containers have it. */
function pathIn(word: string, home: string): string | null {
  const value = /^--?[\w-]+=(.*)$/.exec(word)?.[1] ?? word;
  const [path = '', inside, ...options] = value.split(':');
  if (inside !== undefined && (!inside.startsWith('/') || inside.startsWith('//'))) return null;
  if (path === '' || options.some((one) => one.split(',').includes('ro'))) return null;
  // A shell replaces these.
  return path.replace(/^(?:~|\$HOME|\$\{HOME\})(?=\/|$)/, () => home);
}

function contains(folder: string, path: string): boolean {
  const way = relative(folder, path);
  // On another drive of Windows the way is absolute.
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
