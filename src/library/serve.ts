/** Opening a server with toolsets: on a port, in an app of Fastify, or on standard input and output. */
import type { AddressInfo } from 'node:net';
import { isLoopback } from '../base/loopback.ts';
import { openServer } from '../doors/http/server.ts';
import { openStdioDoor } from '../doors/stdio.ts';
import { wrongOptions } from './errors.ts';
import { type Listener, type ListenerOptions, openListener } from './http.ts';
import type { ToolsetGateway } from './toolset-gateway.ts';

/** An instance of Fastify, by what is used of it. */
export interface FastifyLike {
  // biome-ignore lint/suspicious/noExplicitAny: its types are its own
  register(plugin: any, options?: any): unknown;
}

/** How a server is opened. */
export interface StartOptions {
  /** Default: `http`. */
  readonly transport?: 'http' | 'stdio';
  /** Who the client on standard input is. Default: `stdio`. */
  readonly clientId?: string;
  /** Instead of the standard ones of the process. */
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

export interface ServeOptions extends Omit<ListenerOptions, 'host'> {
  readonly host: string;
  readonly port: number;
  readonly app: FastifyLike | null;
  /** Why there is nothing to serve on standard input; null where there is. */
  readonly noStdio: string | null;
}

export interface Served {
  /** Where MCP is; null where that is not known, or nowhere. */
  readonly url: string | null;
  /** Resolves when the client on standard input has gone. Never, for others. */
  readonly ended: Promise<void>;
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
}

export function serve(host: ToolsetGateway, options: ServeOptions, start: StartOptions): Promise<Served> {
  if (start.transport === 'stdio') return serveStdio(host, options, start);
  if (start.transport !== undefined && start.transport !== 'http')
    throw wrongOptions('"transport" must be "http" or "stdio".');
  return options.app === null ? serveHttp(host, options) : serveFastify(host, options, options.app);
}

const NEVER = new Promise<void>(() => {});

async function serveHttp(host: ToolsetGateway, options: ServeOptions): Promise<Served> {
  const listener = await openListener(host, options);
  const server = await openServer(listener.handle, options.port, options.host).catch(async (error: unknown) => {
    await listener.close();
    throw error;
  });
  const { port } = server.address() as AddressInfo;
  if (!isLoopback(options.host) && !options.isGuarded)
    process.emitWarning(
      `Anyone who reaches ${options.host}:${port} can use the tools there: no "authenticate" says who may. Listen on 127.0.0.1, or say it.`,
      { type: 'ToolgateWarning' },
    );
  const name = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${name}:${port}${options.basePath.replace(/\/+$/, '')}/mcp`,
    ended: NEVER,
    async drain(ms) {
      server.close();
      await listener.drain(ms);
    },
    async close() {
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      await listener.close();
      server.closeAllConnections();
      await done;
    },
  };
}

/** Its own parsers would have read what the door is to read. */
interface Scope {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: null, body: unknown) => void) => void,
  ): void;
  route(route: {
    method: readonly string[];
    url: string;
    handler(request: { raw: Parameters<Listener['handle']>[0] }, reply: Reply): void;
  }): void;
}

interface Reply {
  readonly raw: Parameters<Listener['handle']>[1];
  hijack(): void;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

async function serveFastify(host: ToolsetGateway, options: ServeOptions, app: FastifyLike): Promise<Served> {
  const listener = await openListener(host, { ...options, host: null });
  await app.register(async (scope: Scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_, payload, done) => done(null, payload));
    for (const url of listener.paths)
      scope.route({
        method: METHODS,
        url,
        handler({ raw }, reply) {
          reply.hijack();
          listener.handle(raw, reply.raw);
        },
      });
  });
  return { url: null, ended: NEVER, drain: listener.drain, close: listener.close };
}

async function serveStdio(host: ToolsetGateway, options: ServeOptions, start: StartOptions): Promise<Served> {
  if (options.noStdio !== null) throw wrongOptions(options.noStdio);
  const { clientId = 'stdio', input = process.stdin, output = process.stdout } = start;
  await host.admissions.enter({ clientId });
  const door = openStdioDoor(host.gateway, input, output as NodeJS.WriteStream, clientId);
  return {
    url: null,
    ended: door.ended,
    async drain() {},
    async close() {
      door.close();
    },
  };
}
