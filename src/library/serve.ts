/** Opens a server with toolsets: on a port, in a Fastify app, or on standard input and output. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isLoopback } from '../base/loopback.ts';
import { listenFor, originOf } from '../doors/http/server.ts';
import { openStdioDoor } from '../doors/stdio.ts';
import { wrongOptions } from './errors.ts';
import { type HttpListenerOptions, openHttpListener } from './http.ts';
import type { ToolsetGateway } from './toolset-gateway.ts';

/** The parts of a Fastify instance that are used. */
export interface FastifyLike {
  // biome-ignore lint/suspicious/noExplicitAny: Fastify has its own types for these
  register(plugin: any, options?: any): unknown;
}

/** How a server is opened. */
export interface StartOptions {
  /** Default: `http`. */
  readonly transport?: 'http' | 'stdio';
  /** The id of the client on standard input. Default: `stdio`. */
  readonly clientId?: string;
  /** Instead of the standard input and output of the process. */
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

export interface ServeOptions extends Omit<HttpListenerOptions, 'host'> {
  readonly host: string;
  readonly port: number;
  readonly app: FastifyLike | null;
  /** Why the server cannot run on standard input; null if it can. */
  readonly noStdio: string | null;
}

export interface Served {
  /** The URL of MCP; null if the server does not listen on a port itself. */
  readonly url: string | null;
  /** Resolves when the client on standard input has disconnected. Never resolves over HTTP. */
  readonly ended: Promise<void>;
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
}

export function serve(toolsets: ToolsetGateway, options: ServeOptions, start: StartOptions): Promise<Served> {
  if (start.transport === 'stdio') return serveStdio(toolsets, options, start);
  if (start.transport !== undefined && start.transport !== 'http')
    throw wrongOptions('"transport" must be "http" or "stdio".');
  return options.app === null ? serveHttp(toolsets, options) : serveFastify(toolsets, options, options.app);
}

const NEVER = new Promise<void>(() => {});

async function serveHttp(toolsets: ToolsetGateway, options: ServeOptions): Promise<Served> {
  const { host, isGuarded } = options;
  const listener = await openHttpListener(toolsets, options);
  const { port, drain, close } = await listenFor(listener, options.port, host, 'http.port');
  if (!isLoopback(host) && !isGuarded)
    process.emitWarning(
      `Anyone who reaches ${host}:${port} can use the tools there, because there is no "authenticate". Set it, or listen on 127.0.0.1.`,
      { type: 'ToolgateWarning' },
    );
  return { url: `${originOf(host, port)}${listener.basePath}/mcp`, ended: NEVER, drain, close };
}

/** The parts that are used of the instance that Fastify passes to a plugin. */
interface FastifyScope {
  removeAllContentTypeParsers(): void;
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: null, body: unknown) => void) => void,
  ): void;
  route(route: {
    method: readonly string[];
    url: string;
    handler(request: { raw: IncomingMessage }, reply: { readonly raw: ServerResponse; hijack(): void }): void;
  }): void;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

async function serveFastify(toolsets: ToolsetGateway, options: ServeOptions, app: FastifyLike): Promise<Served> {
  const { handle, paths, drain, close } = await openHttpListener(toolsets, { ...options, host: null });
  await app.register(async (scope: FastifyScope) => {
    // Otherwise Fastify's parsers would read the body before the door does.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_, payload, done) => done(null, payload));
    for (const url of paths)
      scope.route({
        method: METHODS,
        url,
        handler({ raw }, reply) {
          reply.hijack();
          handle(raw, reply.raw);
        },
      });
  });
  return { url: null, ended: NEVER, drain, close };
}

async function serveStdio(toolsets: ToolsetGateway, options: ServeOptions, start: StartOptions): Promise<Served> {
  if (options.noStdio !== null) throw wrongOptions(options.noStdio);
  const { clientId = 'stdio', input = process.stdin, output = process.stdout } = start;
  await toolsets.admissions.enter({ clientId });
  const door = openStdioDoor(toolsets.gateway, input, output as NodeJS.WriteStream, clientId);
  return {
    url: null,
    ended: door.ended,
    async drain() {},
    async close() {
      door.close();
    },
  };
}
