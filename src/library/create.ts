/** Servers with toolsets, as programs make them: one whose clients choose, or have what all have, and one that gives each its own. */
import type { RequestListener } from 'node:http';
import type { Gateway } from '../gateway/types.ts';
import type { ToolsetClient } from './clients.ts';
import { checkEndpoints } from './endpoints.ts';
import { wrongOptions } from './errors.ts';
import { checkPolicy } from './exposure.ts';
import type { Listener } from './http.ts';
import { follow } from './logger.ts';
import { type MountableServer, type MountOptions, mount } from './mount.ts';
import type { CreateMcpServerOptions, CreatePermissionBasedMcpServerOptions } from './options.ts';
import { checkPermissions } from './permissions.ts';
import type { Served, ServeOptions, StartOptions } from './serve.ts';
import { readServerInfo } from './server-info.ts';
import { checkSessionContext } from './session-context.ts';
import type { ToolsetStatus } from './status.ts';
import { openToolsetGateway, type ToolsetGateway, type ToolsetGatewayOptions } from './toolset-gateway.ts';
import type { AuthenticatedClient } from './types.ts';

/** A server that was made: to start, to look at, to close. */
export interface McpServerHandle<Server = unknown> {
  /** What `createServer` gave. */
  readonly server: Server;
  /** Opens the server: on its port, in the `app` that it was given, or on standard input and output. */
  start(options?: StartOptions): Promise<void>;
  /** Ends it, after what is under way has had so many milliseconds. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
  /** Where MCP is, once it has started on a port. */
  readonly url: string | null;
  /** Resolves when the client on standard input has gone. */
  readonly ended: Promise<void>;
  /** The engine: events, figures, middleware. */
  readonly gateway: Gateway;
  /** Lets somebody in whom the program knows, for doors of its own. `principal` and `agent` are for `gateway.join`. */
  admit(client: AuthenticatedClient): Promise<{ readonly agent: string; readonly principal: string }>;
  /**
   * Puts the toolsets beside the tools of a server of the official SDK, before that is connected. Any number of servers may
   * have them: one for each connection, say.
   *
   * @example
   * toolsets.mount(server, { clientId: 'alice' });
   * await server.connect(transport);
   */
  mount(server: MountableServer, options?: MountOptions): void;
  /** All its addresses as one function, for a server of `node:http`, Express or others that have not read the body yet. */
  handler(): Promise<RequestListener>;
  /** What all have, or what a client has. */
  status(clientId?: string): Promise<ToolsetStatus>;
  /** Switches a toolset on or off for a client, as the meta-tools do for themselves. Rejects with a `ToolingError`. */
  enableToolset(clientId: string, toolset: string): Promise<ToolsetStatus>;
  disableToolset(clientId: string, toolset: string): Promise<ToolsetStatus>;
}

type ServerOf<Options> = Options extends { readonly createServer: () => infer Server } ? Server : null;

/**
 * An MCP server over a catalog of toolsets. Clients switch them on and off by meta-tools, each for itself (`DYNAMIC`), or
 * all have the same from the start (`STATIC`).
 *
 * @example
 * const { start, close } = await createMcpServer({
 *   catalog: {
 *     math: { name: 'Math', description: 'Sums', tools: [defineTool({
 *       name: 'add',
 *       description: 'Adds two numbers.',
 *       inputSchema: z.object({ a: z.number(), b: z.number() }),
 *       execute: ({ a, b }) => a + b,
 *     })] },
 *   },
 *   http: { port: 3000 },
 * });
 * await start();
 */
export async function createMcpServer<const Options extends CreateMcpServerOptions>(
  options: Options & CreateMcpServerOptions,
): Promise<McpServerHandle<ServerOf<Options>>> {
  const fixed = fixedToolsets(options);
  const handle = await open(options, { fixed, permissions: null, hasMetaTools: options.registerMetaTools !== false });
  return handle as McpServerHandle<ServerOf<Options>>;
}

/**
 * An MCP server that gives each client the toolsets that it may use: those that a header of a trusted proxy names, or those
 * that the program says. There is nothing for clients to switch.
 *
 * @example
 * const { start } = await createPermissionBasedMcpServer({
 *   catalog: { admin: { name: 'Admin', description: 'For admins', tools: [] } },
 *   permissions: { source: 'config', resolver: async (clientId) => (await lookUp(clientId)).toolsets },
 *   authenticate: async ({ headers }) => verify(headers.authorization),
 * });
 * await start();
 */
