/** The process of a worker: it has a process group of its own, a memory limit, and a socket. */
import { createConnection, type Socket } from 'node:net';
import { constants } from 'node:os';
import { watchMemory } from '../workers/memory.ts';
import type { ServerProcess, Spawn } from './spawn.ts';

export interface WorkerProcessLaunch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Bytes; null for no limit. */
  readonly memory: number | null;
}

export interface WorkerProcessEvents {
  /** What the process and its tools write to their standard output and error. */
  printed(chunk: Buffer): void;
  isBusy(): boolean;
  /** It uses more memory than it may. */
  exceeded(): void;
  /** It has ended, and everything that it wrote was read. */
  ended(how: string): void;
}

export interface WorkerProcess {
  readonly pid: number | null;
  /** Closes its input, which tells it and all its threads that we are gone. */
  release(): void;
  kill(): void;
}

/** This much of its output is read per interval. A process that prints more has to wait. */
const PRINTED = { bytes: 1 << 20, ms: 100 };
/** How long we wait for other processes that hold its pipes open. */
const LAST_OUTPUT = 500;
const BY_SIGNAL = 'was ended by';
/** V8 has a limit of its own, and prints one of these before it ends. */
const HEAP = /heap out of memory|Reached heap limit/;

export function startWorkerProcess(
  launch: WorkerProcessLaunch,
  spawn: Spawn,
  events: WorkerProcessEvents,
): WorkerProcess {
  const { command, env, cwd, memory } = launch;
  const [file, ...args] = command as [string, ...string[]];
  const child = spawn({ kind: 'stdio', file, args, env, cwd, isBare: true });
  const { pid } = child;
  const watch = memory === null || pid === null ? null : watchMemory(pid, memory, events.isBusy, events.exceeded);
  let lastOutput = '';
  readSlowly(child, (chunk) => {
    lastOutput = (lastOutput + chunk.toString('latin1')).slice(-4_096);
    events.printed(chunk);
  });
  child.stdin.on('error', () => {});

  let isOver = false;
  const end = (how: string) => {
    if (isOver) return;
    isOver = true;
    events.ended(how);
  };
  let how = '';
  let late: NodeJS.Timeout | undefined;
  const report = () => end(how.startsWith(BY_SIGNAL) && HEAP.test(lastOutput) ? memoryExceeded(memory) : how);
  child.watch({
    failed: (problem) => end(`could not be started: ${problem}`),
    exited(code, signal) {
      watch?.stop();
      how = howEnded(code, signal);
      late = setTimeout(() => {
        // A program that a tool detached may hold the pipes open forever.
        for (const output of [child.stdout, child.stderr]) output.destroy();
        report();
      }, LAST_OUTPUT);
      for (const output of [child.stdout, child.stderr]) output.resume();
    },
    closed() {
      clearTimeout(late);
      // What it wrote to its socket is read in the next turns.
      setImmediate(() => setImmediate(report));
    },
  });

  return {
    pid,
    release: () => void child.stdin.end(),
    kill: () => child.kill('SIGKILL'),
  };
}

/** A process that prints without end must not keep us busy reading. */
function readSlowly({ stdout, stderr }: ServerProcess, printed: (chunk: Buffer) => void): void {
  for (const output of [stdout, stderr]) {
    let room = PRINTED.bytes;
    output.on('data', (chunk: Buffer) => {
      printed(chunk);
      const before = room;
      room -= chunk.length;
      if (before === PRINTED.bytes) setTimeout(refill, PRINTED.ms).unref();
      if (room <= 0) output.pause();
    });
    output.on('error', () => {});
    const refill = () => {
      room = PRINTED.bytes;
      output.resume();
    };
  }
}

/** Some signals also have an older name, which comes later in the table. Reversed, so that the first name wins. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** If a signal ends the worker inside bubblewrap, bubblewrap exits with 128 plus its number, as a shell does. */
function howEnded(code: number | null, signal: NodeJS.Signals | null): string {
  const name = signal ?? (code === null || code <= 128 ? undefined : SIGNALS.get(code - 128));
  return name === undefined ? `exited with code ${code}` : `${BY_SIGNAL} ${name}`;
}

export function memoryExceeded(memory: number | null): string {
  const limit = memory === null ? 'all available memory' : `its limit of ${bytesText(memory)} of memory`;
  return `used more than ${limit}, and was ended; make its tools use less, or raise its memory`;
}

function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${Math.round(value * 10) / 10} ${units[unit]}`;
}

/** Null while no worker listens there. */
export function connectTo(path: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}
