/** Everything that can be asked for over HTTP: where, how, by whom. Dispatch, `Allow` and CORS follow this one table. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import type { HttpConfig } from '../../config/config.ts';
import type { Gateway } from '../../gateway/types.ts';
import { toBytes } from '../../protocol/json.ts';
import { isParamHeader } from '../../protocol/param-headers.ts';
import { APPROVALS_PATH, decideApproval, listApprovals } from './admin/approvals.ts';
import { sendMetrics } from './admin/metrics.ts';
import { reload } from './admin/reload.ts';
import { METADATA_PATH, resourceMetadata } from './auth/challenge.ts';
import type { McpHandler } from './mcp/mcp.ts';
import type { SseHandlers } from './mcp/sse.ts';
import { sendDocsPage } from './rest/docs-page.ts';
import type { Rest, RestHandler } from './rest/rest.ts';
import { pathOf } from './scope.ts';
import { sendJson, sendReply } from './wire/reply.ts';

/** The parts of the door that routes lead to. */
export interface Parts {
  readonly gateway: Gateway;
  readonly sse: SseHandlers;
  readonly mcp: McpHandler;
  readonly rest: Rest;
  /** Answers with an error. */
  fail(response: ServerResponse, error: unknown, headers: readonly string[]): void;
  /** Whether the door is about to close. */
  isDraining(): boolean;
  /** The address that tokens are made out to. */
  resource(): string;
}

/**
 * Anybody; whoever is let in; those of them that `http.admins` names; whoever has the operator's key. Without any credential
 * all are let in everywhere but there.
 */
export type Access = 'open' | 'agent' | 'admin' | 'operator';

interface Place {
  readonly path: string;
  readonly methods: readonly string[];
  /** How errors are told: as JSON-RPC where this is absent, as plain objects over REST, and as mcpo does with addresses of its kind. */
  readonly style?: 'rest' | 'mcpo';
  /** Absent: always. */
  readonly isThere?: (config: HttpConfig) => boolean;
}

interface OpenRoute extends Place {
  readonly access: 'open';
  /** Whether it answers by whatever name it is called: probes come by address. */
  readonly anyHost: boolean;
  readonly handle: (
    parts: Parts,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
  ) => void;
}

interface GuardedRoute extends Place {
  readonly access: 'agent' | 'admin';
  readonly handle: (
    parts: Parts,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
    identity: Identity,
    scope: Scope,
  ) => void;
}

interface OperatorRoute extends Place {
  readonly access: 'operator';
  readonly handle: (
    gateway: Gateway,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
  ) => void | Promise<void>;
}

export type Route = OpenRoute | GuardedRoute | OperatorRoute;

const PROBE = { methods: ['GET', 'HEAD'], access: 'open', anyHost: true } as const;

const health: OpenRoute['handle'] = (_parts, _request, response) => sendJson(response, 200, { status: 'ok' });

const ready: OpenRoute['handle'] = ({ gateway, isDraining }, _request, response) => {
  const status = isDraining() ? 'draining' : gateway.isReady() ? 'ready' : 'starting';
  sendJson(response, status === 'ready' ? 200 : 503, { status });
};

const mcp: GuardedRoute['handle'] = (parts, request, response, headers, identity, scope) =>
  parts.mcp(request, response, identity, scope, headers);

const openStream: GuardedRoute['handle'] = ({ sse }, request, response, headers, identity, scope) =>
  sse.open(request, response, identity, scope, headers);

const postMessage: GuardedRoute['handle'] = ({ sse }, request, response, headers, identity, scope) =>
  sse.post(request, response, identity, scope, headers);

const metadata: OpenRoute['handle'] = ({ gateway, resource }, _request, response, headers) => {
  const body = toBytes(resourceMetadata(resource(), gateway.config.http));
  sendReply(response, 200, { head: '', body, tail: '' }, [...headers, 'cache-control', 'max-age=300']);
};

const METADATA = {
  methods: ['GET', 'HEAD'],
  access: 'open',
  anyHost: false,
  isThere: ({ jwt }: HttpConfig) => jwt !== null,
  handle: metadata,
} as const;

const MCP = { methods: ['POST', 'GET', 'DELETE'], access: 'agent', handle: mcp } as const;
const SSE = { access: 'agent', isThere: ({ sse }: HttpConfig) => sse } as const;

const STREAM = { methods: ['GET'], ...SSE, handle: openStream } as const;
const MESSAGES = { methods: ['POST'], ...SSE, handle: postMessage } as const;

const READ = ['GET', 'HEAD'];

function rest(pick: (rest: Rest) => RestHandler): Pick<GuardedRoute, 'access' | 'style' | 'handle'> {
  return {
    access: 'agent',
    style: 'rest',
    handle: (parts, request, response, headers, identity, scope) =>
      pick(parts.rest)(request, response, identity, scope, headers),
  };
}

