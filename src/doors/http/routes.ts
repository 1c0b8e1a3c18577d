/** Everything that can be asked for over HTTP: where, how, by whom. Dispatch, `Allow` and CORS follow this one table. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpConfig } from '../../config/config.ts';
import type { Gateway } from '../../gateway-types.ts';
import { toBytes } from '../../protocol/json.ts';
import { APPROVALS_PATH, decideApproval, listApprovals } from './approvals.ts';
import { sendJson, sendReply } from './exchange.ts';
import type { McpHandler } from './mcp.ts';
import { sendMetrics } from './metrics.ts';
import { METADATA_PATH, resourceMetadata } from './resource.ts';
import type { SseDoor } from './sse.ts';
import type { Visitor } from './visitor.ts';

/** The parts of the door that routes lead to. */
export interface Parts {
  readonly gateway: Gateway;
  readonly sse: SseDoor;
  readonly mcp: McpHandler;
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
    visitor: Visitor,
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

const mcp: GuardedRoute['handle'] = (parts, request, response, headers, visitor) =>
  parts.mcp(request, response, visitor, headers);

const openStream: GuardedRoute['handle'] = ({ sse }, request, response, headers, visitor) =>
  sse.open(request, response, visitor, headers);

const postMessage: GuardedRoute['handle'] = ({ sse }, request, response, headers, visitor) =>
  sse.post(request, response, visitor, headers);

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

/** `*` stands for anything. */
export const ROUTES: readonly Route[] = [
  { path: '/mcp', ...MCP },
  { path: '/mcp/t/*', ...MCP },
  { path: '/ns/*/mcp', ...MCP },
  { path: '/sse', ...STREAM },
  { path: '/ns/*/sse', ...STREAM },
  { path: '/messages', ...MESSAGES },
  { path: '/ns/*/messages', ...MESSAGES },
  {
    path: '/metrics',
    methods: ['GET'],
    access: 'admin',
    handle: ({ gateway }, request, response, headers) => sendMetrics(gateway, request, response, headers),
  },
  { path: APPROVALS_PATH, methods: ['GET'], access: 'operator', handle: listApprovals },
  { path: `${APPROVALS_PATH}/*`, methods: ['POST'], access: 'operator', handle: decideApproval },
  { path: '/health', ...PROBE, handle: health },
  { path: '/healthz', ...PROBE, handle: health },
  { path: '/ready', ...PROBE, handle: ready },
  { path: METADATA_PATH, ...METADATA },
  { path: `${METADATA_PATH}/mcp`, ...METADATA },
];

const exact = new Map(ROUTES.map((route) => [route.path, route]));
const open = ROUTES.filter(({ path }) => path.includes('*')).map((route) => {
  const [start = '', end = ''] = route.path.split('*');
  return { start, end, route };
});

export function findRoute(path: string): Route | undefined {
  const known = exact.get(path);
  if (known !== undefined) return known;
  return open.find(({ start, end }) => path.startsWith(start) && path.slice(start.length).endsWith(end))?.route;
}
