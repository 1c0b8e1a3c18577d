/** A server with toolsets over HTTP: the gateway's HTTP door with other routes, among them the program's endpoints. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { GatewayError } from '../base/errors.ts';
import { type Identity, programIdentity } from '../calls/identity.ts';
import { type HttpDoor, makeDoor } from '../doors/http/door.ts';
import { type FetchHandler, fetchHandler } from '../doors/http/mount/fetch.ts';
import { pathOf, readBasePath } from '../doors/http/path.ts';
import { type OpenHandler, type OpenRoute, paramsOf, type Route, type RouteTable } from '../doors/http/router.ts';
import { MCP_HEADERS, mcpRoute } from '../doors/http/routes.ts';
import { readJson } from '../doors/http/wire/body.ts';
import { sendText } from '../doors/http/wire/reply.ts';
import type { AdmittedClient } from './admission.ts';
import {
  anonymousId,
  type CustomEndpointDefinition,
  type EndpointReply,
  invalid,
  RESERVED_PATHS,
  runEndpoint,
} from './endpoints.ts';
import type { ToolsetGateway } from './toolset-gateway.ts';
import type { ClientRequest } from './types.ts';

export interface HttpListenerOptions {
  readonly basePath: string;
  /** The address that the server listens on; null if it is part of another server. */
  readonly host: string | null;
  readonly allowedHosts: readonly string[] | 'any';
  readonly configSchema: object | null;
  readonly endpoints: readonly CustomEndpointDefinition[];
  /** Whether `authenticate` is set. Then endpoints that are not public need a client that it recognizes. */
  readonly isGuarded: boolean;
  /** How many clients without a session are remembered, and for how many milliseconds. */
  readonly clients: { readonly most: number; readonly ttl: number };
  /** Whether endpoints receive the toolsets of their client. */
  readonly isPermissionAware: boolean;
}

export interface HttpListener extends Pick<HttpDoor, 'handle' | 'basePath' | 'drain' | 'close'> {
  /** All paths that it answers, with parameters such as `:id`. */
  readonly paths: readonly string[];
  /** The same for servers with `fetch` handlers. */
  readonly fetch: FetchHandler;
}

const NO_SETTINGS = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'MCP Session Configuration',
  description: 'Schema for the /mcp endpoint configuration',
  type: 'object',
  properties: {},
  required: [],
};

const [MCP_PATH, HEALTH_PATH, TOOLS_PATH, CONFIG_PATH] = RESERVED_PATHS;
const JSON_TYPE = 'application/json; charset=utf-8';

