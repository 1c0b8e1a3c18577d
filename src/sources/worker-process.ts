/** The process of a worker: started in a process group of its own, kept within its memory, and reached over a socket. */
import { lstat, mkdir } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { constants } from 'node:os';
import { GatewayError } from '../base/errors.ts';
import { watchMemory } from '../workers/memory.ts';
import { type ServerProcess, spawnServer } from './spawn.ts';
import { killGroup, unwatchGroup, watchGroup } from './watchdog.ts';

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
/** How long we wait for other processes that hold its pipes. */
const LAST_OUTPUT = 500;
const BY_SIGNAL = 'was ended by';
/** V8 has a limit of its own, and prints one of these before it ends. */
const HEAP = /heap out of memory|Reached heap limit/;

export function startWorkerProcess(launch: WorkerProcessLaunch, events: WorkerProcessEvents): WorkerProcess {
  const { command, env, cwd, memory } = launch;
  const [file, ...args] = command as [string, ...string[]];
  const child = spawnServer({ kind: 'stdio', file, args, env, cwd, isBare: true });
  const group = child.pid ?? null;
  if (group !== null) watchGroup(group);
  const watch = memory === null || group === null ? null : watchMemory(group, memory, events.isBusy, events.exceeded);
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
  child.on('error', (error) => end(`could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    watch?.stop();
    // What it left behind ends with it. That also closes pipes that a child of it holds open.
    if (group !== null) {
      killGroup(group, 'SIGKILL');
      unwatchGroup(group);
    }
    const how = howEnded(code, signal);
    const report = () => end(how.startsWith(BY_SIGNAL) && HEAP.test(lastOutput) ? memoryExceeded(memory) : how);
    const late = setTimeout(() => {
      // A program that a tool detached may hold the pipes for ever.
      for (const output of [child.stdout, child.stderr]) output.destroy();
      report();
    }, LAST_OUTPUT);
    child.once('close', () => {
      clearTimeout(late);
      // What it wrote to its socket is read in the turns that follow.
      setImmediate(() => setImmediate(report));
    });
    for (const output of [child.stdout, child.stderr]) output.resume();
  });

  return {
    pid: group,
    release: () => void child.stdin.end(),
    kill() {
      if (group !== null) killGroup(group, 'SIGKILL');
    },
  };
}

/** A process that prints endlessly must not keep us busy with reading. */
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

/** Some signals have an older name as well, which comes later in the table. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** Around a worker that was ended by a signal, bubblewrap exits with 128 plus its number, as a shell does. */
function howEnded(code: number | null, signal: NodeJS.Signals | null): string {
  const name = signal ?? (code === null || code <= 128 ? undefined : SIGNALS.get(code - 128));
  return name === undefined ? `exited with code ${code}` : `${BY_SIGNAL} ${name}`;
}

export function memoryExceeded(memory: number | null): string {
  const limit = memory === null ? 'all available memory' : `its limit of ${bytesText(memory)} of memory`;
  return `used more than ${limit}, and was ended; let its tools need less, or raise its memory`;
}

function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${Math.round(value * 10) / 10} ${units[unit]}`;
}

/** Creates the folder of the sockets. Another user who could write there could answer in place of the worker. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { uid } = await lstat(folder);
  if (process.getuid === undefined || uid === process.getuid()) return;
  const text = `the folder of its socket, ${folder}, belongs to another user. Remove it`;
  throw new GatewayError('source_unavailable', text);
}

/** Null while no worker listens there. */
export function connectTo(path: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = createConnection(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}
