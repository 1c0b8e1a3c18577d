/** Creates servers with toolsets. Clients switch them, or all have the same, or each gets those it is permitted. */
import { checkEndpoints } from './endpoints.ts';
import { warn, wrongOptions } from './errors.ts';
import { checkPolicy } from './exposure.ts';
import { createHandle, type McpServerHandle } from './handle.ts';
import { checkMountedOptions, checkPermittedOptions, checkServerOptions } from './known-options.ts';
import type { MountableServer, MountOptions } from './mount.ts';
import {
  allowedOrigins,
  type CreateMcpServerOptions,
  type CreatePermissionBasedMcpServerOptions,
  fixedToolsets,
  introductionOf,
} from './options.ts';
import { checkPermissions } from './permissions.ts';
import type { ServeOptions } from './serve.ts';
import { checkSessionContext } from './session-context.ts';
import { openToolsetGateway, type ToolsetGatewayOptions } from './toolset-gateway.ts';

/**
 * Creates an MCP server for a catalog of toolsets. Each client switches toolsets on and off with meta-tools
 * (`DYNAMIC`), or all clients have the same from the start (`STATIC`).
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
export async function createMcpServer<
  Server = null,
  Key extends string = string,
  Named extends string = string,
  Loader extends string = never,
  Module extends string = string,
>(options: CreateMcpServerOptions<Server, Key, Named, Loader, Module>): Promise<McpServerHandle<Server>> {
  checkServerOptions(options);
  // The names are checked at run time; from here on they are texts.
  const given = options as unknown as CreateMcpServerOptions;
  const fixed = fixedToolsets(given);
  const handle = await open(given, { fixed, permissions: null, hasMetaTools: options.registerMetaTools !== false });
  return handle as McpServerHandle<Server>;
}

/**
 * Creates an MCP server that gives each client the toolsets that it may use. A header from a trusted proxy names them,
 * or the program decides. Clients cannot switch anything.
 *
 * @example
 * const { start } = await createPermissionBasedMcpServer({
 *   catalog: { admin: { name: 'Admin', description: 'For admins', tools: [] } },
 *   permissions: { source: 'config', resolver: async (clientId) => (await lookUp(clientId)).toolsets },
 *   authenticate: async ({ headers }) => verify(headers.authorization),
 * });
 * await start();
 */
export async function createPermissionBasedMcpServer<
  Server = null,
  Key extends string = string,
  Named extends string = string,
  Loader extends string = never,
  Module extends string = string,
>(
  options: CreatePermissionBasedMcpServerOptions<Server, Key, Named, Loader, Module>,
): Promise<McpServerHandle<Server>> {
  checkPermittedOptions(options);
  const given = options as unknown as CreatePermissionBasedMcpServerOptions;
  const permissions = checkPermissions(given.permissions, Object.keys(given.catalog ?? {}));
  if (options.startup !== undefined)
    throw wrongOptions('"startup" cannot be used here: "permissions" decides which toolsets a client has.');
  const ignored = ['maxActiveToolsets', 'allowlist', 'denylist', 'onLimitExceeded'] as const;
  const { exposurePolicy = {} } = given;
  for (const key of ignored)
    if (exposurePolicy[key] !== undefined)
      warn(`exposurePolicy.${key} is ignored: "permissions" decides which toolsets a client has.`);
  const { namespaceToolsWithSetKey } = exposurePolicy;
  const policy = namespaceToolsWithSetKey === undefined ? {} : { namespaceToolsWithSetKey };
  const handle = await open(
    { ...given, exposurePolicy: policy },
    { fixed: null, permissions, hasMetaTools: options.registerMetaTools === true },
  );
  return handle as McpServerHandle<Server>;
}

/**
 * Adds toolsets to the tools of an official SDK server, v1 or v2. The same as `createMcpServer` and then `mount` of its
 * handle.
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
  checkMountedOptions(options);
  const { clientId, toolsets, toolsChanged, promptsChanged, resourcesChanged, ...rest } = options;
  const handle = await createMcpServer(rest as CreateMcpServerOptions<null>);
  try {
    handle.mount(server, {
      ...(clientId !== undefined && { clientId }),
      ...(toolsets !== undefined && { toolsets }),
      ...(toolsChanged !== undefined && { toolsChanged }),
      ...(promptsChanged !== undefined && { promptsChanged }),
      ...(resourcesChanged !== undefined && { resourcesChanged }),
    });
  } catch (error) {
    await handle.close();
    throw error;
  }
  return handle;
}

const HOUR = 3_600_000;
const FIVE_MINUTES = 300_000;

async function open(
  options: Omit<CreateMcpServerOptions, 'startup'>,
  mode: Pick<ToolsetGatewayOptions, 'fixed' | 'permissions' | 'hasMetaTools'>,
): Promise<McpServerHandle> {
  const { http = {}, exposurePolicy = {}, sessionContext, authenticate, createServer } = options;
  checkPolicy(exposurePolicy, Object.keys(options.catalog ?? {}));
  if (sessionContext !== undefined) checkSessionContext(sessionContext);
  checkEndpoints(http.customEndpoints ?? []);
  if (authenticate !== undefined && typeof authenticate !== 'function')
    throw wrongOptions('"authenticate" must be a function.');
  if (createServer !== undefined && typeof createServer !== 'function')
    throw wrongOptions('"createServer" must be a function that returns a server.');
  const server = createServer?.() ?? null;
  const clients = { most: options.clients?.most ?? 1_000, ttl: options.clients?.ttlMs ?? HOUR };
  const toolsets = await openToolsetGateway({
    ...mode,
    catalog: options.catalog,
    moduleLoaders: options.moduleLoaders ?? {},
    policy: exposurePolicy,
    context: options.context,
    // Toolsets that all clients have are loaded before any client connects, so they cannot have a context of a client.
    sessionContext: mode.fixed === null ? (sessionContext ?? null) : null,
    authenticate: authenticate ?? null,
    introduction: introductionOf(options.serverInfo, server),
    settings: options.settings ?? {},
    logger: options.logger ?? http.logger,
    http: {
      maxSessions: clients.most,
      sessionTtl: clients.ttl,
      allowedOrigins: allowedOrigins(http.cors),
      sse: false,
    },
    clients,
    callTimeoutMs: options.callTimeoutMs ?? FIVE_MINUTES,
  });
  const serving: ServeOptions = {
    host: http.host ?? '127.0.0.1',
    port: http.port ?? 3_000,
    basePath: http.basePath ?? '/',
    app: http.app ?? null,
    // With `authenticate` any host name is accepted: a web page that reaches the server by DNS rebinding has no
    // credential.
    allowedHosts: http.allowedHosts ?? (authenticate === undefined ? [] : 'any'),
    configSchema: options.configSchema ?? null,
    endpoints: http.customEndpoints ?? [],
    isGuarded: authenticate !== undefined,
    isPermissionAware: mode.permissions !== null,
    clients,
    noStdio:
      mode.permissions?.source === 'headers'
        ? 'Permissions come from headers here, and standard input has none. Set permissions.source to "config".'
        : null,
  };
  return createHandle(toolsets, server, serving);
}