export async function openHttpListener(toolsets: ToolsetGateway, options: HttpListenerOptions): Promise<HttpListener> {
  const { gateway, admissions } = toolsets;
  const { host, allowedHosts, clients, endpoints } = options;
  const base = readBasePath(options.basePath);
  const routes: Route[] = [
    reading(HEALTH_PATH, () => ({ ok: true })),
    reading(TOOLS_PATH, async (request) => toolsets.status(await clientOf(request))),
    reading(CONFIG_PATH, () => options.configSchema ?? NO_SETTINGS, 'application/schema+json; charset=utf-8'),
    ...endpoints.map(endpointRoute),
  ];
  const table: Omit<RouteTable, 'routes'> = {
    fallback: { access: 'open', errors: 'rest', message: `There is nothing here; MCP is at ${base}/mcp.` },
    readsQuery: false,
    pageHeaders: [...MCP_HEADERS, 'mcp-client-id', 'mcp-toolset-permissions'],
    allowsPageHeader: (name) => /^(mcp-param-|x-)[\w-]+$/.test(name),
  };
  const door = await makeDoor(
    gateway,
    {
      basePath: base,
      allowedHosts,
      forget: clients,
      identify(request) {
        const admitted = admissions.admit(requestOf(request));
        return admitted instanceof Promise ? admitted.then(identityOf) : identityOf(admitted);
      },
    },
    { host, origin: () => 'http://localhost', refusal: () => null },
    ({ mcp }) => ({ ...table, routes: [{ path: MCP_PATH, ...mcpRoute(mcp) }, ...routes] }),
  );

  /** The request as the client sent it: the door has removed the base path from its URL. */
  function requestOf({ method = 'GET', url = '/', headers }: IncomingMessage): ClientRequest {
    return { method, url: base + url, headers };
  }

  /** The client, if the request names one. */
  async function clientOf(request: IncomingMessage): Promise<AdmittedClient['client']> {
    const asked = requestOf(request);
    const known = await admissions.identify(asked);
    return known === null ? null : (await admissions.enter(known, asked)).client;
  }

  function endpointRoute(endpoint: CustomEndpointDefinition): OpenRoute {
    const { method, path } = endpoint;
    return {
      path,
      methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
      access: 'open',
      errors: 'rest',
      sharesPath: true,
      async handle(request, response, headers) {
        await send(response, await run(endpoint, request), headers);
      },
    };
  }

  async function run(endpoint: CustomEndpointDefinition, request: IncomingMessage): Promise<EndpointReply> {
    const { method, path, isPublic } = endpoint;
    const { url = '/', headers } = request;
    const asked = requestOf(request);
    const known = options.isGuarded && isPublic === true ? null : await admissions.identify(asked);
    const { limits } = gateway.config;
    let body: unknown;
    try {
      body = method === 'GET' ? undefined : await readJson(request, limits.body, limits.depth);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'parse') throw error;
      return invalid('body', [{ message: error.message, path: [] }]);
    }
    const clientId = known?.clientId ?? anonymousId();
    const more = options.isPermissionAware ? await permissionsOf(known ?? { clientId }, asked) : {};
    const params = paramsOf(path, pathOf(url));
    return runEndpoint(endpoint, { body, query: queryOf(url), params, headers, clientId, more }, (error) =>
      gateway.events.emit('failure', { where: `${method} ${path}`, error }),
    );
  }

  async function permissionsOf(known: { readonly clientId: string }, asked: ClientRequest) {
    const { client } = await admissions.enter(known, asked);
    return { allowedToolsets: [...(client?.active ?? [])], failedToolsets: [...(client?.failed ?? [])] };
  }

  return {
    handle: door.handle,
    fetch: fetchHandler(door),
    basePath: base,
    paths: [...new Set([MCP_PATH, ...routes.map(({ path }) => path)])].map((path) => `${base}${path}`),
    drain: door.drain,
    close: door.close,
  };
}

/** A route that is open to everyone. */
function reading(path: string, answer: (request: IncomingMessage) => unknown, type = JSON_TYPE): OpenRoute {
  const handle: OpenHandler = async (request, response, headers) =>
    sendText(response, 200, type, JSON.stringify(await answer(request)), headers);
  return { path, methods: ['GET', 'HEAD'], access: 'open', errors: 'rest', handle };
}

function identityOf({ clientId, principal, expires }: AdmittedClient): Identity {
  return programIdentity(clientId, principal, expires);
}

/** A parameter that occurs several times becomes a list. */
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

/** An endpoint that returns nothing answers 204. */
async function send(response: ServerResponse, reply: EndpointReply, headers: readonly string[]): Promise<void> {
  if ('response' in reply) return sendResponse(response, reply.response, headers);
  const text: string | undefined = JSON.stringify(reply.body);
  if (text !== undefined) sendText(response, reply.status, JSON_TYPE, text, headers);
  else if (!response.headersSent) response.writeHead(204, [...headers]).end();
}

/** What the endpoint answered itself: its status, its headers, and its body as it comes. */
async function sendResponse(response: ServerResponse, given: Response, headers: readonly string[]): Promise<void> {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(given.status, [...headers, ...[...given.headers].flat()]);
  if (given.body === null) response.end();
  // The client may leave before the end, which is nobody's fault.
  else await pipeline(Readable.fromWeb(given.body as WebStream), response).catch(() => {});
}
