/** Runs a program to its end, such as an installer: in a group of its own, so that nothing of it is left behind. */
import { spawn } from 'node:child_process';
import { messageOf } from '../base/errors.ts';

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeout: number;
  readonly signal: AbortSignal | null;
}

export interface Ended {
  /** Null where it did not end by itself. */
  readonly code: number | null;
  readonly stdout: string;
  /** Both of its outputs as they came, the end of them. */
  readonly log: string;
  /** What was done to it, or why it did not start. */
  readonly problem: 'timeout' | 'stopped' | string | null;
}

const KEPT = 64 * 1024;

export function runProgram({ command, args, cwd, env, timeout, signal }: Program): Promise<Ended> {
  return new Promise((resolve) => {
    const output = { stdout: '', log: '' };
    let problem: string | null = signal?.aborted ? 'stopped' : null;
    if (problem !== null) {
      resolve({ code: null, ...output, problem });
      return;
    }
    const child = spawn(command, [...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const kill = () => killGroup(child.pid);
    const stop = (why: string) => {
      problem ??= why;
      kill();
    };
    const aborted = () => stop('stopped');
    const timer = setTimeout(stop, timeout, 'timeout');
    signal?.addEventListener('abort', aborted, { once: true });
    // A group of its own does not hear what ends us.
    process.once('exit', kill);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout = (output.stdout + text).slice(-KEPT);
      output.log = (output.log + text).slice(-KEPT);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.log = (output.log + text).slice(-KEPT);
    });
    child.once('error', (error) => {
      problem ??= messageOf(error);
    });
    const over = (code: number | null) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
      process.off('exit', kill);
      resolve({ code, stdout: output.stdout, log: withoutCredentials(output.log), problem });
    };
    child.once('close', over);
    // Whatever it started in the background does not hold us up.
    child.once('exit', kill);
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nobody is left in it.
  }
}

/** Those in the address of a registry. Not from the middle of a line: half of one would not be known for what it is. */
function withoutCredentials(log: string): string {
  const whole = log.length < KEPT ? log : log.slice(log.indexOf('\n') + 1);
  return whole.replace(/(:\/\/)[^/@\s]+@/g, '$1***@');
}
