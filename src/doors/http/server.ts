/** The HTTP door: one server for `/mcp` and the probes. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GatewayError, toGatewayError } from '../../errors.ts';
import type { Gateway } from '../../gateway.ts';
import { modernErrorObject } from '../../protocol/bridge.ts';
import { isParamHeader } from '../../protocol/mirror.ts';
import { errorObject, errorReply } from '../../protocol/rpc.ts';
import { readAddress } from './address.ts';
import type { Visitor } from './body.ts';
import { sendJson, sendReply } from './exchange.ts';
import { createGuard, isLoopback } from './guard.ts';
import { createMcpHandler } from './mcp.ts';
import { sendMetrics } from './metrics.ts';
import { createSessions, KEEPALIVE } from './sessions.ts';
import { createSseDoor } from './sse.ts';
import { createStateless, isModernHeader } from './stateless.ts';
import { createUnread } from './unread.ts';

export interface HttpDoorOptions {
  readonly host: string;
  readonly port: number;
  /** The credential of the agent `default`; null leaves the door open, which is allowed on loopback only. */
  readonly token: string | null;
}

export interface HttpDoor {
  readonly url: string;
  readonly port: number;
  readonly sessions: number;
  close(): Promise<void>;
}

export async function openHttpDoor(gateway: Gateway, options: HttpDoorOptions): Promise<HttpDoor> {
  const { host, port, token } = options;
  if (token === null && !isLoopback(host)) {
    throw new GatewayError(
      'listen_refused',
      `Toolgate does not listen on ${host} without a credential, because anyone there could use your tools. Set BEARER_TOKEN, or listen on 127.0.0.1.`,
    );
  }
  const guard = createGuard(() => gateway.config.http, host, token);
  const unread = createUnread(
    () => gateway.config.limits,
    (bytes) => gateway.events.emit('cut', { bytes }),
  );
  const sessions = createSessions(gateway, unread);
  const stateless = createStateless(gateway, unread);
  const sse = createSseDoor(gateway, unread, fail);
  const handleMcp = createMcpHandler(gateway, sessions, stateless, unread, fail);

  function fail(response: ServerResponse, error: unknown, admitted: readonly string[]): void {
    const known = toGatewayError(error);
    if (known.code === 'internal') gateway.events.emit('failure', { where: 'http', error });
    const headers = [...admitted];
    if (known.code === 'unauthorized') headers.push('www-authenticate', 'Bearer realm="toolgate"');
    const modern = isModernHeader(response.req.headers);
    if (known.code === 'method_not_allowed') headers.push('allow', allowed(pathOf(response.req.url ?? ''), modern));
    // Closing while the client still sends would take the answer away from it; node reads off what is left otherwise.
    const { complete, headers: asked } = response.req;
    if (!complete && !(Number(asked['content-length']) <= READ_OFF)) headers.push('connection', 'close');
    const reply = modern ? errorReply(null, modernErrorObject(known)) : errorReply('null', errorObject(known));
    sendReply(response, known.httpStatus, reply, headers);
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request.url ?? '/');
    if (path === '/health' || path === '/healthz') {
      sendJson(response, 200, { status: 'ok' });
      return;
    }
    if (path === '/ready') {
      const ready = gateway.isReady();
      sendJson(response, ready ? 200 : 503, { status: ready ? 'ready' : 'starting' });
      return;
    }
    let headers: readonly string[] = [];
    try {
      headers = guard.admit(request);
      if (request.method === 'OPTIONS' && headers.length > 0) {
        response.writeHead(204, [...headers, ...preflight(request)]).end();
        return;
      }
      const agent = guard.identify(request);
      const { path: place, toolset } = readAddress(request);
      if (toolset === null) serve(place, request, response, { agent, toolset }, headers);
      else serveWith(place, toolset, request, response, agent, headers);
    } catch (error) {
      fail(response, error, headers);
    }
  }

  function serve(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    visitor: Visitor,
    headers: readonly string[],
  ): void {
    if (path === '/mcp') handleMcp(request, response, visitor, headers);
    else if (path === '/metrics') sendMetrics(gateway, sessions.size + sse.size, request, response, headers);
    else if (path === '/sse' && gateway.config.http.sse) sse.open(request, response, visitor, headers);
    else if (path === '/messages' && gateway.config.http.sse) sse.post(request, response, visitor, headers);
    else throw new GatewayError('path_unknown', 'There is nothing here; MCP is at /mcp.');
  }

  /** For a client whose address names its toolset. */
  function serveWith(
    path: string,
    name: string,
    request: IncomingMessage,
    response: ServerResponse,
    agent: string,
    headers: readonly string[],
  ): void {
    const found = gateway.shelf.find(name).then((toolset) => {
      if (toolset === null)
        throw new GatewayError('path_unknown', `There is no toolset "${name}". Build it, or use /mcp.`);
      serve(path, request, response, { agent, toolset }, headers);
    });
    found.catch((error: unknown) => fail(response, error, headers));
  }

  const ticking = setInterval(() => {
    stateless.keepAlive();
    sse.keepAlive();
  }, KEEPALIVE);
  ticking.unref();

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
  const bound = (server.address() as AddressInfo).port;
  return {
    port: bound,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}/mcp`,
    get sessions() {
      return sessions.size + sse.size;
    },
    async close() {
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      clearInterval(ticking);
      sessions.close();
      stateless.close();
      sse.close();
      unread.close();
      server.closeAllConnections();
      await done;
    },
  };
}

/** How long a refused body may be to be read to its end. */
const READ_OFF = 64 * 1024 * 1024;

const HEADERS =
  'authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, x-toolset';

/** What a page may send. Tools choose which headers repeat their arguments, so those are allowed by their prefix. */
function preflight({ headers }: IncomingMessage): readonly string[] {
  const asked = (headers['access-control-request-headers'] ?? '').toLowerCase().split(',');
  const params = asked.map((name) => name.trim()).filter(isParamHeader);
  return [
    'access-control-allow-methods',
    'POST, GET, DELETE',
    'access-control-allow-headers',
    [HEADERS, ...params].join(', '),
    'access-control-max-age',
    '600',
  ];
}

function allowed(path: string, modern: boolean): string {
  if (path === '/sse' || path === '/metrics') return 'GET';
  return modern || path === '/messages' ? 'POST' : 'POST, GET, DELETE';
}

function pathOf(url: string): string {
  const query = url.indexOf('?');
  return query < 0 ? url : url.slice(0, query);
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `port ${port} on ${host} is in use; choose another with --port`
          : error.code === 'EACCES'
            ? `port ${port} needs more rights; choose one above 1023 with --port`
            : error.message;
      reject(new GatewayError('listen_refused', `Toolgate cannot listen: ${why}.`));
    });
    server.listen(port, host, resolve);
  });
}
