import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './cleanup.ts';
import { patient } from './patience.ts';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type Ending = NodeJS.Signals | 'stdin';

/** A program under test: its output, and how it ended. */
export interface Child {
  readonly process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly pid: number;
  readonly stdin: Writable;
  /** What it writes to stdout. */
  readonly output: Readable;
  /** All output so far. */
  stdout(): string;
  stderr(): string;
  /** Resolves when it has ended and its output is complete. */
  readonly exited: Promise<Exit>;
  /** Sends it a signal. */
  signal(name: NodeJS.Signals): void;
  /** Ends it with a signal or by closing its stdin, and returns how it exited. After 10 s it is killed, and the test fails. */
  stop(how?: Ending): Promise<Exit>;
}

/** The child with more members. A spread would read `process` and `pid`, which a program in the process of the test does not have. */
export function withMembers<Base extends Child, More extends object>(child: Base, more: More): Base & More {
  const all = { ...Object.getOwnPropertyDescriptors(child), ...Object.getOwnPropertyDescriptors(more) };
  return Object.defineProperties({}, all) as Base & More;
}

/** Resolves when the output matches. */
export function untilPrinted(child: Child, pattern: RegExp, ms = 45_000): Promise<RegExpExecArray> {
  const found = new Promise<RegExpExecArray>((resolve) => {
    const look = () => {
      const match = pattern.exec(child.stdout());
      if (match !== null) {
        child.output.off('data', look);
        resolve(match);
      }
    };
    child.output.on('data', look);
    look();
  });
  return within(ms, found).then((match) => {
    if (match === undefined) throw new Error(`not printed within ${ms} ms: ${pattern}`);
    return match;
  });
}

/** The variables that a test inherits. With others it would depend on the user's environment. */
const inherited = ['PATH', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR', 'NODE_V8_COVERAGE'];

/**
 * A test writes its configuration itself, so it trusts what is found in the folder. A test about trust says otherwise. Each
 * `toolgate` has a gateway of its own, because it is quicker and ends with it. A test about shared ones says otherwise.
 */
export function childEnv(env: Record<string, string | undefined> = {}): Record<string, string> {
  const own = Object.fromEntries(inherited.map((name) => [name, process.env[name]]));
  const all = { ...own, TOOLGATE_TRUST: '1', TOOLGATE_SHARED: '0', ...env };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

export function startChild(
  command: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string>; ending?: Ending; uid?: number; gid?: number },
): Child {
  const { ending = 'SIGTERM', ...start } = options;
  const child = spawn(command, args, { ...start, stdio: 'pipe' });
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  child.stdout.on('data', (chunk: Buffer) => output.stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => output.stderr.push(chunk));
  // Tests write to ended programs on purpose.
  child.stdin.on('error', () => {});
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  exited.catch(() => {});
  let stopping: Promise<Exit> | undefined;
  const end = async (how: Ending): Promise<Exit> => {
    if (how === 'stdin') child.stdin.end();
    else child.kill(how);
    const exit = await within(10_000, exited);
    if (exit) return exit;
    child.kill('SIGKILL');
    // Not `exited`: a surviving grandchild may hold the output open for ever.
    throw new Error(`${command} ${args.join(' ')} did not end within 10 s. Its stderr:\n${textOf(output.stderr)}`);
  };
  const started: Child = {
    process: child,
    pid: child.pid ?? -1,
    stdin: child.stdin,
    output: child.stdout,
    stdout: () => textOf(output.stdout),
    stderr: () => textOf(output.stderr),
    exited,
    signal: (name) => void child.kill(name),
    stop: (how = ending) => {
      stopping ??= end(how);
      return stopping;
    },
  };
  atEnd(() => started.stop());
  return started;
}

/** The value of the promise, or undefined if it takes longer than a machine with this load should need. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const timer = new AbortController();
  const late = sleep(patient(ms), undefined, { signal: timer.signal }).catch(() => undefined);
  return Promise.race([promise, late]).finally(() => timer.abort());
}

export function textOf(chunks: Buffer[]): string {
  return Buffer.concat(chunks).toString();
}
