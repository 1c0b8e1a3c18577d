/** A gateway with toolsets. Each caller sees the toolsets that its client has switched on or was given. */
import { narrowToPermission } from '../access/permission.ts';
import { messageOf } from '../base/errors.ts';
import type { Caller } from '../calls/caller.ts';
import { buildCatalog } from '../catalog/catalog.ts';
import type { Config } from '../config/config.ts';
import { configFromValue } from '../config/load.ts';
import { createGateway, type Gateway } from '../gateway/gateway.ts';
import type { Host } from '../gateway/root.ts';
import { type Admissions, createAdmissions } from './admission.ts';
import { type ToolsetClient, ToolsetClients } from './clients.ts';
import { wrongOptions } from './errors.ts';
import { isExposed, NAMING } from './exposure.ts';
import { type Logger, logEvents } from './logger.ts';
import { createMetaTools, type MetaToolTarget } from './meta-tools.ts';
import { createPermissions } from './permissions.ts';
import { type ToolsetStatus, toolsetStatus } from './status.ts';
import { isToolSource } from './tool-sources.ts';
import { createToolsets, type LoadedToolset, readCatalog, type Toolsets, unknownToolset } from './toolsets.ts';
import type {
  Authenticate,
  ExposurePolicy,
  ModuleLoader,
  PermissionConfig,
  SessionContextConfig,
  ToolSetCatalog,
  ToolSetDefinition,
} from './types.ts';

export interface ToolsetGatewayOptions {
  readonly catalog: ToolSetCatalog;
  readonly moduleLoaders: Readonly<Record<string, ModuleLoader>>;
  readonly policy: ExposurePolicy;
  readonly context: unknown;
  /** The toolsets that all clients have; null if each client has its own. */
  readonly fixed: readonly string[] | null;
  /** Null if clients switch their own toolsets, or all have the same. */
  readonly permissions: PermissionConfig | null;
  readonly sessionContext: SessionContextConfig | null;
  readonly authenticate: Authenticate | null;
  /** Whether there are meta-tools. The ones for switching exist only if clients may switch. */
  readonly hasMetaTools: boolean;
  /** The introduction that clients get. */
  readonly introduction: Pick<Host, 'identity' | 'instructions'>;
  /** Settings of the gateway, as in its configuration file. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly logger: boolean | Logger | undefined;
  /** Overrides the HTTP settings. */
  readonly http: Partial<Config['http']>;
  readonly clients: { readonly most: number; readonly ttl: number };
  readonly callTimeoutMs: number;
}

/** It has no door yet. */
export interface ToolsetGateway {
  readonly gateway: Gateway;
  readonly admissions: Admissions;
  /** Sets the names that tools of this client must not have, because the server they are mounted in uses them. */
  reserve(principal: string, names: ReadonlySet<string>): void;
  /** Whether clients switch their own toolsets. */
  readonly switches: boolean;
  /** Whether a toolset has prompts or resources, or may get some from a loader or a server. */
  readonly hasMoreThanTools: boolean;
  /** The toolsets of a client; null for a client that was not seen before. */
  status(client: ToolsetClient | null): ToolsetStatus;
  close(): Promise<void>;
}