const LIST = { methods: READ, ...rest(({ list }) => list) };
const TOOL = { methods: [...READ, 'POST'], ...rest(({ tool }) => tool) };
const SCHEMA = { methods: READ, ...rest(({ schema }) => schema) };
const OPENAPI = { methods: READ, ...rest(({ openApi }) => openApi) };
// The page has nothing in it: it asks for the document as whoever reads it.
const DOCS = { methods: READ, access: 'open', anyHost: false, style: 'rest', handle: sendDocsPage } as const;

const MCPO = { style: 'mcpo', isThere: ({ mcpo }: HttpConfig) => mcpo } as const;

/** `*` stands for any one part of a path. The first that fits counts. */
export const ROUTES: readonly Route[] = [
  { path: '/mcp', ...MCP },
  { path: '/mcp/t/*', ...MCP },
  { path: '/ns/*/mcp', ...MCP },
  { path: '/sse', ...STREAM },
  { path: '/ns/*/sse', ...STREAM },
  { path: '/messages', ...MESSAGES },
  { path: '/ns/*/messages', ...MESSAGES },
  { path: '/tools', ...LIST },
  { path: '/tools/*', ...TOOL },
  { path: '/tools/*/schema', ...SCHEMA },
  { path: '/namespaces', methods: READ, ...rest(({ namespaces }) => namespaces) },
  { path: '/openapi.json', ...OPENAPI },
  { path: '/docs', ...DOCS },
  { path: '/ns/*/tools', ...LIST },
  { path: '/ns/*/tools/*', ...TOOL },
  { path: '/ns/*/tools/*/schema', ...SCHEMA },
  { path: '/ns/*/openapi.json', ...OPENAPI },
  { path: '/ns/*/docs', ...DOCS },
  {
    path: '/metrics',
    methods: ['GET'],
    access: 'admin',
    handle: ({ gateway }, request, response, headers) => sendMetrics(gateway, request, response, headers),
  },
  {
    path: '/reload',
    methods: ['POST'],
    access: 'agent',
    isThere: ({ manager }) => manager.token() !== null,
    handle: ({ gateway, fail }, request, response, headers) =>
      void reload(gateway, request, response, headers).catch((error: unknown) => fail(response, error, headers)),
  },
  { path: APPROVALS_PATH, methods: ['GET'], access: 'operator', handle: listApprovals },
  { path: `${APPROVALS_PATH}/*`, methods: ['POST'], access: 'operator', handle: decideApproval },
  { path: '/health', ...PROBE, handle: health },
  { path: '/healthz', ...PROBE, handle: health },
  { path: '/ready', ...PROBE, handle: ready },
  { path: METADATA_PATH, ...METADATA },
  { path: `${METADATA_PATH}/mcp`, ...METADATA },
  { path: '/*/openapi.json', methods: READ, ...rest(({ shortOpenApi }) => shortOpenApi), ...MCPO },
  { path: '/*/docs', ...DOCS, ...MCPO },
  { path: '/*/*', methods: ['POST'], ...rest(({ short }) => short), ...MCPO },
];

const exact = new Map(ROUTES.map((route) => [route.path, route]));
const open = ROUTES.filter(({ path }) => path.includes('*')).map((route) => {
  const [start = ''] = route.path.split('*');
  return { start, parts: route.path.split('/'), route };
});

// Clients call the same tools again and again.
const MOST_FOUND = 1_000;
const LONGEST_FOUND = 200;
const found = new Map<string, Route>();

export function findRoute(path: string): Route | undefined {
  const known = exact.get(path) ?? found.get(path);
  if (known !== undefined) return known;
  const asked = path.split('/');
  const route = open.find(({ start, parts }) => path.startsWith(start) && fits(parts, asked))?.route;
  if (route === undefined || path.length > LONGEST_FOUND) return route;
  if (found.size >= MOST_FOUND) found.clear();
  found.set(path, route);
  return route;
}

function fits(parts: readonly string[], asked: readonly string[]): boolean {
  // Well-known places are nobody's namespace.
  if (parts[1] === '*' && asked[1]?.startsWith('.')) return false;
  return (
    parts.length === asked.length && parts.every((part, i) => (part === '*' ? asked[i] !== '' : part === asked[i]))
  );
}

const HEADERS =
  'authorization, content-type, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name, last-event-id, x-toolset, x-namespace, x-task, x-agent-id, x-request-id, if-none-match, traceparent, tracestate';

/** What a page may send. Tools choose which headers repeat their arguments, so those are allowed by their prefix. */
export function preflight({ methods }: Route, { headers }: IncomingMessage): readonly string[] {
  const asked = (headers['access-control-request-headers'] ?? '').toLowerCase().split(',');
  const params = asked.map((name) => name.trim()).filter(isParamHeader);
  return [
    'access-control-allow-methods',
    methods.join(', '),
    'access-control-allow-headers',
    [HEADERS, ...params].join(', '),
    'access-control-max-age',
    '600',
  ];
}

export function allowed({ url = '/' }: IncomingMessage, modern: boolean): string {
  const { methods = [], path = '' } = findRoute(pathOf(url)) ?? {};
  return modern && /^\/(ns\/\*\/)?mcp/.test(path) ? 'POST' : methods.join(', ');
}
