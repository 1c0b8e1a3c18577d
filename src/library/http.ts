/** The addresses of a server with toolsets: MCP by the gateway's own door, and beside it what programs ask for. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import { isLoopback } from '../base/loopback.ts';
import { type Identity, programIdentity } from '../calls/identity.ts';
import { createGuard } from '../doors/http/guard.ts';
import { pathOf } from '../doors/http/scope.ts';
import { createHttpDoor } from '../doors/http/server.ts';
import type { AdmittedClient } from './admission.ts';
import { readJson } from './body.ts';
import {
  anonymousId,
  type CustomEndpointDefinition,
  type EndpointReply,
  invalid,
  matchPath,
  runEndpoint,
} from './endpoints.ts';
import type { ToolsetGateway } from './toolset-gateway.ts';
import type { ClientRequest } from './types.ts';

export interface ListenerOptions {
  readonly basePath: string;
  /** What the server listens on; null where it is another program's. */
  readonly host: string | null;
  readonly allowedHosts: readonly string[] | 'any';
  readonly configSchema: object | null;
  readonly endpoints: readonly CustomEndpointDefinition[];
  /** Whether everything but `/healthz` wants to know who it is. */
  readonly isGuarded: boolean;
  /** How many without a session are remembered, and for how many milliseconds. */
  readonly clients: { readonly most: number; readonly ttl: number };
  /** Whether endpoints are told which toolsets their client has. */
  readonly isPermissionAware: boolean;
}

export interface Listener {
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** All paths that it answers at, with `:names` in them. */
  readonly paths: readonly string[];
  drain(ms: number): Promise<void>;
  close(): Promise<void>;
}

const OWN = ['/mcp', '/healthz', '/tools', '/.well-known/mcp-config'];

const NO_SETTINGS = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'MCP Session Configuration',
  description: 'Schema for the /mcp endpoint configuration',
  type: 'object',
  properties: {},
  required: [],
};

const ALLOWED_HEADERS =
  'authorization, content-type, mcp-client-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, mcp-toolset-permissions, last-event-id';

