/** `toolgate connect` and `toolgate wait`: the agent's side of a gateway that runs elsewhere. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, messageOf } from '../base/errors.ts';
import { localOrigin } from '../base/loopback.ts';
import type { ClientTls } from '../config/launch.ts';
import { openRemoteDoor } from '../doors/remote/door.ts';
import { openClient, openOwnClient, type RemoteClient } from '../doors/remote/exchange.ts';
import { readDuration, readUrl } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { reasonOf } from './remote.ts';
import { leaveClient, paint, plain, untilSignal } from './terminal.ts';

const DEFAULT_TIMEOUT = 60_000;
const POLL_INTERVAL = 500;

export async function connect(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const url = onlyUrl(args, 'connect');
  if (url.pathname === '/') url.pathname = '/mcp';
  const headers = readHeaders(options.header ?? []);
  const door = openRemoteDoor(
    {
      url: url.href,
      headers: () => ({ ...headers, ...credential(io) }),
      patience: readDuration('--timeout', options.timeout) ?? DEFAULT_TIMEOUT,
      ...clientTls(options, io),
      note: (message) => io.stderr.write(`${paint('dim', plain(message), io, 'stderr')}\n`),
    },
    io.stdin,
    io.stdout,
  );
  await Promise.race([door.ended, untilSignal(io)]);
  await door.close();
  return leaveClient(io);
}

function clientTls({ ca, cert, key }: Options, io: CommandIo): { tls?: ClientTls } {
  if (ca === undefined && cert === undefined && key === undefined) return {};
  if ((cert === undefined) !== (key === undefined))
    throw new GatewayError('usage', '--cert and --key belong together: give both of them, or neither.');
  const path = (file: string) => resolve(io.cwd(), file);
  const pair = cert === undefined || key === undefined ? null : { cert: path(cert), key: path(key) };
  return { tls: { ca: ca === undefined ? null : path(ca), pair } };
}

/** Read for every connection: the file may be replaced while the agent runs. */
export function credential(io: CommandIo): Record<string, string> {
  const { TOOLGATE_TOKEN: token, TOOLGATE_TOKEN_FILE: file, BEARER_TOKEN: common } = io.env;
  const value = token || (file ? readToken(resolve(io.cwd(), file)) : '') || common;
  return value ? { authorization: `Bearer ${value}` } : {};
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new GatewayError('usage', `TOOLGATE_TOKEN_FILE cannot be read: ${messageOf(error)}`);
  }
}

/** Waits until the gateway is ready: an agent that starts earlier finds only some of its tools. */
export async function wait(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { origin, client } = args.length === 0 ? await ownServer(options, io) : await serverAt(args, options, io);
  const timeout = readDuration('--timeout', options.timeout) ?? DEFAULT_TIMEOUT;
  const end = Date.now() + timeout;
  let state = 'it has not been reached yet';
  while (Date.now() < end) {
    state = await readState(origin, client);
    if (state === 'ready') {
      io.stderr.write(`${origin} is ready.\n`);
      return 0;
    }
    await sleep(Math.max(1, Math.min(POLL_INTERVAL, end - Date.now())));
  }
  io.stderr.write(`toolgate: ${origin} is not ready after ${timeout / 1000} s: ${state}.\n`);
  return 1;
}

interface WaitedFor {
  readonly origin: string;
  readonly client: RemoteClient;
}

async function serverAt(args: readonly string[], options: Options, io: CommandIo): Promise<WaitedFor> {
  if (options.manager === true)
    throw new GatewayError('usage', '--manager is for the manager of this configuration: leave the address out.');
  return { origin: onlyUrl(args, 'wait').origin, client: await openClient(clientTls(options, io).tls) };
}

/** The gateway with this configuration on this machine, or its manager. */
async function ownServer(options: Options, io: CommandIo): Promise<WaitedFor> {
  // Loaded here, because with an address no configuration is read.
  const { loadConfig } = await import('../config/load.ts');
  const { http, manager } = await loadConfig(loadOptions(options, io));
  const port = options.manager === true ? manager.port : http.port;
  const tls = clientTls(options, io).tls;
  const origin = localOrigin(http.host, port, http.tls !== null);
  if (http.tls === null || tls?.ca != null) return { origin, client: await openClient(tls) };
  return { origin, client: await openOwnClient(http.tls.cert, tls?.pair ?? null) };
}

/** "ready", or why it is not. */
async function readState(origin: string, { request, dispatcher }: RemoteClient): Promise<string> {
  try {
    const { statusCode, body } = await request(`${origin}/ready`, { dispatcher, signal: AbortSignal.timeout(5_000) });
    const { status } = (await body.json().catch(() => ({}))) as { status?: unknown };
    if (statusCode >= 200 && statusCode < 300) return 'ready';
    return typeof status === 'string' ? `it is ${status}` : `it answers with status ${statusCode}`;
  } catch (error) {
    return reasonOf(error);
  }
}

function onlyUrl([address, ...more]: readonly string[], command: string): URL {
  if (address === undefined || more.length > 0)
    throw new GatewayError('usage', `toolgate ${command} needs one address: toolgate ${command} http://gateway:8808`);
  return readUrl('URL', address);
}

function readHeaders(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):\s*(.*)$/.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw new GatewayError('usage', `--header is written "Name: value", not "${text}".`);
      return [name.toLowerCase(), value];
    }),
  );
}
