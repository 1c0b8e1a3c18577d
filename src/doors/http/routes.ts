/** The routes of the HTTP door: paths, methods and who may use them. `docs/agents.md` has the same table. */
import { GatewayError } from '../../base/errors.ts';
import { FULL_SCOPE } from '../../calls/caller.ts';
import type { HttpConfig } from '../../config/http.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { isParamHeader } from '../../protocol/param-headers.ts';
import { APPROVALS_PATH, decideApproval, listApprovals } from './admin/approvals.ts';
import { COMMANDS_PATH, runCommand } from './admin/commands.ts';
import { sendMetrics } from './admin/metrics.ts';
import { reload } from './admin/reload.ts';
import { STATUS_PATH, type StartedAs, sendStatus } from './admin/status.ts';
import { TOOLS_PATH, useTool } from './admin/tools.ts';
import { METADATA_PATH, metadataUrl, resourceMetadata } from './auth/challenge.ts';
import type { DashboardPort } from './dashboard-port.ts';
import type { LoginHandlers } from './login/login.ts';
import { LOGIN_PATH, type LoginEntrance } from './login/login-sessions.ts';
import type { SseHandlers } from './mcp/sse.ts';
import { sendDocsPage } from './rest/docs-page.ts';
import { REST_SCOPE, type RestHandlers } from './rest/rest.ts';
import type { AgentHandler, AgentRoute, OpenHandler, OpenRoute, Route, RouteTable } from './router.ts';
import { sendWelcome } from './welcome.ts';
import { sendJson } from './wire/reply.ts';

/** The handlers behind a door's routes. */
export interface DoorHandlers {
  readonly gateway: Gateway;
  /** Where the door is mounted; empty for the root. */
  readonly base: string;
  readonly mcp: AgentHandler;
  readonly sse: SseHandlers;
  readonly rest: RestHandlers;
  /** Whether `/` is the door's: the root of another program's server is not. */
  readonly ownsRoot: boolean;
  /** Whether clients need a credential. */
  needsToken(): boolean;
  /** Whether the door is draining. */
  isDraining(): boolean;
  /** The resource URL that tokens must be issued for. */
  resource(): string;
  /** The way to the pages on which people log in to servers. */
  readonly entrance: LoginEntrance;
  /** How the gateway was started, as far as the door knows. */
  readonly startedAs?: StartedAs;
  readonly dashboard: DashboardPort | null;
}

/** A route without its path, to be used at several paths. */
type Anywhere<R extends Route> = Omit<R, 'path'>;

const READ = ['GET', 'HEAD'];
const CLIENT = { access: 'agent', errors: 'rpc', scope: FULL_SCOPE } as const;

