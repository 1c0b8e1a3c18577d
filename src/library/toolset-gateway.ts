/** Toolsets on a gateway: what each caller sees is what its client has switched on, or was given. */

import { messageOf } from '../base/errors.ts';
import type { Caller } from '../calls/caller.ts';
import type { Config } from '../config/config.ts';
import { configFromValue } from '../config/load.ts';
import { createGateway } from '../gateway/gateway.ts';
import type { Gateway, Host } from '../gateway/types.ts';
import type { SourceSet } from '../sources/source-sets.ts';
import { type Admissions, createAdmissions } from './admission.ts';
import { type Clients, createClients, type ToolsetClient } from './clients.ts';
import { wrongOptions } from './errors.ts';
import { isExposed, NAMING } from './exposure.ts';
import { createMetaTools } from './meta-tools.ts';
import { createPermissions } from './permissions.ts';
import type { Introduced } from './server-info.ts';
import { type ToolsetStatus, toolsetStatus } from './status.ts';
import { checkCatalog, createToolsets, type LoadedToolset, type Toolsets } from './toolsets.ts';
import type {
  Authenticate,
  ExposurePolicy,
  ModuleLoader,
  PermissionConfig,
  SessionContextConfig,
  ToolSetCatalog,
} from './types.ts';

export interface ToolsetGatewayOptions {
  readonly catalog: ToolSetCatalog;
  readonly moduleLoaders: Readonly<Record<string, ModuleLoader>>;
  readonly policy: ExposurePolicy;
  readonly context: unknown;
  /** What all have, and nobody switches; null where clients do, or are given theirs. */
  readonly fixed: readonly string[] | null;
  /** Null where clients switch for themselves, or have what all have. */
  readonly permissions: PermissionConfig | null;
  readonly sessionContext: SessionContextConfig | null;
  readonly authenticate: Authenticate | null;
  /** Whether there are meta-tools, as far as there is something to switch. */
  readonly hasMetaTools: boolean;
  readonly introduced: Introduced;
  /** Settings of the gateway, in the words of its configuration. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Changes what the settings say of HTTP. */
  readonly http: Partial<Config['http']>;
  readonly clients: { readonly most: number; readonly ttl: number };
  readonly callTimeoutMs: number;
}

/** A gateway whose callers have toolsets, before there is any door to it. */
export interface ToolsetGateway {
  readonly gateway: Gateway;
  readonly admissions: Admissions;
  /** Names that tools of this client's toolsets cannot have, because the server has them that they are mounted in. */
  reserve(principal: string, names: ReadonlySet<string>): void;
  /** Whether clients switch for themselves. */
  readonly switches: boolean;
  /** What a client has, or what one has that was not seen before. */
  status(client: ToolsetClient | null): ToolsetStatus;
  close(): Promise<void>;
}

/** Rejects where something is wrong with the options, or what all are to have cannot be loaded. */
export async function openToolsetGateway(options: ToolsetGatewayOptions): Promise<ToolsetGateway> {
  const { policy, fixed, introduced } = options;
  checkCatalog(options.catalog);
  const base = { key: '', value: options.context };
  const config = configOf(options);
  // The gateway asks its host, and what the host has is made of the gateway's.
  let clients: Clients;
  let common: ToolsetClient | null = null;
  const reserved = new Map<string, ReadonlySet<string>>();
  const clientOf = (caller: Caller) => common ?? clients.find(caller.principal) ?? null;

  const desk = {
    keys: Object.keys(options.catalog),
    find: (name: unknown) => toolsets.find(name),
    isOffered: (key: string) => isExposed(policy, key),
    toolsOf: (caller: Caller) => namesIn(caller, clientOf(caller)?.loaded ?? []),
    isActive: (caller: Caller, key: string) => clientOf(caller)?.active.includes(key) === true,
    async enable(caller: Caller, key: string) {
      await clients.of(caller.principal, base).enable(key);
    },
    async disable(caller: Caller, key: string) {
      await clients.of(caller.principal, base).disable(key);
    },
  };
  const switches = fixed === null && options.permissions === null;
  const control = options.hasMetaTools ? createMetaTools(desk, switches) : null;
  const host: Host = {
    ...introduced,
    naming: NAMING,
    control,
    joined: (caller: Caller): SourceSet => (common === null ? clients.joined(caller) : common.join(caller)),
    left: (caller: Caller) => (common === null ? clients.left(caller) : common.leave(caller)),
  };
  const gateway = createGateway(config, { host });
  const { events } = gateway;
  const sets = gateway.sets!;
  const toolsets: Toolsets = createToolsets({
    catalog: options.catalog,
    moduleLoaders: options.moduleLoaders,
    offered: desk.keys.filter(desk.isOffered),
    isPrefixed: policy.namespaceToolsWithSetKey !== false,
    timeout: options.callTimeoutMs,
    config,
    sets,
    events,
    redact: gateway.redact,
  });
  clients = createClients({
    toolsets,
    sets,
    policy,
    taken: (principal) =>
      new Map([
        ...[...(reserved.get(principal) ?? [])].map((name) => [name, 'the server itself'] as const),
        ...(control?.entries.map(({ name }) => [name, 'the meta-tools'] as const) ?? []),
      ]),
    base,
    ...options.clients,
    failed: (toolset, error) => events.emit('note', { source: toolset, message: messageOf(error) }),
  });

  async function close(): Promise<void> {
    clients.close();
    await gateway.close();
  }

  if (fixed !== null) {
    const all = clients.alone(base);
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
    admissions: createAdmissions({
      clients: common === null ? clients : null,
      permissions: options.permissions === null ? null : createPermissions(options.permissions, desk.keys, events),
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
      const tools = namesOf(
        [...sets.of(ids).catalog().entries.tool.values()].map(({ name, sourceId }) => ({ name, sourceId })),
        loaded,
      );
      // Where permissions decide, what there is for others is nobody's business.
      const isOwn = options.permissions !== null;
      const available = isOwn ? active : desk.keys.filter(desk.isOffered);
      return toolsetStatus(available, active, isOwn ? [] : Object.keys(options.moduleLoaders), tools);
    },
    close,
  };
}

/** What the caller sees, by toolset. */
function namesIn(caller: Caller, loaded: readonly LoadedToolset[]): ReadonlyMap<string, readonly string[]> {
  return namesOf([...caller.view().entries.tool.values()], loaded);
}

function namesOf(
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
      throw wrongOptions(`"settings.${key}" has no place here: what clients see is in "catalog".`);
  const config = configFromValue(settings, { cwd: process.cwd(), env: process.env });
  return { ...config, http: { ...config.http, ...http } };
}