export async function createPermissionBasedMcpServer<const Options extends CreatePermissionBasedMcpServerOptions>(
  options: Options & CreatePermissionBasedMcpServerOptions,
): Promise<McpServerHandle<ServerOf<Options>>> {
  const permissions = checkPermissions(options?.permissions);
  if (options.startup !== undefined)
    throw wrongOptions('"startup" has no place here: which toolsets a client has is what "permissions" says.');
  const ignored = ['maxActiveToolsets', 'allowlist', 'denylist', 'onLimitExceeded'] as const;
  const { exposurePolicy = {} } = options;
  for (const key of ignored)
    if (exposurePolicy[key] !== undefined)
      warn(`exposurePolicy.${key} is ignored: which toolsets a client has is what "permissions" says.`);
  const { namespaceToolsWithSetKey } = exposurePolicy;
  const policy = namespaceToolsWithSetKey === undefined ? {} : { namespaceToolsWithSetKey };
  const handle = await open(
    { ...options, exposurePolicy: policy },
    { fixed: null, permissions, hasMetaTools: options.registerMetaTools === true },
  );
  return handle as McpServerHandle<ServerOf<Options>>;
}

/**
 * Toolsets beside the tools that a server of the official SDK already has, v1 or v2. The same as `createMcpServer`, and then
 * `mount`, of what that gives.
 *
 * @example
 * const server = new McpServer({ name: 'mine', version: '1.0.0' });
 * await mountToolsets(server, { catalog });
 * await server.connect(new StdioServerTransport());
 */
export async function mountToolsets(
  server: MountableServer,
  options: Omit<CreateMcpServerOptions, 'http' | 'createServer' | 'serverInfo'> & MountOptions,
): Promise<McpServerHandle<null>> {
  const { clientId, toolsets, toolsChanged, ...rest } = options;
  const handle = await createMcpServer<CreateMcpServerOptions>(rest);
  try {
    handle.mount(server, {
      ...(clientId !== undefined && { clientId }),
      ...(toolsets !== undefined && { toolsets }),
      ...(toolsChanged !== undefined && { toolsChanged }),
    });
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle as McpServerHandle<null>;
}

type Chosen = Pick<ToolsetGatewayOptions, 'fixed' | 'permissions' | 'hasMetaTools'>;

const HOUR = 3_600_000;
const FIVE_MINUTES = 300_000;

async function open(options: Omit<CreateMcpServerOptions, 'startup'>, chosen: Chosen): Promise<McpServerHandle> {
  const { http = {}, exposurePolicy = {}, sessionContext, authenticate, createServer, clients: memory = {} } = options;
  checkPolicy(exposurePolicy);
  if (sessionContext !== undefined) checkSessionContext(sessionContext);
  checkEndpoints(http.customEndpoints ?? []);
  if (authenticate !== undefined && typeof authenticate !== 'function')
    throw wrongOptions('"authenticate" must be a function.');
  if (createServer !== undefined && typeof createServer !== 'function')
    throw wrongOptions('"createServer" must be a function that gives a server.');
  const server = createServer?.() ?? null;
  const clients = { most: memory.most ?? 1_000, ttl: memory.ttlMs ?? HOUR };
  const host = await openToolsetGateway({
    catalog: options.catalog,
    moduleLoaders: options.moduleLoaders ?? {},
    policy: exposurePolicy,
    context: options.context,
    // What all have is there before anybody could say anything.
    sessionContext: chosen.fixed === null ? (sessionContext ?? null) : null,
    authenticate: authenticate ?? null,
    introduced: readServerInfo(options.serverInfo, server),
    settings: options.settings ?? {},
    http: { maxSessions: clients.most, sessionTtl: clients.ttl, allowedOrigins: originsOf(http.cors), sse: false },
    clients,
    callTimeoutMs: options.callTimeoutMs ?? FIVE_MINUTES,
    ...chosen,
  });
  const stopLog = follow(host.gateway.events, http.logger ?? false);
  const serving: ServeOptions = {
    host: http.host ?? '127.0.0.1',
    port: http.port ?? 3_000,
    basePath: http.basePath ?? '/',
    app: http.app ?? null,
    // Whoever knows a credential is no page that came by another name.
    allowedHosts: http.allowedHosts ?? (authenticate === undefined ? [] : 'any'),
    configSchema: options.configSchema ?? null,
    endpoints: http.customEndpoints ?? [],
    isGuarded: authenticate !== undefined,
    isPermissionAware: chosen.permissions !== null,
    clients,
    noStdio:
      chosen.permissions?.source === 'headers'
        ? 'Permissions come from headers here, and there are none on standard input. Take them from "config".'
        : null,
  };
  return handleOf(host, server, serving, stopLog);
}

function handleOf(host: ToolsetGateway, server: unknown, serving: ServeOptions, stopLog: () => void): McpServerHandle {
  let served: Promise<Served> | null = null;
  let transport: StartOptions['transport'];
  let url: string | null = null;
  let closing: Promise<void> | null = null;
  let listener: Promise<Listener> | null = null;
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });

  async function admit(client: AuthenticatedClient): Promise<{ readonly agent: string; readonly principal: string }> {
    const { clientId, principal } = await host.admissions.enter(client);
    return { agent: clientId, principal };
  }

  /** The client, where it has something to switch. */
  async function switching(clientId: string): Promise<ToolsetClient> {
    const { client } = await host.admissions.enter({ clientId });
    if (client !== null && host.switches) return client;
    throw wrongOptions('There is nothing to switch here: which toolsets clients have is decided by the options.');
  }

  async function shut(drainMs: number): Promise<void> {
    const opened = await served?.catch(() => null);
    if (drainMs > 0) await opened?.drain(drainMs);
    await opened?.close();
    await (await listener?.catch(() => null))?.close();
    await host.close();
    stopLog();
    end();
  }

  return {
    server,
    gateway: host.gateway,
    ended,
    get url() {
      return url;
    },
    async start(options = {}) {
      if (closing !== null) throw wrongOptions('The server is closed. Create another.');
      if (served !== null && options.transport !== transport)
        throw wrongOptions('The server has started already, on another transport. Create another.');
      transport = options.transport;
      // Loaded here: who only mounts toolsets, or calls a gateway, needs no HTTP door.
      served ??= import('./serve.ts').then(({ serve }) => serve(host, serving, options));
      const opened = await served.catch((error: unknown) => {
        served = null;
        throw error;
      });
      url = opened.url;
      void opened.ended.then(() => {
        closing ??= shut(0);
      });
    },
    close({ drainMs = 0 } = {}) {
      closing ??= shut(drainMs);
      return closing;
    },
    admit,
    mount(server, options = {}) {
      mount(server, { gateway: host.gateway, admit, reserve: host.reserve }, options);
    },
    async status(clientId) {
      return host.status(clientId === undefined ? null : (await host.admissions.enter({ clientId })).client);
    },
    async enableToolset(clientId, toolset) {
      const client = await switching(clientId);
      await client.enable(toolset);
      return host.status(client);
    },
    async disableToolset(clientId, toolset) {
      const client = await switching(clientId);
      await client.disable(toolset);
      return host.status(client);
    },
    async handler() {
      if (closing !== null) throw wrongOptions('The server is closed. Create another.');
      listener ??= import('./http.ts').then(({ openListener }) => openListener(host, { ...serving, host: null }));
      return (await listener).handle;
    },
  };
}

