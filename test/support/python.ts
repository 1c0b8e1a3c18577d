/** For tests of Python tools: an environment with FastMCP, built once for all runs, and the host program in it. */
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { whyMissing } from '../../scripts/programs.mjs';
import type { WorkerEnvironment } from '../../src/workers/environment.ts';
import { preparePython } from '../../src/workers/python-environment.ts';
import { type Child, childEnv, startChild, within } from './child.ts';
import { atEnd } from './cleanup.ts';
import { installer } from './installer.ts';
import { isReason, whyNotCreated } from './needs.ts';
import { type Files, tempFolder } from './temp.ts';

const kept = fileURLToPath(new URL('../tools/python/', import.meta.url));
/** The data folder with that environment. */
export const dataDir = join(kept, 'data');

/** Why tests with Python are skipped; undefined if they run. In CI they are not skipped: this module fails. */
export const noPython: string | undefined = await whyNot();
isReason(noPython);

async function whyNot(): Promise<string | undefined> {
  try {
    await basePython();
    return undefined;
  } catch (error) {
    // If the set-up of the tests could create an environment, this must work too.
    const reason = whyMissing('python') ?? whyNotCreated();
    if (reason !== undefined) return reason;
    throw error;
  }
}

/** The environment that folders without requirements share. */
export function basePython(): Promise<WorkerEnvironment> {
  return prepare(tempFolder(), { ...process.env, ...installer });
}

/** An environment that is kept for the next run. */
export function prepare(folder: string, env: NodeJS.ProcessEnv = process.env): Promise<WorkerEnvironment> {
  return preparePython({
    namespace: 'tests',
    folder,
    dataDir,
    env,
    progress: () => {},
    signal: null,
    isolation: 'auto',
    packages: 'registry',
  });
}

export interface WorkerAnswer {
  readonly id: string | null;
  readonly ok: boolean;
  readonly result?: Record<string, unknown>;
  readonly error?: { code: string; message: string; details?: Record<string, unknown> };
  readonly latency_ms?: number;
}

export interface Tool {
  readonly name: string;
  readonly [key: string]: unknown;
}

export interface Ready {
  readonly op: 'ready';
  readonly namespace: string;
  readonly tools: Tool[];
  readonly failed: { file: string; line: number | null; message: string }[];
}

export interface Host {
  readonly child: Child;
  readonly folder: string;
  readonly socket: string;
  readonly ready: Ready;
  /** All messages that are not answers. */
  readonly events: Record<string, unknown>[];
  /** All received lines. */
  readonly lines: string[];
  call(tool: string, args?: unknown, more?: Record<string, unknown>): Promise<WorkerAnswer>;
  ask(request: Record<string, unknown>): Promise<WorkerAnswer>;
  /** Writes raw text. */
  write(text: string): void;
  answerTo(id: string | null): Promise<WorkerAnswer>;
  readonly connection: Socket;
}

/** Starts the host program with these files, or an existing folder, as the gateway does. */
export async function startHost(
  files: Files | string,
  options: { args?: string[]; environment?: WorkerEnvironment } = {},
): Promise<Host> {
  const folder = typeof files === 'string' ? files : tempFolder(files);
  const socket = join(tempFolder(), 's');
  const { command, env } = options.environment ?? (await basePython());
  const args = ['--namespace', 'tests', '--socket', socket, '--folder', folder, ...(options.args ?? [])];
  const child = startChild(command[0]!, [...command.slice(1), ...args], {
    cwd: folder,
    env: childEnv({ HOME: folder, ...env }),
    ending: 'stdin',
  });
  const connection = await connectTo(socket, child);
  const events: Record<string, unknown>[] = [];
  const lines: string[] = [];
  const answers = new Map<string | null, WorkerAnswer>();
  const waiting = new Map<string | null, (answer: WorkerAnswer) => void>();
  let serial = 0;
  const ready = await new Promise<Ready>((resolve, reject) => {
    connection.once('close', () => reject(new Error(`the host ended: ${child.stderr()}`)));
    createInterface({ input: connection, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      lines.push(line);
      const message = JSON.parse(line) as Record<string, unknown>;
      if (message.op === 'ready') resolve(message as unknown as Ready);
      else if (!('ok' in message)) events.push(message);
      else {
        const answer = message as unknown as WorkerAnswer;
        const wanted = waiting.get(answer.id);
        waiting.delete(answer.id);
        if (wanted) wanted(answer);
        else answers.set(answer.id, answer);
      }
    });
  });
  const answerTo = async (id: string | null): Promise<WorkerAnswer> => {
    const there = answers.get(id);
    answers.delete(id);
    const answer = there ?? (await within(45_000, new Promise<WorkerAnswer>((resolve) => waiting.set(id, resolve))));
    if (answer === undefined) throw new Error(`no answer to ${id}: ${child.stderr()}`);
    return answer;
  };
  const write = (text: string) => connection.write(text);
  const ask = (request: Record<string, unknown>) => {
    const id = String(request.id ?? ++serial);
    write(`${JSON.stringify({ id, ...request })}\n`);
    return answerTo(id);
  };
  return {
    child,
    folder,
    socket,
    ready,
    events,
    lines,
    connection,
    write,
    ask,
    answerTo,
    call: (tool, args = {}, more = {}) => ask({ op: 'tools.call', tool, arguments: args, ...more }),
  };
}

/** Waits until the host listens, which it does before it imports the tools. */
export async function connectTo(path: string, child: Child): Promise<Socket> {
  for (let tries = 0; tries < 1000; tries += 1) {
    const socket = connect(path);
    const opened = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    });
    if (opened) {
      socket.on('error', () => {});
      atEnd(() => socket.destroy());
      return socket;
    }
    if (child.process.exitCode !== null) break;
    await sleep(10);
  }
  throw new Error(`the host does not listen: ${child.stderr()}`);
}
