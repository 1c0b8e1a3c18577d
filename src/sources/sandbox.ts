/**
 * The sandbox of a server (`sandbox` in its entry): the same as that of tool folders. The program sees the system, the
 * files that it consists of, and what its entry lists. Of our environment it gets what every program needs.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { matchesPattern } from '../base/pattern.ts';
import { INSIDE } from '../config/inside.ts';
import { bubblewrapTrouble, sandboxed } from '../workers/isolation.ts';
import type { StdioLaunch } from './spawn.ts';

interface Environments {
  /** What the server would get without a sandbox. */
  readonly inherited: Readonly<Record<string, string>>;
  /** What its entry declares. */
  readonly declared: Readonly<Record<string, string>>;
}

/** The same launch if it has no sandbox. Throws if a sandbox does not work here. */
export async function inSandbox(launch: StdioLaunch, environments: Environments): Promise<StdioLaunch> {
  const { sandbox, file, args, cwd } = launch;
  if (sandbox === undefined) return launch;
  const trouble = await bubblewrapTrouble();
  if (trouble !== null)
    throw new GatewayError(
      'source_unavailable',
      `its entry asks for a sandbox, but bubblewrap does not work here (${trouble}). Install bubblewrap, or remove "sandbox"`,
    );
  const { reads, writes, network, dataDir, hides } = sandbox;
  for (const path of [...reads, ...writes])
    if (!existsSync(path))
      throw new GatewayError('source_unavailable', `${path}, which its sandbox lists, does not exist`);
  const command = sandboxed([file, ...args], {
    folder: cwd,
    showsFolder: false,
    dataDir,
    reads: [...programFiles(launch), ...reads],
    writes,
    hides,
    network,
  });
  return {
    ...launch,
    file: command[0]!,
    args: command.slice(1),
    env: ownEnvironment(launch, environments),
    isBare: true,
  };
}

const EVERY_PROGRAM = ['PATH', 'HOME', 'LANG', 'TZ', INSIDE];

/** A package runner may have set more for the program, such as its PATH. */
function ownEnvironment(
  { env, inherits = [] }: StdioLaunch,
  { inherited, declared }: Environments,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name, value]) =>
        EVERY_PROGRAM.includes(name) ||
        Object.hasOwn(declared, name) ||
        inherited[name] !== value ||
        inherits.some((pattern) => matchesPattern(pattern, name)),
    ),
  );
}

/** The files that a program consists of, as far as its path tells: an installed package, or a virtual environment. */
function programFiles({ file, args, cwd, env }: StdioLaunch): string[] {
  const found = findExecutable(file, cwd, env.PATH);
  if (found.code !== undefined) return [];
  const real = realpathSync(found.path);
  // A program from the cache of uv is started by `flock -s -F LOCK PROGRAM`.
  const locked = basename(real) === 'flock' && args[1] === '-F' ? args.slice(2, 4) : [];
  const files = [found.path, real, ...locked].filter(existsSync);
  return [...new Set(files.flatMap((path) => [path, ...packageOf(path)]))];
}

function packageOf(path: string): string[] {
  const packages = path.indexOf('/node_modules/');
  if (packages >= 0) return [path.slice(0, packages + '/node_modules'.length)];
  const environment = dirname(dirname(path));
  const settings = join(environment, 'pyvenv.cfg');
  if (!existsSync(settings)) return [];
  const home = /^home\s*=\s*(.+?)\s*$/m.exec(readFileSync(settings, 'utf8'))?.[1];
  if (home === undefined || !existsSync(home)) return [environment];
  return [environment, dirname(home), dirname(realpathSync(home))].filter((folder) => folder !== '/');
}
