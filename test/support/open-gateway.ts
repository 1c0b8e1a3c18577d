/** A gateway in this process with real servers behind it and its real doors open. */
import { PassThrough } from 'node:stream';
import {
  configFromValue,
  type EntryFigures,
  type Gateway,
  type HttpDoor,
  openHttpDoor,
  openStdioDoor,
} from '../../src/index.ts';
import { childEnv } from './child.ts';
import { atEnd } from './cleanup.ts';
import { createGateway } from './in-process-gateway.ts';
import { enveloped } from './modern.ts';
import { serverEntry } from './server.ts';
import { tempFolder } from './temp.ts';

export interface Opened {
  readonly gateway: Gateway;
  readonly http: HttpDoor;
  readonly url: string;
  readonly origin: string;
}

/** Servers in the format of `mcpServers`. Everything is active, and there are no controls unless told otherwise. */
export async function open(servers: object, more: object = {}, token: string | null = null): Promise<Opened> {
  const home = tempFolder();
  const config = configFromValue({ servers, controls: [], ...more }, { cwd: home, env: childEnv({ HOME: home }) });
  const gateway = createGateway(config);
  atEnd(() => gateway.close());
  await gateway.tried();
  const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 0, token });
  atEnd(() => http.close());
  return { gateway, http, url: http.url, origin: new URL(http.url).origin };
}

export const basic = (...args: (string | number)[]) => serverEntry('basic', ...args);
export const hanging = { ...serverEntry('hang'), timeout: 30_000 };

export interface Line {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Pipes {
  /** Sends a request and returns its answer. */
  ask(method: string, params: object): Promise<Line>;
  send(message: object): void;
  readonly lines: Line[];
  /** The same as they were written, because JSON.parse changes large numbers. */
  readonly texts: string[];
}

/** The stdio door on a pair of streams, with a client of the given era. */
export async function openPipes(gateway: Gateway, era: 'legacy' | 'modern'): Promise<Pipes> {
  const input = new PassThrough();
  const output = new PassThrough();
  const door = openStdioDoor(gateway, input, output);
  atEnd(() => door.close());
  const lines: Line[] = [];
  const texts: string[] = [];
  const waiting = new Map<unknown, (line: Line) => void>();
  let rest = '';
  output.on('data', (chunk: Buffer) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop()!;
    for (const part of parts) {
      const line = JSON.parse(part) as Line;
      lines.push(line);
      texts.push(part);
      if (line.method === undefined) waiting.get(line.id)?.(line);
    }
  });
  let count = 0;
  const write = (text: string) => void input.write(`${text}\n`);
  const ask = (method: string, params: object) => {
    const id = ++count;
    const answer = new Promise<Line>((resolve) => waiting.set(id, resolve));
    const text = JSON.stringify(params);
    write(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${era === 'modern' ? enveloped(text) : text}}`);
    return answer;
  };
  const send = (message: object) => write(JSON.stringify({ jsonrpc: '2.0', ...message }));
  if (era === 'legacy') {
    await ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    });
    send({ method: 'notifications/initialized' });
  }
  return { ask, send, lines, texts };
}

/** The metrics of one item. */
export function figuresOf(gateway: Gateway, server: string, name: string, kind = 'tool'): EntryFigures {
  const row = gateway.metrics.entries().find((one) => one.server === server && one.name === name && one.kind === kind);
  if (row === undefined) throw new Error(`no figures of ${kind} ${name} of ${server}`);
  return row;
}

/** The outcomes that are not zero. */
export function outcomesOf(gateway: Gateway, server: string, name: string, kind = 'tool'): Record<string, number> {
  return Object.fromEntries(Object.entries(figuresOf(gateway, server, name, kind).outcomes).filter(([, n]) => n > 0));
}
