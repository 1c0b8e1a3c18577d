/** The HTTP door with a server of its own, or without one. */
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Gateway } from '../../gateway/types.ts';
import { type HttpDoor, type HttpDoorOptions, makeDoor } from './door.ts';
import { listen, refusalToListen, refusalToMount } from './listening.ts';

/** Where to listen, and for whom. */
export interface ListenOptions extends HttpDoorOptions {
  readonly host: string;
  readonly port: number;
}

/** A gateway that listens. */
export interface ListeningDoor extends HttpDoor {
  /** Of MCP. */
  readonly url: string;
  readonly port: number;
}

/** Which server leads to it, and where that listens, is somebody else's matter. */
export function createHttpDoor(gateway: Gateway, options: HttpDoorOptions = {}): Promise<HttpDoor> {
  const { identify } = options;
  return makeDoor(gateway, options, {
    host: null,
    origin: () => 'http://localhost',
    refusal: () => (identify === undefined ? refusalToMount(gateway.config.http) : null),
  });
}

export async function openHttpDoor(gateway: Gateway, options: ListenOptions): Promise<ListeningDoor> {
  const { host, port, identify } = options;
  let bound = port;
  const origin = () => `http://${host.includes(':') ? `[${host}]` : host}:${bound}`;
  const door = await makeDoor(gateway, options, {
    host,
    origin,
    refusal: (hasCredentials) =>
      identify === undefined ? refusalToListen(host, gateway.config.http, hasCredentials) : null,
  });
  const { handle, serves, basePath, turnOut } = door;
  const server = await openServer(handle, port, host).catch(async (error: unknown) => {
    await door.close();
    throw error;
  });
  bound = (server.address() as AddressInfo).port;
  return {
    port: bound,
    url: `${origin()}${basePath}/mcp`,
    ...{ handle, serves, basePath, turnOut },
    get isOpen() {
      return door.isOpen;
    },
    get sessions() {
      return door.sessions;
    },
    drain(ms?: number) {
      server.close();
      return door.drain(ms);
    },
    async close() {
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      await door.close();
      server.closeAllConnections();
      await done;
    },
  };
}

/** A server that listens, with the limits that one in the open needs. */
export async function openServer(handle: RequestListener, port: number, host: string): Promise<Server> {
  // Loaded here, so that a gateway on stdio starts without it.
  const { createServer } = await import('node:http');
  const server = createServer({
    maxHeaderSize: 16_384,
    keepAliveTimeout: 65_000,
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    // A second Host or Authorization would be dropped unseen; joined to the first it is refused.
    joinDuplicateHeaders: true,
  });
  server.on('request', handle);
  await listen(server, port, host);
  return server;
}