/** What all have from the start; null where clients choose. */
function fixedToolsets({ startup = {}, catalog }: CreateMcpServerOptions): readonly string[] | null {
  const { mode, toolsets } = startup;
  if (mode !== undefined && mode !== 'DYNAMIC' && mode !== 'STATIC')
    throw wrongOptions('startup.mode must be "DYNAMIC" or "STATIC".');
  if (mode === 'DYNAMIC' && toolsets !== undefined)
    warn('startup.toolsets is ignored: in the mode DYNAMIC clients choose their toolsets.');
  if (mode === 'DYNAMIC' || (mode === undefined && toolsets === undefined)) return null;
  const keys = Object.keys(catalog ?? {});
  if (toolsets === 'ALL') return keys;
  if (toolsets === undefined) return [];
  if (!Array.isArray(toolsets)) throw wrongOptions('startup.toolsets must be "ALL" or a list of toolsets.');
  const unknown = toolsets.filter((name) => !keys.includes(name));
  if (unknown.length > 0) warn(`startup.toolsets names toolsets that are not there: ${unknown.join(', ')}.`);
  const known = keys.filter((key) => toolsets.includes(key));
  if (toolsets.length > 0 && known.length === 0)
    throw wrongOptions(`startup.toolsets names no toolset that there is. There are ${keys.join(', ') || 'none'}.`);
  return known;
}

function originsOf(cors: boolean | readonly string[] | undefined): readonly string[] {
  if (cors === undefined || cors === false) return [];
  return cors === true ? ['*'] : cors;
}

function warn(message: string): void {
  process.emitWarning(message, { type: 'ToolgateWarning' });
}
