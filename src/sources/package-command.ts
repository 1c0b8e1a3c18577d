/**
 * A command line that lets `npx`, `npm exec` or `uvx` install a package and start its program. Only lines whose every
 * word is understood are recognized. All others are started as they are written.
 */
import { basename } from 'node:path';
import type { CommandLine } from '../config/shell.ts';

export interface PackageCommand {
  readonly runner: 'npx' | 'uvx';
  /** The runner as it is written, a name or a path. */
  readonly file: string;
  /** Its own arguments, up to what it starts. */
  readonly options: readonly string[];
  /** Those of its options that decide where it looks for packages. */
  readonly settings: readonly string[];
  /** What it starts: a package, or a program of the packages that its options name. */
  readonly target: string;
  readonly packages: readonly string[];
  /** The packages that have no exact version. */
  readonly unpinned: readonly string[];
  /** The command line that starts this program with the arguments of the server. */
  start(program: string): CommandLine;
}

/** The options that a runner may have here, each with whether the next word is its value. */
const OPTIONS = {
  npx: new Map([
    ...flags('-y --yes -q --quiet --silent --prefer-online --prefer-offline --offline'),
    ...valued('-p --package --registry'),
  ]),
  uvx: new Map([
    ...flags('-q --quiet --offline'),
    ...valued('--from --with -p --python --index --default-index --index-url --extra-index-url --prerelease'),
  ]),
};
/** Options that decide only what a runner says and asks. */
const MANNERS = /^(?:-y|--yes|-q|--quiet|--silent)$/;
const PACKAGE = { npx: ['-p', '--package'], uvx: ['--from'] };

/** A package of a registry: no path, no address, no repository. */
const NPM_SPEC = /^(?:@[a-z0-9~][\w.~-]*\/)?[A-Za-z0-9~][\w.~-]*(?:@[\w.^~<>=*+-]+)?$/;
const EXACT = /^.+@\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;
/** The name of a Python package, which is also that of its program. */
const UVX_TARGET = /^[A-Za-z0-9][\w.-]*(?:@[\w.+!-]+)?$/;
const PROGRAM = /^[A-Za-z0-9_][\w.+-]*$/;
/** A word that /bin/sh passes on as it is. */
const WORD = /\s*([\w@./:=+,%^-]+)(?=\s|$)/y;

/** Null if the line is not recognized. */
export function packageCommandOf({ file, args }: CommandLine): PackageCommand | null {
  // A shell that only expands the arguments of the server: the words before those are plain.
  if (file === '/bin/sh' && args.length === 2 && args[0] === '-c') return inShellLine(args[1]!);
  const found = read(file, args);
  return found && { ...found.command, start: (program) => ({ file: program, args: args.slice(found.length) }) };
}

function inShellLine(line: string): PackageCommand | null {
  const words: string[] = [];
  /** Where each word ends. */
  const ends: number[] = [];
  WORD.lastIndex = 0;
  for (let match = WORD.exec(line); match !== null; match = WORD.exec(line)) {
    words.push(match[1]!);
    ends.push(WORD.lastIndex);
  }
  const [exec, file, ...args] = words;
  if (exec !== 'exec' || file === undefined) return null;
  const found = read(file, args);
  if (found === null) return null;
  const rest = line.slice(ends[found.length + 1]);
  return { ...found.command, start: (program) => ({ file: '/bin/sh', args: ['-c', `exec "$0"${rest}`, program] }) };
}

interface ReadCommand {
  readonly command: Omit<PackageCommand, 'start'>;
  /** How many arguments belong to the runner. The others are for the server. */
  readonly length: number;
}

function read(file: string, args: readonly string[]): ReadCommand | null {
  const [first, second] = args;
  switch (basename(file)) {
    case 'npx':
      return readRunner('npx', file, args, 0, false);
    case 'npm':
      // Without `--`, npm takes options of the server for its own.
      return first === 'exec' || first === 'x' ? readRunner('npx', file, args, 1, true) : null;
    case 'uvx':
      return readRunner('uvx', file, args, 0, false);
    case 'uv':
      return first === 'tool' && second === 'run' ? readRunner('uvx', file, args, 2, false) : null;
    default:
      return null;
  }
}

function readRunner(
  runner: PackageCommand['runner'],
  file: string,
  args: readonly string[],
  begin: number,
  needsDashes: boolean,
): ReadCommand | null {
  const named: string[] = [];
  const settings: string[] = [];
  let at = begin;
  for (; at < args.length; at++) {
    const arg = args[at]!;
    if (!arg.startsWith('-') || arg === '--') break;
    const [name = '', ...inline] = arg.split('=');
    const takesValue = OPTIONS[runner].get(name);
    if (takesValue === undefined || (!takesValue && inline.length > 0)) return null;
    if (!takesValue) {
      if (!MANNERS.test(name)) settings.push(name);
      continue;
    }
    const value = inline.length > 0 ? inline.join('=') : args[++at];
    if (value === undefined || value === '') return null;
    if (PACKAGE[runner].includes(name)) named.push(value);
    else settings.push(name, value);
  }
  const hasDashes = args[at] === '--';
  if ((needsDashes && !hasDashes) || (hasDashes && runner === 'uvx')) return null;
  const options = args.slice(0, hasDashes ? ++at : at);
  const target = args[at];
  if (target === undefined) return null;
  const packages = named.length > 0 ? named : [target];
  const isKnown = named.length > 0 ? PROGRAM.test(target) : (runner === 'npx' ? NPM_SPEC : UVX_TARGET).test(target);
  if (!isKnown || (runner === 'npx' && !packages.every((one) => NPM_SPEC.test(one)))) return null;
  const unpinned = packages.filter((one) => !EXACT.test(one));
  return { command: { runner, file, options, settings, target, packages, unpinned }, length: at + 1 };
}

function flags(names: string): [string, boolean][] {
  return names.split(' ').map((name) => [name, false]);
}

function valued(names: string): [string, boolean][] {
  return names.split(' ').map((name) => [name, true]);
}