export async function openListener(host: ToolsetGateway, options: ListenerOptions): Promise<Listener> {
  const { endpoints, isGuarded } = options;
  /** Whose addresses were made plain for the door, as they came. */
  const came = new WeakMap<IncomingMessage, ClientRequest>();
  let isClosed = false;
  const { gateway, admissions } = host;
  const base = options.basePath.replace(/\/+$/, '');
  const guard = createGuard(() => gateway.config.http, options.host, options.allowedHosts);
  const door = await createHttpDoor(gateway, {
    basePath: base,
    allowedHosts: options.host === null ? options.allowedHosts : hostsOf(options.host, options.allowedHosts),
    forget: options.clients,
    identify(request) {
      const admission = admissions.admit(came.get(request) ?? requestOf(request));
      return admission instanceof Promise ? admission.then(identityOf) : identityOf(admission);
    },
  });

  /** The path below the base; null for one that is not. */
  function inside(url: string): string | null {
    const path = pathOf(url);
    if (path !== base && !path.startsWith(`${base}/`)) return null;
    return path.slice(base.length) || '/';
  }

  async function answer(path: string, request: IncomingMessage): Promise<EndpointReply> {
    const { method = 'GET' } = request;
    const isReading = method === 'GET' || method === 'HEAD';
    switch (path) {
      case '/healthz':
        if (isReading) return { status: 200, body: { ok: true } };
        break;
      case '/tools':
        if (isReading) return { status: 200, body: host.status(await clientOf(request)) };
        break;
      case '/.well-known/mcp-config':
        if (isReading) return { status: 200, body: options.configSchema ?? NO_SETTINGS };
        break;
      default:
        return custom(path, request);
    }
    throw new GatewayError('method_not_allowed', 'Only GET can be used here.');
  }

  /** What somebody has who says who it is; null for others. */
  async function clientOf(request: IncomingMessage): Promise<AdmittedClient['client']> {
    const known = await admissions.identify(requestOf(request));
    if (known === null) return null;
    const { client } = await admissions.enter(known, requestOf(request));
    return client;
  }

  async function custom(path: string, request: IncomingMessage): Promise<EndpointReply> {
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    for (const endpoint of endpoints) {
      const params = endpoint.method === method ? matchPath(endpoint.path, path) : null;
      if (params !== null) return run(endpoint, params, request);
    }
    const isThere = endpoints.some((one) => matchPath(one.path, path) !== null);
    if (isThere) throw new GatewayError('method_not_allowed', 'This method cannot be used here.');
    throw new GatewayError('path_unknown', `There is nothing here; MCP is at ${base}/mcp.`);
  }

  async function run(
    endpoint: CustomEndpointDefinition,
    params: Record<string, string>,
    request: IncomingMessage,
  ): Promise<EndpointReply> {
    const asked = requestOf(request);
    const isOpen = isGuarded && endpoint.isPublic === true;
    const known = isOpen ? null : await admissions.identify(asked);
    const body = await readJson(request, gateway.config.limits.body);
    if (body instanceof SyntaxError) return invalid('body', [{ message: body.message, path: [] }]);
    const clientId = known?.clientId ?? anonymousId();
    const more = options.isPermissionAware ? await permissionsOf(known ?? { clientId }, asked) : {};
    const query = queryOf(request.url ?? '/');
    return runEndpoint(endpoint, { body, query, params, headers: request.headers, clientId, more }, (error) =>
      gateway.events.emit('failure', { where: `${endpoint.method} ${endpoint.path}`, error }),
    );
  }

  async function permissionsOf(known: { readonly clientId: string }, asked: ClientRequest) {
    const { client } = await admissions.enter(known, asked);
    return { allowedToolsets: [...(client?.active ?? [])], failedToolsets: [...(client?.failed ?? [])] };
  }

  function fail(response: ServerResponse, error: unknown, headers: readonly string[]): void {
    const known = toGatewayError(error);
    if (known.code === 'internal') gateway.events.emit('failure', { where: 'http', error });
    gateway.events.emit('sent_away', { code: known.code });
    const challenge = known.code === 'unauthorized' ? ['www-authenticate', 'Bearer'] : [];
    send(response, { status: known.httpStatus, body: known.body }, [...headers, ...challenge]);
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const path = inside(request.url ?? '/');
    if (isClosed) {
      fail(response, new GatewayError('source_unavailable', 'The server is closed.'), []);
      return;
    }
    if (path === '/mcp' && request.method !== 'OPTIONS') {
      // What stands in the address is for us; the door has other words there.
      if (request.url!.includes('?')) came.set(request, requestOf(request));
      request.url = `${base}/mcp`;
      door.handle(request, response);
      return;
    }
    let headers: readonly string[] = [];
    try {
      headers = guard.admit(request);
      if (request.method === 'OPTIONS') {
        response.writeHead(204, [...headers, ...preflight(request)]).end();
        return;
      }
      if (path === null) throw new GatewayError('path_unknown', `There is nothing here; MCP is at ${base}/mcp.`);
      const type = path === '/.well-known/mcp-config' ? 'application/schema+json; charset=utf-8' : undefined;
      answer(path, request).then(
        (reply) => send(response, reply, headers, type),
        (error: unknown) => fail(response, error, headers),
      );
    } catch (error) {
      fail(response, error, headers);
    }
  }

  return {
    handle,
    paths: [...OWN, ...new Set(endpoints.map(({ path }) => path))].map((path) => `${base}${path}`),
    drain: door.drain,
    close() {
      isClosed = true;
      return door.close();
    },
  };
}

function requestOf({ method = 'GET', url = '/', headers }: IncomingMessage): ClientRequest {
  return { method, url, headers };
}

function identityOf({ clientId, principal, expires }: AdmittedClient): Identity {
  return programIdentity(clientId, principal, expires);
}

/** Beyond loopback the names by which it is reached are not ours to know, unless they are listed. */
function hostsOf(host: string, allowed: readonly string[] | 'any'): readonly string[] | 'any' {
  if (allowed === 'any' || allowed.length > 0) return allowed;
  return isLoopback(host) ? [host] : 'any';
}

function preflight({ headers }: IncomingMessage): readonly string[] {
  const asked = (headers['access-control-request-headers'] ?? '').toLowerCase().split(',');
  const more = asked.map((name) => name.trim()).filter((name) => /^(mcp-param-|x-)[\w-]+$/.test(name));
  return [
    'access-control-allow-methods',
    'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers',
    [ALLOWED_HEADERS, ...more].join(', '),
    'access-control-max-age',
    '600',
  ];
}

/** One that is there several times is a list. */
function queryOf(url: string): Record<string, unknown> {
  const at = url.indexOf('?');
  if (at < 0) return {};
  const query = new URLSearchParams(url.slice(at + 1));
  return Object.fromEntries(
    [...new Set(query.keys())].map((key) => {
      const all = query.getAll(key);
      return [key, all.length === 1 ? all[0] : all];
    }),
  );
}

function send(response: ServerResponse, { status, body }: EndpointReply, headers: readonly string[], type?: string) {
  if (response.headersSent) return;
  const text = body === undefined ? '' : JSON.stringify(body);
  const isEmpty = text === undefined || text === '';
  response.writeHead(isEmpty && status === 200 ? 204 : status, [
    ...headers,
    ...(isEmpty ? [] : ['content-type', type ?? 'application/json; charset=utf-8']),
  ]);
  response.end(isEmpty || response.req.method === 'HEAD' ? undefined : text);
}
