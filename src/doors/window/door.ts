/**
 * The door for windows: a Unix socket that only this user can reach. Each connection is one client, with the identity that it
 * would have on stdio. It has no rights of an operator.
 */
import { chmod, unlink } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError, toGatewayError } from '../../base/errors.ts';
import { toObject } from '../../base/objects.ts';
import { makePrivateFolder } from '../../base/socket-folder.ts';
import { VERSION } from '../../base/version.ts';
import { type ClientOptions, FULL_SCOPE, type KeptCaller } from '../../calls/caller.ts';
import { programIdentity } from '../../calls/identity.ts';
import { loadTask } from '../../config/task.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { requireProfile } from '../../plans/plan.ts';
import { type StdioDoor, serveStreams } from '../stdio.ts';
import { isSameEnvironment } from './environment.ts';
import { asideLine, HELLO_VERSION, type SharedGatewayStatus, type WindowHello, type WindowWelcome } from './hello.ts';
import type { IdleWatch } from './idle.ts';

export interface WindowDoor {
  /** Stops taking windows, lets running calls finish, and sends the windows away. */
  close(): Promise<void>;
}

export interface WindowDoorOptions {
  readonly folder: string;
  readonly path: string;
  readonly cwd: string;
  /** The file of the gateway's log. */
  readonly log: string;
  /** Somebody has asked the gateway to stop. */
  stop(): void;
  /** Is told of every window. */
  readonly idle: IdleWatch;
  /** A window is there. `write` sends a line to its log. Returns what to do when it is gone. */
  attached(window: AttachedWindow, write: (line: string) => void): () => void;
}

export interface AttachedWindow {
  readonly hello: WindowHello;
  readonly door: StdioDoor;
}

const LONGEST_HELLO = 4 * 1024 * 1024;
/** Milliseconds for a window to say hello. */
const PATIENCE = 10_000;
/** Milliseconds that running calls have when the gateway stops. */
export const LAST_CALLS = 10_000;

type ServedWindow = ReturnType<typeof serveStreams>;

export async function openWindowDoor(gateway: Gateway, options: WindowDoorOptions): Promise<WindowDoor> {
  const windows = new Map<Socket, ServedWindow>();
  let isClosing = false;

  async function greet(socket: Socket, line: string): Promise<void> {
    const hello = toObject(JSON.parse(line)) as unknown as WindowHello & { ask?: unknown };
    if (hello.ask === 'status' || hello.ask === 'stop') {
      socket.end(`${JSON.stringify(status())}\n`);
      if (hello.ask === 'stop') options.stop();
      return;
    }
    const gone = options.idle.enter();
    try {
      const welcome = await admit(hello).catch((error: unknown): WindowWelcome => {
        const { code, message } = toGatewayError(error);
        return { code, message };
      });
      if (socket.destroyed) gone();
      else if ('welcome' in welcome) await serve(socket, hello, gone);
      else {
        socket.end(`${JSON.stringify(welcome)}\n`);
        gone();
      }
    } catch (error) {
      gone();
      throw error;
    }
  }

  async function admit(hello: WindowHello): Promise<WindowWelcome> {
    if (isClosing) return { other: 'stopping' };
    if (!gateway.config.shared) return { other: 'unshared' };
    if (hello.toolgate !== HELLO_VERSION)
      throw new GatewayError('usage', 'The gateway is of another version of Toolgate. Start this client again.');
    if (!isSameEnvironment(gateway.config, gateway.env, hello.env)) return { other: 'environment' };
    await taskOf(hello);
    if (hello.toolset !== null) await gateway.equipForWindows(hello.toolset);
    return isClosing ? { other: 'stopping' } : { welcome: true };
  }

  async function taskOf({ task: given }: WindowHello) {
    if (given === null) return null;
    const task = await loadTask(given, options.cwd);
    requireProfile(task, gateway.config.tasks.rules());
    return task;
  }

  /** `gone` is called when the window has left. */
  async function serve(socket: Socket, hello: WindowHello, gone: () => void): Promise<void> {
    const write = (line: string) => {
      if (socket.writable) socket.write(line);
    };
    const client: ClientOptions = {
      identity: programIdentity(hello.agent),
      scope: { ...FULL_SCOPE, task: await taskOf(hello) },
      door: 'stdio',
      window: {
        before: hello.before,
        kept: hello.kept as KeptCaller | null,
        keep: (keep) => write(asideLine({ keep })),
      },
    };
    write(`${JSON.stringify({ welcome: true } satisfies WindowWelcome)}\n`);
    const door = serveStreams(gateway, client, socket, socket);
    windows.set(socket, door);
    const left = options.attached({ hello, door }, (log) => write(asideLine({ log })));
    const leave = () => {
      if (!windows.delete(socket)) return;
      left();
      door.close();
      socket.end();
      gone();
    };
    socket.once('close', leave);
    void door.ended.then(leave);
    socket.resume();
  }

  function status(): SharedGatewayStatus {
    const { pid, started, file } = gateway.status();
    return { pid, version: VERSION, started, file, windows: windows.size, log: options.log };
  }

  await makePrivateFolder(options.folder);
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.setTimeout(PATIENCE, () => socket.destroy());
    readLine(socket, (line) => {
      socket.setTimeout(0);
      greet(socket, line).catch(() => socket.destroy());
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.path, resolve);
  });
  // A connection that cannot be accepted must not end the gateway.
  server.on('error', () => {});
  await chmod(options.path, 0o600);

  return {
    async close() {
      if (isClosing) return;
      isClosing = true;
      // First the name: no window finds a gateway that ends.
      await unlink(options.path).catch(() => {});
      server.close();
      const until = Date.now() + LAST_CALLS;
      while ([...windows.values()].some(({ inFlight }) => inFlight > 0) && Date.now() < until) await sleep(10);
      await Promise.all([...windows].map(([socket, door]) => sendAway(socket, door)));
    },
  };
}

/** Resolves when everything for the window has been sent. */
function sendAway(socket: Socket, door: StdioDoor): Promise<void> {
  socket.write(asideLine({ ending: true }));
  door.close();
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.destroy(), 1_000);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
    socket.end();
  });
}

/** Reads the first line of a connection, and leaves the rest unread. */
function readLine(socket: Socket, done: (line: string) => void): void {
  const parts: Buffer[] = [];
  let size = 0;
  const read = (chunk: Buffer) => {
    const end = chunk.indexOf(0x0a);
    size += chunk.length;
    parts.push(end < 0 ? chunk : chunk.subarray(0, end));
    if (end < 0) {
      if (size > LONGEST_HELLO) socket.destroy();
      return;
    }
    socket.off('data', read);
    socket.pause();
    if (end + 1 < chunk.length) socket.unshift(chunk.subarray(end + 1));
    done(Buffer.concat(parts).toString());
  };
  socket.on('data', read);
}
