/**
 * Refuses options that do not exist, at every depth. A misspelt option would otherwise be ignored in silence, and with
 * it perhaps what protects the tools.
 */
import { isObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import type { CustomEndpointDefinition } from './endpoints.ts';
import { wrongOptions } from './errors.ts';
import type { MountOptions } from './mount.ts';
import type {
  CreateMcpServerOptions,
  CreatePermissionBasedMcpServerOptions,
  HttpOptions,
  ServerInfo,
} from './options.ts';
import type { StartOptions } from './serve.ts';
import type { ExposurePolicy, PermissionConfig, SessionContextConfig, ToolSetDefinition } from './types.ts';

/** The names of the members that an object may have. Those with members of their own say which. */
interface Members {
  readonly [name: string]: Members | null;
}

/** All members of a type, so that a new option cannot be forgotten here. */
type MembersOf<T> = { readonly [Name in keyof T]-?: Members | null };

const HTTP = {
  host: null,
  port: null,
  basePath: null,
  cors: null,
  logger: null,
  app: null,
  customEndpoints: null,
  allowedHosts: null,
} satisfies MembersOf<HttpOptions>;

const POLICY = {
  maxActiveToolsets: null,
  namespaceToolsWithSetKey: null,
  allowlist: null,
  denylist: null,
  onLimitExceeded: null,
} satisfies MembersOf<ExposurePolicy>;

const SESSION_CONTEXT = {
  enabled: null,
  queryParam: { name: null, encoding: null, allowedKeys: null } satisfies MembersOf<
    NonNullable<SessionContextConfig['queryParam']>
  >,
  contextResolver: null,
  merge: null,
} satisfies MembersOf<SessionContextConfig>;

const PERMISSIONS = {
  source: null,
  headerName: null,
  staticMap: null,
  resolver: null,
  defaultPermissions: null,
  refreshMs: null,
} satisfies MembersOf<PermissionConfig>;

const SERVER_INFO = {
  name: null,
  version: null,
  title: null,
  instructions: null,
} satisfies MembersOf<ServerInfo>;

const SERVER = {
  catalog: null,
  moduleLoaders: null,
  exposurePolicy: POLICY,
  context: null,
  registerMetaTools: null,
  http: HTTP,
  logger: null,
  serverInfo: SERVER_INFO,
  createServer: null,
  configSchema: null,
  sessionContext: SESSION_CONTEXT,
  authenticate: null,
  clients: { most: null, ttlMs: null } satisfies MembersOf<NonNullable<CreateMcpServerOptions['clients']>>,
  callTimeoutMs: null,
  settings: null,
  startup: { mode: null, toolsets: null } satisfies MembersOf<NonNullable<CreateMcpServerOptions['startup']>>,
} satisfies MembersOf<CreateMcpServerOptions>;

const PERMITTED = {
  ...SERVER,
  permissions: PERMISSIONS,
} satisfies MembersOf<CreatePermissionBasedMcpServerOptions>;

const MOUNT = {
  clientId: null,
  toolsets: null,
  toolsChanged: null,
  promptsChanged: null,
  resourcesChanged: null,
} satisfies MembersOf<MountOptions>;

const START = { transport: null, clientId: null, input: null, output: null } satisfies MembersOf<StartOptions>;

const TOOLSET = {
  name: null,
  description: null,
  tools: null,
  modules: null,
  decisionCriteria: null,
  prompts: null,
  resources: null,
} satisfies MembersOf<ToolSetDefinition>;

const ENDPOINT = {
  method: null,
  path: null,
  bodySchema: null,
  querySchema: null,
  paramsSchema: null,
  responseSchema: null,
  description: null,
  isPublic: null,
  handler: null,
} satisfies MembersOf<CustomEndpointDefinition>;

/** Throws if the options of `createMcpServer` have unknown members. */
export function checkServerOptions(options: unknown): void {
  checkOptions('createMcpServer', options, SERVER);
}

/** Throws if the options of `createPermissionBasedMcpServer` have unknown members. */
export function checkPermittedOptions(options: unknown): void {
  checkOptions('createPermissionBasedMcpServer', options, PERMITTED);
}

/** Throws if the options of `mountToolsets` have unknown members. The server that it mounts in is not its own. */
export function checkMountedOptions(options: unknown): void {
  const { http: _, createServer: _create, serverInfo: _info, ...rest } = SERVER;
  checkOptions('mountToolsets', options, { ...rest, ...MOUNT });
}

/** Throws if the options of `mount` have unknown members. */
export function checkMountOptions(options: unknown): void {
  requireKnown('mount', '', options, MOUNT);
}

/** Throws if the options of `start` have unknown members. */
export function checkStartOptions(options: unknown): void {
  requireKnown('start', '', options, START);
}

function checkOptions(where: string, options: unknown, members: Members): void {
  if (!isObject(options))
    throw wrongOptions(`${where} needs options: ${where}({ catalog: { key: { name, description, tools } } }).`);
  requireKnown(where, '', options, members);
  if (isObject(options.catalog))
    for (const [key, toolset] of Object.entries(options.catalog))
      if (isObject(toolset)) requireKnown(where, `catalog.${key}`, toolset, TOOLSET);
  const endpoints = isObject(options.http) ? options.http.customEndpoints : undefined;
  if (endpoints === undefined) return;
  if (!Array.isArray(endpoints)) throw wrongOptions('"http.customEndpoints" must be a list of endpoints.');
  for (const [index, endpoint] of endpoints.entries())
    requireKnown(where, `http.customEndpoints[${index}]`, endpoint, ENDPOINT);
}

function requireKnown(where: string, path: string, given: unknown, members: Members): void {
  if (!isObject(given)) throw wrongOptions(`"${path || where}" must be an object.`);
  for (const [name, value] of Object.entries(given)) {
    const full = path === '' ? name : `${path}.${name}`;
    const inside = Object.hasOwn(members, name) ? members[name] : undefined;
    if (inside === undefined) throw wrongOptions(`${where} has no option "${full}".${hint(name, members)}`);
    if (inside !== null && value !== undefined) requireKnown(where, full, value, inside);
  }
}

function hint(name: string, members: Members): string {
  const known = Object.keys(members);
  if (name === 'permissions' && Object.hasOwn(members, 'startup'))
    return ' Use createPermissionBasedMcpServer for permissions.';
  return didYouMean(name, known) || ` There are ${known.join(', ')}.`;
}
