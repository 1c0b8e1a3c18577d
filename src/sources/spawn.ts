/**
 * Starts the process of a server in a process group of its own. The process reports its group to the watchdog before it
 * becomes the server. If we reported it afterwards and were killed in between, the server would be left behind.
 */
import type { ChildProcessByStdio } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { GatewayError, messageOf } from '../base/errors.ts';
import { findExecutable } from '../base/executable.ts';
import { startProcess } from '../base/start-process.ts';
import type { Launch } from '../config/launch.ts';
import { killMarked, MARK_VARIABLE, newMark } from './left-behind.ts';
import { hasGroups, killGroup, unwatchGroup, watchdogPipe, watchGroup } from './watchdog.ts';

/** With its complete environment. `isBare`: untrusted code. */
export type StdioLaunch = Extract<Launch, { kind: 'stdio' }> & { readonly isBare?: boolean };

/** The process of a server, and everything that it started in its group. */
export interface ServerProcess {
  /** Null if it could not be started. */
  readonly pid: number | null;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly isRunning: boolean;
  /** Reports how it ends. Called once, in the turn in which the process was started. */
  watch(events: ServerProcessEvents): void;
  /** Signals the whole group. Does nothing once the process has exited. */
  readonly kill: (signal: NodeJS.Signals) => void;
}

export interface ServerProcessEvents {
  /** It could not be started. Nothing else is reported. */
  failed(problem: string): void;
  /** It exited, and what it left behind was killed. Its output may not be read to the end yet. */
  exited(code: number | null, signal: NodeJS.Signals | null): void;
  /** After `exited`: its output was read to the end. This may be late if another process holds its pipes. */
  closed(): void;
}

/** How processes of servers are started. */
export type Spawn = (launch: StdioLaunch) => ServerProcess;
type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Writes its group, which is its own pid, to the watchdog, closes that pipe, and becomes the program. */
const SCRIPT = 'echo "+ $$" >&3; exec "$@" 3>&-';
/** The same for untrusted code: it is the first to be killed when memory is short, and leaves no core dump. */
const BARE = `ulimit -c 0; { echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; ${SCRIPT}`;

/** Throws a GatewayError that says why if the process cannot be started. */
export function spawnServer(launch: StdioLaunch): ServerProcess {
  const { cwd } = launch;
  const mark = newMark();
  const env: Record<string, string> = { ...launch.env, [MARK_VARIABLE]: mark };
  try {
    const watchdog = watchdogPipe();
    if (watchdog === null) {
      const child = startProcess(launch.file, launch.args, {
        cwd,
        env,
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: hasGroups,
        windowsHide: true,
      });
      return serverProcess(launch, child as Child, mark);
    }
    // Checked here, because the shell would report it in its own words, and only on its standard error.
    const { code } = findExecutable(launch.file, cwd, env.PATH);
    const problem = startProblem(launch, code);
    if (problem !== null) throw new Error(problem);
    const script = launch.isBare === true ? BARE : SCRIPT;
    const child = startProcess('/bin/sh', ['-c', script, 'sh', launch.file, ...launch.args], {
      cwd,
      env,
      stdio: ['pipe', 'pipe', 'pipe', watchdog],
      detached: true,
    });
    return serverProcess(launch, child as Child, mark);
  } catch (error) {
    throw new GatewayError('source_unavailable', `could not be started: ${messageOf(error)}`);
  }
}

function serverProcess(launch: StdioLaunch, child: Child, mark: string): ServerProcess {
  const { stdin, stdout, stderr } = child;
  const pid = child.pid ?? null;
  if (pid !== null) watchGroup(pid);
  let isRunning = pid !== null;
  child.on('exit', () => {
    isRunning = false;
    if (pid === null) return;
    // What the server left behind ends with it. That also closes pipes that a grandchild holds open.
    killGroup(pid, 'SIGKILL');
    killMarked(mark);
    unwatchGroup(pid);
  });
  return {
    pid,
    stdin,
    stdout,
    stderr,
    get isRunning() {
      return isRunning;
    },
    watch({ failed, exited, closed }) {
      child.on('error', (error: NodeJS.ErrnoException) => {
        if (pid === null) failed(startProblem(launch, error.code) ?? error.message);
      });
      child.on('exit', exited);
      child.on('close', () => {
        if (pid !== null) closed();
      });
    },
    kill(signal) {
      if (pid !== null && isRunning) killGroup(pid, signal);
    },
  };
}

/** What is wrong, by the error code of a failed start; null if the code is not known. */
function startProblem({ file, cwd }: StdioLaunch, code: string | undefined): string | null {
  if (!existsSync(cwd)) return `its folder ${cwd} does not exist`;
  if (code === 'ENOENT') return `"${file}" was not found; install it or give its full path`;
  if (code === 'EACCES') return `"${file}" may not be executed`;
  return null;
}
