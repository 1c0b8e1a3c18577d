/** The process of a worker: started in a group of its own, kept to its memory, and told apart by how it ended. */
import { constants } from 'node:os';
import { watchMemory } from '../workers/memory.ts';
import { type ServerProcess, spawnServer } from './spawn.ts';
import { killGroup, unwatchGroup, watchGroup } from './watchdog.ts';

export interface ProcessLaunch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Bytes; null for any number. */
  readonly memory: number | null;
}

export interface ProcessEvents {
  /** What it, and the tools in it, write to their standard output and error. */
  printed(chunk: Buffer): void;
  isBusy(): boolean;
  /** It has more memory than it may have. */
  exceeded(): void;
  /** It has ended, and all that it had written was read. */
  ended(how: string): void;
}

export interface WorkerProcess {
  readonly pid: number | null;
  /** Tells it, and every thread of it, that we are gone. */
  release(): void;
  kill(): void;
}

/** So much of what it prints is read in so many milliseconds; one that prints more waits. */
const PRINTED = { bytes: 1 << 20, ms: 100 };
/** Whoever still holds its pipes is not waited for. */
const LAST_WORDS = 500;
const BY_SIGNAL = 'was ended by';
/** V8 has its own limit, and its own word for it before it ends. */
const HEAP = /heap out of memory|Reached heap limit/;

export function startWorkerProcess(launch: ProcessLaunch, events: ProcessEvents): WorkerProcess {
  const { command, env, cwd, memory } = launch;
  const [file, ...args] = command as [string, ...string[]];
  const child = spawnServer({ kind: 'stdio', file, args, env, cwd, isBare: true });
  const group = child.pid ?? null;
  if (group !== null) watchGroup(group);
  const watch = memory === null || group === null ? null : watchMemory(group, memory, events.isBusy, events.exceeded);
  let last = '';
  readSlowly(child, (chunk) => {
    last = (last + chunk.toString('latin1')).slice(-4_096);
    events.printed(chunk);
  });
  child.stdin.on('error', () => {});

  let over = false;
  const end = (how: string) => {
    if (over) return;
    over = true;
    events.ended(how);
  };
  child.on('error', (error) => end(`could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    watch?.stop();
    // Whatever it left behind goes with it; that also closes the pipes that a child of it holds open.
    if (group !== null) {
      killGroup(group, 'SIGKILL');
      unwatchGroup(group);
    }
    const how = howEnded(code, signal);
    const tell = () => end(how.startsWith(BY_SIGNAL) && HEAP.test(last) ? tooMuch(memory) : how);
    const late = setTimeout(() => {
      // A program that a tool has let go of may hold them for ever, and would hold us.
      for (const output of [child.stdout, child.stderr]) output.destroy();
      tell();
    }, LAST_WORDS);
    child.once('close', () => {
      clearTimeout(late);
      // What it has written to its socket is read in the turns that follow.
      setImmediate(() => setImmediate(tell));
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

/** One that prints without end would have us read and do nothing else. */
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

/** Some have an older name too, which comes later. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/** Around a worker that a signal ended, bubblewrap exits with 128 and its number, as a shell does. */
function howEnded(code: number | null, signal: NodeJS.Signals | null): string {
  const name = signal ?? (code === null || code <= 128 ? undefined : SIGNALS.get(code - 128));
  return name === undefined ? `exited with code ${code}` : `${BY_SIGNAL} ${name}`;
}

export function tooMuch(memory: number | null): string {
  const most = memory === null ? 'all the memory that there is' : `the ${bytesText(memory)} of memory that it may have`;
  return `used more than ${most}, and was ended; let its tools need less, or raise its memory`;
}

function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB'];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${Math.round(value * 10) / 10} ${units[unit]}`;
}
