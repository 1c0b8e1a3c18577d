/** The gateways that run with the configuration of a command, and requests to them. */
import { unlink } from 'node:fs/promises';
import * as http from 'node:http';
import { createConnection } from 'node:net';
import { GatewayError, statusOfCode } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { operatorKey } from '../store/operator.ts';
import { operatorSockets } from '../store/operator-sockets.ts';
import { readUrl } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { reasonOf } from './remote.ts';
import { note, warn } from './terminal.ts';

/** A gateway that runs, reached through its operator's door. */
export interface RunningGateway {
  /** A GET, or a POST of a JSON body. Resolves with the answer, which is JSON. Rejects with the gateway's error. */
  ask(path: string, options?: AskOptions): Promise<Buffer>;
  /** Keeps a gateway in the background from ending because nobody uses it. Returns the function that ends this. */
  hold(): () => void;
}

export interface AskOptions {
  readonly body?: object;
  /** Act as this agent, under its policy. */
  readonly agent?: string;
}

/** All gateways that run with this configuration, the newest first. */
export async function runningGateways(
  config: Pick<Config, 'file' | 'dataDir'>,
  { env }: Pick<CommandIo, 'env'>,
  key: () => Promise<string> = () => operatorKey(env),
): Promise<RunningGateway[]> {
  const sockets = await operatorSockets(config);
  const found = await Promise.all(
    sockets.map(async (socket) => ((await isAlive(socket)) ? [toRunning(socket, key)] : [])),
  );
  return found.flat();
}

/**
 * Asks the gateway at `--url`, or else the newest one that runs with this configuration. Null if none runs, or if it has
 * another operator key: then the command starts the servers itself. It says so.
 */
export async function askRunning<T>(
  options: Options,
  io: CommandIo,
  work: (running: RunningGateway) => Promise<T>,
): Promise<T | null> {
  if (options.url !== undefined) return work(gatewayAt(options.url, io));
  const config = await loadConfig(loadOptions(options, io));
  const [running] = await runningGateways(config, io);
  if (running === undefined) {
    noteNoneRuns(config, io);
    return null;
  }
  const release = running.hold();
  try {
    return await work(running);
  } catch (error) {
    if (error instanceof OtherKey) warn(`${error.message} The servers are started again for this command.`, io);
    else if (isNobodyThere(error)) noteNoneRuns(config, io);
    else throw error;
    return null;
  } finally {
    release();
  }
}

/** Whether the gateway ended between our first look and the request, which nobody has taken. */
function isNobodyThere(error: unknown): boolean {
  const { code } = (error instanceof GatewayError ? (error.cause ?? {}) : {}) as NodeJS.ErrnoException;
  return code === 'ECONNREFUSED' || code === 'ENOENT';
}

/** Says why servers are started, which takes time and may have effects. */
export function noteNoneRuns({ file }: Pick<Config, 'file'>, io: CommandIo): void {
  note(`No gateway runs with ${file ?? 'this configuration'}: the servers are started for this command.`, io);
}

/** The gateway at an address. */
export function gatewayAt(url: string, { env }: Pick<CommandIo, 'env'>): RunningGateway {
  const { origin } = readUrl('--url', url);
  return toRunning(origin, () => operatorKey(env));
}

/** The gateway has another operator key than this user. */
class OtherKey extends GatewayError {
  constructor(where: string) {
    super(
      'forbidden',
      `${where} has another operator key. Set TOOLGATE_OPERATOR_KEY to its key, or use the same HOME.`,
    );
  }
}

/** Whether somebody listens there. The socket of a gateway that was killed is removed. */
function isAlive(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(socket);
    connection.once('connect', () => {
      connection.destroy();
      resolve(true);
    });
    connection.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'ECONNREFUSED') unlink(socket).catch(() => {});
      resolve(false);
    });
  });
}

/** `place` is a socket, or the origin of a URL. */
function toRunning(place: string, keyOf: () => Promise<string>): RunningGateway {
  const isRemote = /^https?:/.test(place);
  const where = isRemote ? `The gateway at ${place}` : 'The running gateway';
  return {
    hold() {
      if (isRemote) return () => {};
      const connection = createConnection(place);
      connection.on('error', () => {});
      connection.unref();
      return () => connection.destroy();
    },
    async ask(path, { body, agent } = {}) {
      const key = await keyOf();
      const { status, bytes } = await exchange(place, path, body, where, {
        authorization: `Bearer ${key}`,
        ...(!isRemote && { host: 'localhost' }),
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(agent !== undefined && { 'x-agent-id': agent }),
      });
      if (status < 400) return bytes;
      throw errorOf(status, toObject(readJson(bytes)), where);
    },
  };
}

interface GatewayAnswer {
  readonly status: number;
  readonly bytes: Buffer;
}

async function exchange(
  place: string,
  path: string,
  body: object | undefined,
  where: string,
  headers: Record<string, string>,
): Promise<GatewayAnswer> {
  const isSocket = !/^https?:/.test(place);
  const { request } = place.startsWith('https:') ? await import('node:https') : http;
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(
        new GatewayError(
          'source_unavailable',
          isSocket
            ? `${where} ended before it answered (${error.message}).`
            : `No gateway answers at ${place} (${error.message || reasonOf(error)}). Start one with toolgate serve, or name its address with --url.`,
          { cause: error },
        ),
      );
    const answered = (response: http.IncomingMessage) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('error', failed);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes: Buffer.concat(parts) }));
    };
    const options = { method: body === undefined ? 'GET' : 'POST', headers };
    const sent = isSocket
      ? request({ socketPath: place, path, ...options }, answered)
      : request(new URL(path, place), options, answered);
    sent.once('error', failed);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

function readJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}

/** The gateway's own error, as it is there. */
function errorOf(status: number, body: Readonly<Record<string, unknown>>, where: string): GatewayError {
  if (status === 401 || (status === 403 && (body.code === undefined || body.code === 'forbidden')))
    return new OtherKey(where);
  const { code, message } = body;
  if (status === 404 && (code === undefined || code === 'path_unknown'))
    return new GatewayError(
      'source_broken',
      `${where} does not know this command: it is not Toolgate, or another version.`,
    );
  if (typeof code === 'string' && typeof message === 'string' && statusOfCode(code) !== null)
    return new GatewayError(code as GatewayError['code'], message);
  const { message: text } = toObject(body.error);
  return new GatewayError('source_broken', String(text ?? `${where} answered with status ${status}.`));
}
