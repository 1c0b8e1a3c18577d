/**
 * Starts a server's process in a group of its own. On its way to becoming the server the process itself tells the watchdog
 * of that group: said by us afterwards, it would be lost if we were killed in between, and the server left behind.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, resolve } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { Launch } from '../config/launch.ts';
import { hasGroups, watchdogPipe } from './watchdog.ts';

/** `isBare`: with nothing of our own environment but what is declared. */
export type StdioLaunch = Extract<Launch, { kind: 'stdio' }> & { readonly isBare?: boolean };
export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Says the number of its group, which is its own, to the watchdog, and turns into the program; the pipe stays behind. */
const SCRIPT = 'echo "+ $$" >&3; exec "$@" 3>&-';
/** The same for code that may do anything: it is the first to go where memory is short, and leaves no image of itself. */
const BARE = `ulimit -c 0; { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; ${SCRIPT}`;

/** Throws a GatewayError that says why where the process cannot be started. */
export function spawnServer(launch: StdioLaunch): ServerProcess {
  const { cwd } = launch;
  const env = launch.isBare === true ? { ...launch.env } : childEnvironment(launch.env, launch.withheld);
  const watchdog = watchdogPipe();
  try {
    if (watchdog === null) {
      return spawn(launch.file, [...launch.args], {
        cwd,
        env,
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: hasGroups,
        windowsHide: true,
      });
    }
    // The shell would say it in its own words, and only on its standard error.
    const problem = startProblem(launch, programCode(launch, env.PATH));
    if (problem !== null) throw new Error(problem);
    return spawn('/bin/sh', ['-c', launch.isBare === true ? BARE : SCRIPT, 'sh', launch.file, ...launch.args], {
      cwd,
      env,
      stdio: ['pipe', 'pipe', 'pipe', watchdog],
      detached: true,
    }) as unknown as ServerProcess;
  } catch (error) {
    throw new GatewayError('source_unavailable', `could not be started: ${messageOf(error)}`);
  }
}

/** What is wrong, by the code of a failed start; null for none that is known. */
export function startProblem({ file, cwd }: StdioLaunch, code: string | undefined): string | null {
  if (!existsSync(cwd)) return `its folder ${cwd} does not exist`;
  if (code === 'ENOENT') return `"${file}" was not found; install it or give its full path`;
  if (code === 'EACCES') return `"${file}" may not be executed`;
  return null;
}

/** As the system would find the program: the code of its error, or undefined where there is one to run. */
function programCode({ file, cwd }: StdioLaunch, path = '/usr/local/bin:/usr/bin:/bin'): string | undefined {
  const places = file.includes('/') ? [''] : path.split(delimiter);
  let code = 'ENOENT';
  for (const place of places) {
    const candidate = resolve(cwd, place, file);
    if (!existsSync(candidate) || statSync(candidate).isDirectory()) continue;
    try {
      accessSync(candidate, constants.X_OK);
      return undefined;
    } catch {
      code = 'EACCES';
    }
  }
  return code;
}

function isOwn(name: string): boolean {
  return (
    name.startsWith('TOOLGATE_') ||
    name === 'BEARER_TOKEN' ||
    name === 'MANAGER_INTERNAL_TOKEN' ||
    name.startsWith('SECRETS_KEY')
  );
}

/** The environment of a server: ours without Toolgate's own settings, plus what its configuration declares. */
function childEnvironment(
  declared: Readonly<Record<string, string>>,
  withheld: readonly string[] = [],
): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !isOwn(name) && !withheld.includes(name));
  return { ...Object.fromEntries(inherited), ...declared };
}
