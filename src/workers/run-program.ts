/** Runs a program, such as an installer or git, to its end. In its own process group, so that it leaves no process behind. */
import type { ChildProcessByStdio, SpawnOptions } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../base/errors.ts';
import { startProcess } from '../base/start-process.ts';

export interface ProgramStart {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeout: number;
  readonly signal: AbortSignal | null;
  /** What it reads from stdin. */
  readonly input?: string;
  /** Its stdout is data: so many bytes of it at most are kept as they are, and it is stopped if there are more. */
  readonly maxBytes?: number;
  /** Gets what it prints, in pieces that need not be lines. */
  printed?(text: string): void;
}

export interface ProgramResult {
  /** Null if it did not end by itself. */
  readonly code: number | null;
  readonly stdout: string;
  /** Its stdout as data, if that was asked for. */
  readonly bytes: Buffer;
  /** The end of its output, stdout and stderr together. Data is left out. */
  readonly log: string;
  /** Why it was killed, or why it did not start. */
  readonly problem: 'timeout' | 'stopped' | 'too much' | string | null;
}

const KEPT = 64 * 1024;

export function runProgram({
  command,
  args,
  cwd,
  env,
  timeout,
  signal,
  input,
  maxBytes,
  printed,
}: ProgramStart): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const output = { stdout: '', log: '' };
    const chunks: Buffer[] = [];
    let size = 0;
    let problem: string | null = signal?.aborted ? 'stopped' : null;
    const done = (code: number | null) =>
      resolve({
        code,
        stdout: output.stdout,
        bytes: Buffer.concat(chunks),
        log: withoutCredentials(output.log),
        problem,
      });
    if (problem !== null) return done(null);
    let child: ChildProcessByStdio<Writable | null, Readable, Readable>;
    try {
      const stdin = input === undefined ? 'ignore' : 'pipe';
      const options: SpawnOptions = { cwd, env, stdio: [stdin, 'pipe', 'pipe'], detached: true };
      child = startProcess(command, args, options) as typeof child;
    } catch (error) {
      problem = messageOf(error);
      return done(null);
    }
    const kill = () => killGroup(child.pid);
    const stop = (why: string) => {
      problem ??= why;
      kill();
    };
    const aborted = () => stop('stopped');
    const timer = setTimeout(stop, timeout, 'timeout');
    signal?.addEventListener('abort', aborted, { once: true });
    // Signals to our process group do not reach the group of the program.
    process.once('exit', kill);
    if (maxBytes === undefined)
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output.stdout = (output.stdout + text).slice(-KEPT);
        output.log = (output.log + text).slice(-KEPT);
        printed?.(text);
      });
    else
      child.stdout.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > maxBytes) stop('too much');
        else chunks.push(chunk);
      });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.log = (output.log + text).slice(-KEPT);
      printed?.(text);
    });
    child.once('error', (error) => {
      problem ??= messageOf(error);
    });
    const finish = (code: number | null) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', aborted);
      process.off('exit', kill);
      done(code);
    };
    child.once('close', finish);
    // Programs that it started in the background would keep the pipes open.
    child.once('exit', kill);
    // It may end before it has read everything.
    child.stdin?.on('error', () => {}).end(input);
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The group is already gone.
  }
}

/** Removes credentials in URLs of registries. Starts at a whole line, because half of a URL would not be recognized. */
function withoutCredentials(log: string): string {
  const lines = log.length < KEPT ? log : log.slice(log.indexOf('\n') + 1);
  return lines.replace(/(:\/\/)[^/@\s]+@/g, '$1***@');
}
