/** A Node worker started the way the gateway starts it, and driven over its socket. */
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe } from 'vitest';
import type { EnvironmentRequest } from '../../src/workers/environment.ts';
import { type NodeOptions, prepareNode } from '../../src/workers/node-environment.ts';
import { type Child, childEnv, startChild } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { isMissingNode, NODE_24 } from '../support/needs.ts';
import { type Files, tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

export type Message = Record<string, unknown>;

export interface ListedTool {
  readonly name: string;
  readonly inputSchema: Message;
  readonly [key: string]: unknown;
}

export interface TestWorker {
  readonly child: Child;
  readonly folder: string;
  readonly socket: Socket;
  readonly path: string;
  readonly tools: readonly ListedTool[];
  readonly failed: readonly { file: string; line: number | null; column?: number; message: string }[];
  /** Every message from it that is not an answer. */
  readonly events: Message[];
  /** Every line, as received. */
  readonly lines: string[];
  send(message: Message): void;
  ask(op: string, rest?: Message): Promise<Message>;
  call(tool: string, args?: unknown, rest?: Message): Promise<Message>;
  /** The result of a call, which must succeed. */
  result(tool: string, args?: unknown, rest?: Message): Promise<Message>;
  /** The error of a call, which must fail. */
  error(tool: string, args?: unknown): Promise<{ code: string; message: string; details: Message }>;
}

export interface WorkerOptions {
  /** A different Node version from the one that runs the tests. */
  readonly node?: string;
  readonly env?: Record<string, string>;
  readonly args?: readonly string[];
  readonly options?: NodeOptions;
}

/** The Node that runs the tests, and the newer one that some of their tools need. */
const THIS: [string, string] = ['this Node', process.execPath];
const NEWER: [string, string] = ['a newer Node', NODE_24];

export function describeOnNodes(tests: (node: string) => void): void {
  for (const [name, node] of some([THIS, NEWER], [THIS]))
    describe.skipIf(isMissingNode(node))(`on ${name}`, () => tests(node));
}

export function environmentRequest(folder: string, dataDir = tempFolder()): EnvironmentRequest {
  return {
    namespace: 'demo',
    folder,
    dataDir,
    env: process.env,
    progress: () => {},
    signal: null,
    isolation: 'auto',
    packages: 'registry',
  };
}

export async function startWorker(files: Files, options: WorkerOptions = {}): Promise<TestWorker> {
  const folder = tempFolder(files);
  const dataDir = tempFolder();
  const environment = await prepareNode(environmentRequest(folder, dataDir), options.options);
  const [node, ...rest] = environment.command;
  const path = join(dataDir, 'w.sock');
  const args = ['--namespace', 'demo', '--socket', path, '--folder', folder, ...(options.args ?? [])];
  const child = startChild(options.node ?? node!, [...rest, ...args], {
    cwd: folder,
    env: childEnv({ ...environment.env, ...options.env }),
    ending: 'stdin',
  });
  while (!existsSync(path)) {
    if (child.process.exitCode !== null) throw new Error(`The worker ended: ${child.stderr()}`);
    await sleep(5);
  }
  return attach(child, folder, path);
}

export async function attach(child: Child, folder: string, path: string): Promise<TestWorker> {
  const socket = connect(path);
  atEnd(() => socket.destroy());
  socket.on('error', () => {});
  const lines: string[] = [];
  const events: Message[] = [];
  const waiting = new Map<unknown, (message: Message) => void>();
  const closed = new Promise<never>((_, reject) => {
    socket.on('close', () => reject(new Error(`The connection ended: ${child.stderr()}`)));
  });
  closed.catch(() => {});
  let ready: (message: Message) => void = () => {};
  const greeting = new Promise<Message>((resolve) => {
    ready = resolve;
  });
  // The parts of a line that has not ended. Joined once, because a line may be long.
  let rest: string[] = [];
  socket.setEncoding('utf8').on('data', (text: string) => {
    const [first, ...others] = text.split('\n');
    rest.push(first!);
    for (const other of others) {
      const line = rest.join('');
      rest = [other];
      lines.push(line);
      const message = JSON.parse(line) as Message;
      if (message.op === 'ready') ready(message);
      if (message.op === undefined) waiting.get(message.id)?.(message);
      else events.push(message);
    }
  });
  const send = (message: Message) => void socket.write(`${JSON.stringify(message)}\n`);
  let serial = 0;
  const ask = (op: string, more: Message = {}) => {
    const id = (more.id as string | undefined) ?? String(++serial);
    const answer = new Promise<Message>((resolve) => {
      waiting.set(id, resolve);
      send({ id, op, ...more });
    });
    return Promise.race([answer, closed]);
  };
  const call = (tool: string, args: unknown = {}, more: Message = {}) =>
    ask('tools.call', { tool, arguments: args, ...more });
  const { tools, failed } = (await Promise.race([greeting, closed])) as unknown as Pick<TestWorker, 'tools' | 'failed'>;
  return {
    child,
    folder,
    socket,
    path,
    tools,
    failed,
    events,
    lines,
    send,
    ask,
    call,
    async result(tool, args, more) {
      const answer = await call(tool, args, more);
      if (answer.ok !== true) throw new Error(`${tool} failed: ${JSON.stringify(answer.error)}\n${child.stderr()}`);
      return answer.result as Message;
    },
    async error(tool, args) {
      const answer = await call(tool, args);
      if (answer.ok !== false) throw new Error(`${tool} was to fail and gave ${JSON.stringify(answer.result)}`);
      return answer.error as { code: string; message: string; details: Message };
    },
  };
}

export function textOf(result: Message): string {
  return (result.content as { text: string }[])[0]!.text;
}
