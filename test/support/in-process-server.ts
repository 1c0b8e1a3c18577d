/** Fixture servers in the process of the test. To start a process costs more than most tests. */
import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Readable, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import {
  type ServerProcess,
  type ServerProcessEvents,
  type Spawn,
  type StdioLaunch,
  spawnServer,
} from '../../src/sources/spawn.ts';
import { fixture } from './fixtures.ts';
import { alive, running as processesWith } from './processes.ts';
import { serversAreProcesses } from './switch.ts';

/** The others need a process: they crash, block, do not end, or write more than is read. */
const FIXTURES = [
  'asking',
  'asking-early',
  'asking-modern',
  'basic',
  'changing',
  'conformance',
  'garbage',
  'hang',
  'http',
  'modern',
  'paged',
  'personal',
  'tasks',
  'tasks-legacy',
  'whole-legacy',
  'whole-modern',
  'wordy',
  '../fleet/counted',
  '../limits/moody',
  '../relay/upstream',
  '../servers/stdio-server',
];
/** The `lib.mjs` that each fixture imports, by the path of the fixture. Bundled ones share one, and the others another. */
const libraries = new Map(FIXTURES.map((name) => [fixture(name), fixture(name.startsWith('.') ? './lib' : 'lib')]));

type Load = (url: string) => Promise<Record<string, unknown>>;
const load = createRequire(import.meta.url)('./native-import.cjs') as Load;
/** Kept, because a test may install a fake clock. Its servers must not stop with it. */
const { setImmediate, setTimeout, setInterval, clearTimeout } = globalThis;

/** As much as Linux keeps in a pipe. */
const PIPE = 65_536;
/** The highest process id on Linux. Fixtures get higher ones, so that a signal to one of them never reaches a real process. */
const MOST_PID = 2 ** 22;
let lastRun = 0;
/** By the ids that they have. */
const running = new Map<number, ServerProcess & { readonly command: string }>();

/** Starts servers for gateways of this process. */
export const spawn: Spawn = (launch) => (runsHere(launch) ? startHere(launch) : spawnServer(launch));

/** The same, in this process even if the switch says otherwise. */
export const spawnHere: Spawn = (launch) => (canRunHere(launch) ? startHere(launch) : spawnServer(launch));

/** Signals a server, whether it is a process or runs here. It must be running. */
export function killServer(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  if (pid <= MOST_PID) process.kill(pid, signal);
  else if (running.has(pid)) running.get(pid)!.kill(signal);
  else throw new Error(`no server with the id ${pid} is running`);
}

/** The ids of all servers with `text` in their command lines, whether they are processes or run here. */
export function runningServers(text: string): number[] {
  const here = [...running].filter(([, { command }]) => command.includes(text)).map(([pid]) => pid);
  return [...here, ...processesWith(text)];
}

/** Whether the server with this id runs, as a process or here. */
export function isServerRunning(pid: number): boolean {
  return running.has(pid) || alive(pid);
}

/** Whether the command is a fixture that is to run in this process. */
export function runsHere(launch: StdioLaunch): boolean {
  return !serversAreProcesses() && canRunHere(launch);
}

function canRunHere({ file, args: [path = ''], cwd, isBare }: StdioLaunch): boolean {
  return isBare !== true && file === process.execPath && libraries.has(path) && existsSync(cwd);
}

/** Runs a fixture as if it had a process of its own. */
export function startHere({ file, args: [path = '', ...args], cwd, env }: StdioLaunch): ServerProcess {
  const run = ++lastRun;
  const pid = MOST_PID + run;
  const stdin = createPipe();
  const stdout = createPipe();
  const stderr = createPipe();
  const timers = new Set<NodeJS.Timeout>();
  const closers: (() => void)[] = [];
  let isRunning = true;
  let events: ServerProcessEvents | null = null;

  const end = (code: number | null, signal: NodeJS.Signals | null) => {
    if (!isRunning) return;
    isRunning = false;
    running.delete(pid);
    for (const timer of timers) clearTimeout(timer);
    for (const close of closers) close();
    stdin.reader.destroy();
    stdout.writer.end();
    stderr.writer.end();
    setImmediate(async () => {
      stdin.writer.destroy();
      events?.exited(code, signal);
      await Promise.allSettled([finished(stdout.reader), finished(stderr.reader)]);
      events?.closed();
    });
  };
  const host = {
    argv: [file, path, ...args],
    env: { ...env },
    pid,
    cwd: () => cwd,
    stdin: stdin.reader,
    stdout: stdout.writer,
    stderr: stderr.writer,
    exit: (code = 0) => end(code, null),
    sleep: (ms: number) => new Promise<void>((resolve) => host.setTimeout(() => resolve(), ms)),
    setTimeout(callback: (...args: unknown[]) => void, ms: number, ...args: unknown[]) {
      const timer = setTimeout(() => {
        timers.delete(timer);
        callback(...args);
      }, ms);
      if (isRunning) timers.add(timer);
      else clearTimeout(timer);
      return timer;
    },
    setInterval(callback: () => void, ms: number) {
      const timer = setInterval(callback, ms);
      timers.add(timer);
      return timer;
    },
    atExit(close: () => void) {
      if (isRunning) closers.push(close);
      else close();
    },
  };
  // A process ends when it has nothing to wait for.
  stdin.reader.on('end', () => {
    if (closers.length === 0) setImmediate(host.exit);
  });
  const start = async () => {
    const { runWith } = await load(String(pathToFileURL(libraries.get(path)!)));
    // Another query gives another module, so that its code runs again, also if this file was loaded twice. What it imports is shared.
    const url = `${pathToFileURL(path)}?run=${randomUUID()}`;
    await (runWith as (host: object, start: () => unknown) => unknown)(host, () => load(url));
  };
  start().catch((error: Error) => {
    stderr.writer.write(`${error.stack}\n`);
    end(1, null);
  });
  const server = {
    command: [file, path, ...args].join(' '),
    pid,
    stdin: stdin.writer,
    stdout: stdout.reader,
    stderr: stderr.reader,
    get isRunning() {
      return isRunning;
    },
    watch(given: ServerProcessEvents) {
      events = given;
    },
    kill: (signal: NodeJS.Signals) => void setImmediate(end, null, signal),
  };
  running.set(pid, server);
  return server;
}

/**
 * What one side writes arrives at the other in a later turn, as a copy, and in the context in which the pipe was created.
 * A reader that does not keep up holds up the writer.
 */
function createPipe(): { reader: Readable; writer: Writable } {
  let resume: (() => void) | null = null;
  const reader = new Readable({
    highWaterMark: PIPE,
    read() {
      const next = resume;
      resume = null;
      next?.();
    },
  });
  const deliver = AsyncResource.bind((bytes: Buffer | null, done: () => void) => {
    if (reader.push(bytes) || bytes === null) done();
    else resume = done;
  });
  const writer = new Writable({
    highWaterMark: PIPE,
    write: (chunk: Buffer, _, done) => void setImmediate(deliver, Buffer.from(chunk), done),
    writev: (chunks, done) => {
      const all = Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer));
      setImmediate(deliver, all, done);
    },
    final: (done) => void setImmediate(deliver, null, done),
  });
  // What is left of an ended fixture may still write.
  const write = writer.write.bind(writer) as (...args: unknown[]) => boolean;
  writer.write = (...args: unknown[]) => writer.writableEnded || write(...args);
  return { reader, writer };
}
