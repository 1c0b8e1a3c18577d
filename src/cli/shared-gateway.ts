/** Finds the gateway that the windows of a project share, or starts it in the background. */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorCode, GatewayError, statusOfCode } from '../base/errors.ts';
import { tryLock } from '../base/lock.ts';
import { ownFile } from '../base/own-files.ts';
import { makePrivateFolder } from '../base/socket-folder.ts';
import { findConfig } from '../config/find.ts';
import { HELLO_VERSION, hashEnv, sayHello, type WindowHello } from '../doors/window/hello.ts';
import { startLock, type WindowKey, windowFolder, windowKey, windowSockets } from '../store/window-sockets.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { isTrustGiven } from './trust-given.ts';

/** Milliseconds that a window waits for the start of another one. */
const PATIENCE = 60_000;
const PAUSE = 20;

/** Where the gateways of this project are, and which of them may be used. */
export interface SharedPlace {
  readonly folder: string;
  readonly key: WindowKey;
}

export function sharedPlace(options: Options, io: CommandIo): SharedPlace {
  const { file, isNamed } = findConfig(loadOptions(options, io));
  const program = ownFile('dist/cli/main.js');
  const key = windowKey({ cwd: io.cwd(), file, isNamed, isTrusted: isTrustGiven(options, io), program });
  return { folder: windowFolder(io.env), key };
}

/** The configuration says that windows do not share a gateway. */
export class Unshared extends GatewayError {
  constructor() {
    super('usage', 'The configuration says shared = false now. Start this client again.');
  }
}

export type HelloParts = Pick<WindowHello, 'agent' | 'task' | 'toolset' | 'log' | 'before' | 'kept'>;

/**
 * A connection to the gateway of this place, which is started if there is none. Rejects with the reason if it cannot be
 * started, or does not admit this window.
 */
export async function attach(place: SharedPlace, parts: HelloParts, options: Options, io: CommandIo): Promise<Socket> {
  const hello: WindowHello = { toolgate: HELLO_VERSION, ...parts, env: hashEnv(io.env) };
  const running = await findRunning(place, hello);
  if (running !== null) return running;
  await makePrivateFolder(place.folder);
  return withStartLock(place, async () => {
    const started = await findRunning(place, hello);
    if (started !== null) return started;
    const socket = await greet(await startInBackground(place, options, io), hello);
    if (socket === null)
      throw new GatewayError(
        'source_unavailable',
        'The gateway ended right after its start. See toolgate daemon status.',
      );
    return socket;
  });
}

async function findRunning({ folder, key }: SharedPlace, hello: WindowHello): Promise<Socket | null> {
  for (const path of await windowSockets(folder, key.project, key.start)) {
    const socket = await greet(path, hello);
    if (socket !== null) return socket;
  }
  return null;
}

/** Null if this gateway is not for this window. */
async function greet(path: string, hello: WindowHello): Promise<Socket | null> {
  const answered = await sayHello(path, hello);
  if (answered === null) return null;
  const { answer, socket } = answered;
  if ('welcome' in answer) return socket;
  socket.destroy();
  if ('code' in answer) throw knownError(answer.code, answer.message);
  if (answer.other === 'unshared') throw new Unshared();
  return null;
}

/** One start at a time: windows that are opened together find the gateway of the first one. */
export async function withStartLock<T>({ folder, key }: SharedPlace, work: () => Promise<T>): Promise<T> {
  const path = startLock(folder, key);
  const until = Date.now() + PATIENCE;
  for (;;) {
    const lock = await tryLock(path);
    if (lock !== null) {
      try {
        return await work();
      } finally {
        await lock.release();
      }
    }
    if (Date.now() > until)
      throw new GatewayError('source_busy', `Another process is starting the gateway of this project (${path}).`);
    await sleep(PAUSE * (0.5 + Math.random()));
  }
}

/** What the background process says of its start. */
export type StartReport =
  | { readonly socket: string }
  | { readonly unshared: true }
  | { readonly code: string; readonly message: string };

/** Resolves with the socket of the new gateway. It goes on when this process ends. */
export async function startInBackground({ key }: SharedPlace, options: Options, io: CommandIo): Promise<string> {
  const { spawn } = await import('node:child_process');
  const args = [
    ...['daemon', 'run', `${key.project}-${key.start}`],
    ...(options.config === undefined ? [] : ['--config', options.config]),
    ...(options.trust === true ? ['--trust'] : []),
  ];
  const child = spawn(process.execPath, [...process.execArgv, ownFile('bin/toolgate.mjs'), ...args], {
    cwd: io.cwd(),
    env: io.env,
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const report = await new Promise<StartReport>((resolve, reject) => {
    child.once('error', reject);
    child.once('message', (message) => resolve(message as StartReport));
    child.once('exit', (code, signal) =>
      reject(new GatewayError('source_unavailable', `The gateway ended during its start (${signal ?? code}).`)),
    );
  });
  child.removeAllListeners();
  if (child.connected) child.disconnect();
  child.unref();
  if ('socket' in report) return report.socket;
  if ('unshared' in report) throw new Unshared();
  throw knownError(report.code, report.message);
}

function knownError(code: string, message: string): GatewayError {
  return new GatewayError(statusOfCode(code) === null ? 'internal' : (code as ErrorCode), message);
}