/** Rejects if the options are wrong, or if a toolset that all clients should have cannot be loaded. */
export async function openToolsetGateway(options: ToolsetGatewayOptions): Promise<ToolsetGateway> {
  const { policy, fixed } = options;
  const base = { key: '', value: options.context };
  const config = configOf(options);
  const isPrefixed = policy.namespaceToolsWithSetKey !== false;
  const keys = Object.keys(options.catalog ?? {});
  const offered = keys.filter((key) => isExposed(policy, key));
  const switches = fixed === null && options.permissions === null;
  /** By principal. */
  const reserved = new Map<string, ReadonlySet<string>>();
  // The gateway and these need each other. They are used only once the gateway has callers.
  let toolsets: Toolsets;
  let clients: ToolsetClients;
  /** Represents all clients if all have the same toolsets. */
  let common: ToolsetClient | null = null;

  const clientOf = (caller: Caller) => common ?? clients.find(caller.principal) ?? null;
  const target: MetaToolTarget = {
    keys,
    find(name) {
      const found = toolsets.find(name);
      // A toolset that is not offered does not exist for clients.
      if (!offered.includes(found.key)) throw unknownToolset(found.key, offered);
      return found;
    },
    isOffered: (key) => offered.includes(key),
    toolsOf: (caller) => byToolset([...caller.view().entries.tool.values()], clientOf(caller)?.loaded ?? []),
    isActive: (caller, key) => clientOf(caller)?.active.includes(key) === true,
    async toolsIn(caller, key) {
      const client = clientOf(caller);
      if (client?.active.includes(key) === true) return target.toolsOf(caller).get(key) ?? [];
      const known = await toolsets.contributions(key, client?.context ?? base);
      const permission = caller.isOperator ? null : caller.callers.options.permissionOf(caller.subject);
      return [...narrowToPermission(buildCatalog(0, known, [], NAMING), permission).entries.tool.keys()];
    },
    async load(caller, key) {
      toolsets.release(await toolsets.take(key, clientOf(caller)?.context ?? base));
    },
    async enable(caller, key) {
      await clients.of(caller.principal, base).enable(key);
    },
    async disable(caller, key) {
      await clients.of(caller.principal, base).disable(key);
    },
  };
  const control = options.hasMetaTools ? createMetaTools(target, switches) : null;
  const metaNames = control?.entries.map(({ name }) => name) ?? [];
  const inline = await readCatalog(options.catalog, options.moduleLoaders, isPrefixed ? [] : metaNames);
  const host: Host = {
    ...options.introduction,
    naming: NAMING,
    control,
    joined: (caller) => (common === null ? clients.joined(caller) : common.join(caller)),
    left: (caller) => (common === null ? clients.left(caller) : common.leave(caller)),
  };
  const gateway = createGateway(config, { host });
  const { events } = gateway;
  const stopLog = logEvents(gateway, options.logger);
  const sets = gateway.sets!;
  toolsets = createToolsets({
    catalog: options.catalog,
    inline,
    moduleLoaders: options.moduleLoaders,
    offered,
    isPrefixed,
    timeout: options.callTimeoutMs,
    config,
    sets,
    events,
    redact: gateway.redact,
  });
  clients = new ToolsetClients({
    toolsets,
    sets,
    policy,
    taken: (principal) =>
      new Map([
        ...[...(reserved.get(principal) ?? [])].map((name) => [name, 'the server itself'] as const),
        ...metaNames.map((name) => [name, 'the meta-tools'] as const),
      ]),
    base,
    ...options.clients,
    failed: (toolset, error) => events.emit('note', { source: toolset, message: messageOf(error) }),
  });

  async function close(): Promise<void> {
    clients.close();
    await gateway.close();
    stopLog();
  }

  if (fixed !== null) {
    const all = clients.common(base);
    try {
      for (const key of fixed) await all.enable(key);
    } catch (error) {
      await close();
      throw error;
    }
    common = all;
  }

  return {
    gateway,
    switches,
    hasMoreThanTools: Object.values(options.catalog).some(mayHaveMoreThanTools),
    admissions: createAdmissions({
      clients: common === null ? clients : null,
      permissions: options.permissions === null ? null : createPermissions(options.permissions, keys, events),
      authenticate: options.authenticate,
      sessionContext: options.sessionContext,
      base,
      events,
    }),
    reserve(principal, names) {
      if (names.size === 0) reserved.delete(principal);
      else reserved.set(principal, names);
    },
    status(client) {
      const { loaded = [], active = [], ids = [] } = common ?? client ?? {};
      const tools = byToolset([...sets.of(ids).catalog().entries.tool.values()], loaded);
      // With permissions, a client does not learn which toolsets others have.
      const isOwn = options.permissions !== null;
      return toolsetStatus(isOwn ? active : offered, active, isOwn ? [] : Object.keys(options.moduleLoaders), tools);
    },
    close,
  };
}

function mayHaveMoreThanTools({ tools = [], prompts = [], resources = [], modules = [] }: ToolSetDefinition): boolean {
  return prompts.length + resources.length + modules.length > 0 || tools.some(isToolSource);
}

/** The names of the tools of each toolset. */
function byToolset(
  entries: readonly { readonly name: string; readonly sourceId: number }[],
  loaded: readonly LoadedToolset[],
): ReadonlyMap<string, readonly string[]> {
  return new Map(
    loaded.map(({ toolset, ids }) => [
      toolset,
      entries.filter(({ sourceId }) => ids.includes(sourceId)).map(({ name }) => name),
    ]),
  );
}

function configOf({ settings, http }: ToolsetGatewayOptions): Config {
  for (const key of ['servers', 'mcpServers', 'controls', 'active_toolsets'])
    if (settings[key] !== undefined)
      throw wrongOptions(`"settings.${key}" cannot be used here: "catalog" decides what clients see.`);
  const config = configFromValue(settings, { cwd: process.cwd(), env: process.env });
  return { ...config, http: { ...config.http, ...http } };
}
