/** The gateways that run with the configuration of a command, and requests to them. */
import { unlink } from 'node:fs/promises';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { GatewayError, statusOfCode } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import { operatorKey } from '../store/operator.ts';
import { operatorSockets } from '../store/operator-sockets.ts';
import type { CommandIo } from './command-io.ts';
import { warn } from './terminal.ts';

/** A gateway that runs, reached through its operator's door. */
export interface RunningGateway {
  /** A GET, or a POST of a JSON body. Resolves with the answer, which is JSON. Rejects with the gateway's error. */
  ask(path: string, options?: AskOptions): Promise<Buffer>;
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
 * Asks the newest gateway that runs with this configuration. Null if there is none, or if it has another operator key: then
 * the command starts the servers itself.
 */
export async function askRunning<T>(
  config: Pick<Config, 'file' | 'dataDir'>,
  io: CommandIo,
  work: (running: RunningGateway) => Promise<T>,
): Promise<T | null> {
  const [running] = await runningGateways(config, io);
  if (running === undefined) return null;
  try {
    return await work(running);
  } catch (error) {
    if (!(error instanceof OtherKey)) throw error;
    warn(`${error.message} The servers are started again for this command.`, io);
    return null;
  }
}

/** The gateway has another operator key than this user. */
class OtherKey extends GatewayError {
  constructor() {
    const text =
      'The running gateway has another operator key. Set TOOLGATE_OPERATOR_KEY to its key, or use the same HOME.';
    super('forbidden', text);
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

function toRunning(socket: string, keyOf: () => Promise<string>): RunningGateway {
  return {
    async ask(path, { body, agent } = {}) {
      const key = await keyOf();
      const { status, bytes } = await exchange(socket, path, body, {
        authorization: `Bearer ${key}`,
        host: 'localhost',
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(agent !== undefined && { 'x-agent-id': agent }),
      });
      if (status < 400) return bytes;
      throw errorOf(status, toObject(readJson(bytes)));
    },
  };
}

interface GatewayAnswer {
  readonly status: number;
  readonly bytes: Buffer;
}

function exchange(
  socketPath: string,
  path: string,
  body: object | undefined,
  headers: Record<string, string>,
): Promise<GatewayAnswer> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error) =>
      reject(
        new GatewayError('source_unavailable', `The running gateway ended before it answered (${error.message}).`, {
          cause: error,
        }),
      );
    const sent = request({ socketPath, path, method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('error', failed);
      response.once('end', () => resolve({ status: response.statusCode ?? 0, bytes: Buffer.concat(parts) }));
    });
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
function errorOf(status: number, body: Readonly<Record<string, unknown>>): GatewayError {
  if (status === 401 || (status === 403 && body.code === undefined)) return new OtherKey();
  const { code, message } = body;
  if (typeof code === 'string' && typeof message === 'string' && statusOfCode(code) !== null)
    return new GatewayError(code as GatewayError['code'], message);
  const { message: text } = toObject(body.error);
  return new GatewayError('source_broken', String(text ?? `The running gateway answered with status ${status}.`));
}