/** The headers of MCP requests. */
export const MCP_HEADERS: readonly string[] = [
  ...['authorization', 'content-type', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'],
  'last-event-id',
];

const PAGE_HEADERS: readonly string[] = [
  ...MCP_HEADERS,
  ...[
    'x-toolset',
    'x-namespace',
    'x-task',
    'x-agent-id',
    'x-request-id',
    'mcp-client-id',
    'if-none-match',
    'traceparent',
    'tracestate',
  ],
];

export function mcpRoute(handle: AgentHandler): Anywhere<AgentRoute> {
  return { methods: ['POST', 'GET', 'DELETE'], modernMethods: ['POST'], ...CLIENT, handle };
}

function sseRoute(method: string, handle: AgentHandler): Anywhere<AgentRoute> {
  return { methods: [method], ...CLIENT, isEnabled: ({ sse }) => sse, handle };
}

function restRoute(methods: readonly string[], handle: AgentHandler): Anywhere<AgentRoute> {
  return { methods, access: 'agent', errors: 'rest', scope: REST_SCOPE, handle };
}

function probe(handle: OpenHandler): Anywhere<OpenRoute> {
  return { methods: READ, access: 'open', anyHost: true, errors: 'rpc', handle };
}

export function doorRoutes(handlers: DoorHandlers): RouteTable {
  const { gateway, base, sse, rest, isDraining, resource, ownsRoot, needsToken, dashboard } = handlers;

  const mcp = mcpRoute(handlers.mcp);
  const stream = sseRoute('GET', sse.open);
  const messages = sseRoute('POST', sse.post);
  const list = restRoute(READ, rest.list);
  const tool = restRoute([...READ, 'POST'], (request, response, headers, identity, scope) =>
    (request.method === 'POST' ? rest.call : rest.definition)(request, response, headers, identity, scope),
  );
  const schema = restRoute(READ, rest.schema);
  const openApi = restRoute(READ, rest.openApi);
  // The page needs no credential, because it contains no tools: it requests the document with its reader's credential.
  const docs: Anywhere<OpenRoute> = { methods: READ, access: 'open', errors: 'rest', handle: sendDocsPage };
  const mcpo = { errors: 'mcpo', isEnabled: (config: HttpConfig) => config.mcpo } as const;

  const hasDashboard = () => dashboard !== null && gateway.config.http.dashboard;
  const welcome = { base, publicUrl: () => gateway.config.http.publicUrl, needsToken, hasDashboard };
  const message = `There is nothing here; MCP is at ${base}/mcp, tools over REST are at ${base}/tools.`;
  const root: OpenRoute = {
    path: '/',
    methods: [...READ, 'POST'],
    access: 'open',
    errors: 'rpc',
    async handle(request, response, headers) {
      // A client that was given this address for MCP has to hear the right one.
      if (request.method === 'POST' || request.headers.accept === 'text/event-stream')
        throw new GatewayError('path_unknown', message);
      if (hasDashboard() && (await dashboard!.sendPage(request, response, headers))) return;
      sendWelcome(welcome, request, response, headers);
    },
  };

  const page = { access: 'open', errors: 'rest' } as const;
  // Most gateways never show a page to log in.
  let loaded: Promise<LoginHandlers> | null = null;
  const logins = () => {
    loaded ??= import('./login/login.ts').then((module) => module.createLoginHandlers(gateway, handlers.entrance));
    return loaded;
  };
  // Other replicas may have a browser that belongs to this one.
  if (gateway.replica !== null) void logins();

  const health = probe((_, response) => sendJson(response, 200, { status: 'ok' }));
  const ready = probe((_, response) => {
    const status = isDraining() ? 'draining' : gateway.isReady() ? 'ready' : 'starting';
    sendJson(response, status === 'ready' ? 200 : 503, { status });
  });
  const metadata: Anywhere<OpenRoute> = {
    methods: READ,
    access: 'open',
    errors: 'rpc',
    isEnabled: ({ jwt }) => jwt.length > 0,
    handle(_, response, headers) {
      const body = resourceMetadata(resource(), gateway.config.http);
      sendJson(response, 200, body, [...headers, 'cache-control', 'max-age=300']);
    },
  };

  return {
    routes: [
      ...(ownsRoot ? [root] : []),
      { path: '/mcp', ...mcp },
      { path: '/mcp/t/*', ...mcp },
      { path: '/ns/*/mcp', ...mcp },
      { path: '/sse', ...stream },
      { path: '/ns/*/sse', ...stream },
      { path: '/messages', ...messages },
      { path: '/ns/*/messages', ...messages },
      { path: '/tools', ...list },
      { path: '/tools/*', ...tool },
      { path: '/tools/*/schema', ...schema },
      { path: '/namespaces', ...restRoute(READ, rest.namespaces) },
      { path: '/openapi.json', ...openApi },
      { path: '/docs', ...docs },
      { path: '/ns/*/tools', ...list },
      { path: '/ns/*/tools/*', ...tool },
      { path: '/ns/*/tools/*/schema', ...schema },
      { path: '/ns/*/openapi.json', ...openApi },
      { path: '/ns/*/docs', ...docs },
      {
        path: '/metrics',
        methods: ['GET'],
        access: 'admin',
        errors: 'rpc',
        scope: FULL_SCOPE,
        handle: (request, response, headers) => sendMetrics(gateway, request, response, headers),
      },
      {
        path: '/reload',
        methods: ['GET', 'POST'],
        access: 'operator',
        takesAgents: true,
        errors: 'rest',
        isEnabled: ({ manager }) => manager.token() !== null,
        handle: (request, response, headers) => reload(gateway, request, response, headers),
      },
      {
        path: STATUS_PATH,
        methods: READ,
        access: 'operator',
        errors: 'rpc',
        handle: (_, response, headers) => sendStatus(gateway, handlers.startedAs ?? null, response, headers),
      },
      {
        path: `${TOOLS_PATH}/*`,
        methods: ['GET', 'POST'],
        access: 'operator',
        errors: 'rest',
        handle: (request, response, headers) => useTool(gateway, request, response, headers),
      },
      {
        path: `${COMMANDS_PATH}/*`,
        methods: ['POST'],
        access: 'operator',
        errors: 'rest',
        handle: (request, response, headers) => runCommand(gateway, request, response, headers),
      },
      {
        path: APPROVALS_PATH,
        methods: ['GET'],
        access: 'operator',
        takesPeople: true,
        errors: 'rpc',
        handle: (_, response, headers) => listApprovals(gateway, response, headers),
      },
      {
        path: `${APPROVALS_PATH}/*`,
        methods: ['POST'],
        access: 'operator',
        takesPeople: true,
        errors: 'rpc',
        handle: (request, response, headers, person, visitor) =>
          decideApproval(gateway, request, response, headers, person, visitor),
      },
      {
        path: `${LOGIN_PATH}/link`,
        methods: ['POST'],
        access: 'agent',
        errors: 'rest',
        scope: FULL_SCOPE,
        handle: async (...all) => (await logins()).link(...all),
      },
      {
        path: LOGIN_PATH,
        methods: ['GET', 'POST'],
        ...page,
        handle: async (...all: Parameters<OpenHandler>) => (await logins()).page(...all),
      },
      {
        path: `${LOGIN_PATH}/callback`,
        methods: ['GET'],
        ...page,
        handle: async (...all: Parameters<OpenHandler>) => (await logins()).callback(...all),
      },
      {
        path: `${LOGIN_PATH}/client.json`,
        methods: READ,
        ...page,
        handle: async (...all: Parameters<OpenHandler>) => (await logins()).document(...all),
      },
      ...(dashboard?.routes ?? []),
      { path: '/health', ...health },
      { path: '/healthz', ...health },
      { path: '/ready', ...ready },
      { path: METADATA_PATH, ...metadata },
      { path: `${METADATA_PATH}/mcp`, ...metadata },
      { path: '/*/openapi.json', ...restRoute(READ, rest.mcpoOpenApi), ...mcpo },
      { path: '/*/docs', ...docs, ...mcpo },
      { path: '/*/*', ...restRoute(['POST'], rest.mcpoCall), ...mcpo },
    ],
    fallback: { access: 'agent', errors: 'rpc', message },
    aliasOf: (path) => (path === new URL(metadataUrl(resource())).pathname ? METADATA_PATH : null),
    readsQuery: true,
    pageHeaders: PAGE_HEADERS,
    // Tools decide which headers repeat their arguments, so these headers are allowed by prefix.
    allowsPageHeader: isParamHeader,
  };
}
