/**
 * The configuration that the gateway works with: every default is filled in, every path absolute, every text expanded.
 */
import { dirname, resolve } from 'node:path';
import { userFolder } from '../base/user-folder.ts';
import { ALL_REVISIONS } from '../protocol/revisions.ts';
import { type AgentConfig, agentTokens, resolveAgents, tokenVariables } from './agents.ts';
import { type AuditConfig, resolveAudit } from './audit.ts';
import { type BadEntry, type BrokenDraft, type BrokenEntry, brokenEntry } from './broken.ts';
import { createContext, splitList } from './context.ts';
import type { EnvVars } from './expand.ts';
import { resolveFolders } from './folders.ts';
import { type HttpConfig, resolveHttp } from './http.ts';
import { type ConfigDocument, InvalidConfig, type LineOf } from './issues.ts';
import { secretValues } from './launch-secrets.ts';
import type { LimitsConfig } from './limits.ts';
import { type MacroConfig, resolveMacros } from './macros.ts';
import { type ManagerConfig, resolveManager } from './manager.ts';
import type { PinsConfig } from './pins.ts';
import { type PolicyConfig, resolvePolicy } from './policy.ts';
import type { RawConfig } from './raw-config.ts';
import { type OwnPath, reachText } from './reach.ts';
import { type RegistryConfig, resolveRegistry } from './registry.ts';
import type { RepositoriesConfig } from './repositories.ts';
import type { Settings } from './schema.ts';
import { resolveSearch, type SearchConfig } from './search.ts';
import { resolveVault, type VaultConfig } from './secrets-key.ts';
import { resolveSecurity, type SecurityConfig } from './security.ts';
import {
  type FoldersConfig,
  type ResolvedServers,
  resolveServers,
  type ServerConfig,
  type ServerEntry,
} from './servers.ts';
import { resolveStore, type StoreConfig, storeSecrets } from './store.ts';
import type { TasksConfig } from './tasks.ts';
import { type CallThrough, type Control, resolveToolsets, type ToolsetConfig } from './toolsets.ts';

/** A configuration that has been read and checked. Made by `loadConfig` or `configFromValue`, never by hand. */
export interface Config {
  /** The file it was read from; null for a configuration given in code. */
  readonly file: string | null;
  readonly servers: readonly ServerConfig[];
  /** Patterns over exposed names; null if the configuration has none. */
  readonly activeToolsets: readonly string[] | null;
  readonly controls: readonly Control[];
  /** Whether `search` takes the place of `activate` if there are many tools. */
  readonly searchesMany: boolean;
  /** Which clients are offered `toolman_call`. */
  readonly callThrough: CallThrough;
  /** Whether clients get the whole catalog in a description; null if that depends on the client. */
  readonly catalog: 'short' | 'full' | null;
  /** Whether the description of `toolman_activate` marks what is active. */
  readonly markActive: boolean;
  readonly toolsets: readonly ToolsetConfig[];
  /** The toolset to start with if none was equipped before. */
  readonly equipped: string | null;
  /** Whether each caller has its own selection, or all share one. */
  readonly selection: 'own' | 'shared';
  /** How exposed names are made, and how long they may be; null for any length. */
  readonly names: 'join' | 'flat';
  readonly nameLimit: number | null;
  /** How namespaces are put in front of URIs in lists; `auto` decides by client. */
  readonly uriStyle: 'auto' | 'join' | 'scheme';
  readonly startWait: number;
  /** Whether edits of the configuration file are applied; `confirm`: those that open something wait for a reload. */
  readonly watch: boolean | 'confirm';
  /** Whether the clients on stdio share one gateway in the background, and for how long it goes on without one. */
  readonly shared: boolean;
  /** Milliseconds; 0 for ever. */
  readonly sharedIdle: number;
  /** What servers offered when a person last approved it. */
  readonly pins: PinsConfig;
  /** The revisions of the protocol that clients may speak. */
  readonly revisions: readonly string[];
  /** What a person has to approve. */
  readonly security: SecurityConfig;
  /** The policy; null if every agent may use everything. */
  readonly policy: PolicyConfig | null;
  /** Which tools tasks need. */
  readonly tasks: TasksConfig;
  /** What helps the search to find tools. */
  readonly search: SearchConfig;
  /** Tools made of other tools. */
  readonly macros: readonly MacroConfig[];
  readonly dataDir: string;
  /** What several replicas share; null if there is one. */
  readonly store: StoreConfig | null;
  readonly folders: FoldersConfig;
  readonly http: HttpConfig;
  readonly manager: ManagerConfig;
  readonly agents: readonly AgentConfig[];
  /**
   * What would let clients in and nobody has trusted yet. It lets nobody in.
   * @internal
   */
  readonly held?: HeldCredentials;
  readonly limits: LimitsConfig;
  readonly audit: AuditConfig;
  readonly vault: VaultConfig;
  /** Which repositories may be cloned to be read. */
  readonly repositories: RepositoriesConfig;
  /** Where servers are looked up that can be installed. */
  readonly registry: RegistryConfig;
  /** Values that must not be shown. A function, so that printing a configuration does not print them. */
  readonly secrets: () => readonly string[];
  /**
   * As it is written, before anything was expanded. A function, so that printing a configuration does not print it.
   * @internal
   */
  readonly written: () => RawConfig;
  /** What the operator should know, such as keys and files that were ignored. */
  readonly notices: readonly string[];
  /** The servers and toolsets that were left out because of mistakes in their entries. */
  readonly broken: readonly BrokenEntry[];
}

/** Credentials of a configuration that nobody has trusted yet. A door that would need them stays closed. */
export interface HeldCredentials {
  /** Hashes of tokens. */
  readonly tokens: ReadonlySet<string>;
  /** Of JWTs. They are left out of `http.jwt`. */
  readonly issuers: readonly string[];
  /** Whether no client certificate is accepted. */
  readonly certificates: boolean;
  /** What the operator is told. */
  readonly notice: string;
}

/** Where a configuration came from, and what follows from that. */
export interface ConfigSource {
  readonly document: ConfigDocument;
  /** The absolute path; null for a configuration given in code. */
  readonly file: string | null;
  readonly cwd: string;
  readonly env: EnvVars;
  /** Whether an entry that cannot be resolved is left out and reported; else it fails the whole configuration. */
  readonly lenient: boolean;
  readonly defaultControls: Config['controls'];
  readonly defaultNames: Config['names'];
  readonly tasks: TasksConfig;
  readonly pins: PinsConfig;
  /** The settings as they are written. */
  readonly written?: Readonly<Record<string, unknown>>;
  readonly notices: readonly string[];
  /** The lines of the file, for reports about broken entries; absent if there are none. */
  readonly lineOf?: LineOf;
  readonly redact?: (text: string) => string;
  /** Whether a file whose servers are all broken is refused, because there is nothing else to serve. */
  readonly needsServers?: (dataDir: string) => boolean;
}

/**
 * Resolves every section. Reads nothing but its arguments. `bad` are the entries that the schema refused, apart from
 * those of servers.
 */
export function resolveConfig(
  settings: Settings,
  entries: readonly (ServerEntry | BadEntry)[],
  source: ConfigSource,
  bad: readonly BrokenDraft[] = [],
): Config {
  const { document, file, cwd, env, lenient } = source;
  const context = createContext({ env, cwd, folder: file === null ? cwd : dirname(file) });
  const folders = resolveFolders(settings.folders, settings.startTimeout, context);
  const dataDir = env.DATA_DIR ? resolve(cwd, env.DATA_DIR) : context.path(['data_dir'], settings.dataDir);
  const vault = resolveVault(settings.secrets, context);
  const http = resolveHttp(settings.http, context);
  const resolved = resolveServers(
    entries,
    {
      document: document.name,
      lenient,
      healthInterval: settings.healthInterval,
      startTimeout: settings.startTimeout,
      resolvePackages: settings.resolvePackages,
      folders,
      withheld: tokenVariables(settings.agents),
      inheritEnv: settings.inheritEnv,
      own: { dataDir, hides: [file, vault.keyFile, http.tls?.key].filter((path) => path != null) },
    },
    context,
  );
  const serverKeys = [...resolved.servers, ...resolved.folders].map(({ key }) => key);
  // Without servers, what there is are folders of tools. They are shown as they are, unless the file says otherwise.
  const isDock = entries.length === 0 && settings.activeToolsets === null && source.needsServers?.(dataDir) === false;
  const toolsets = resolveToolsets(settings, isDock ? [] : source.defaultControls, context);
  const managerToken = http.manager.token();
  const audit = resolveAudit(settings.audit, dataDir, context);
  const auditKey = audit.key();
  const store = resolveStore(settings.store, context);
  const secrets = [
    ...secretValues(
      entries.flatMap((entry) => ('server' in entry ? entry.server : [])),
      env,
    ),
    ...agentTokens(settings.agents, context),
    ...(auditKey === null ? [] : [auditKey]),
    ...storeSecrets(store),
  ];
  const own: OwnPath[] = [
    ...(file === null ? [] : [{ what: 'the configuration', path: file }]),
    ...(source.pins.file === null ? [] : [{ what: 'the approved definitions', path: source.pins.file }]),
    { what: 'the data folder', path: dataDir },
    { what: 'the folder with what you trust', path: userFolder(env) },
    ...(vault.keyFile === null ? [] : [{ what: 'the key of the secrets', path: vault.keyFile }]),
    ...(http.tls === null ? [] : [{ what: 'the key of the certificate', path: http.tls.key }]),
  ];
  const reaching = reachNotices(resolved, own, env.HOME, context.folder);
  if (settings.security.reachableConfig === 'refuse')
    for (const message of reaching) context.add(['security', 'reachable_config'], message);
  const policy = resolvePolicy(settings, context);
  const security = resolveSecurity(settings.security, context);
  const broken = [...resolved.broken, ...bad];
  const { lineOf = () => undefined, redact = (text: string) => text } = source;
  const config: Config = {
    file,
    servers: resolved.servers,
    ...toolsets,
    equipped: null,
    names: settings.names ?? (toolsets.controls.includes('equip') ? 'flat' : source.defaultNames),
    nameLimit: settings.nameLimit,
    uriStyle: settings.uriStyle,
    startWait: settings.startWait,
    watch: settings.watch,
    shared: settings.shared,
    sharedIdle: settings.sharedIdle,
    pins: source.pins,
    revisions:
      context.variable('MCP_SUPPORTED_VERSIONS', `a list of ${ALL_REVISIONS.join(', ')}`, readRevisions) ??
      settings.revisions ??
      ALL_REVISIONS,
    policy,
    security,
    tasks: source.tasks,
    search: resolveSearch(settings.search, context),
    macros: resolveMacros(settings.macros, serverKeys, context),
    dataDir,
    store,
    folders: { ...folders, named: resolved.folders },
    http,
    manager: resolveManager(settings.manager, context),
    agents: resolveAgents(settings.agents, context),
    limits: settings.limits,
    audit,
    vault,
    repositories: settings.repositories,
    registry: resolveRegistry(settings.registry, context),
    secrets: () => (managerToken === null ? secrets : [...secrets, managerToken]),
    written: () => ({ settings: source.written ?? {}, servers: resolved.written }),
    notices: [
      ...source.notices,
      ...source.pins.notices,
      ...resolved.notices,
      ...(settings.security.reachableConfig === 'warn' ? reaching : []),
      ...dryRunNotices(policy, security),
    ],
    broken: broken.map((one) => brokenEntry(one, document, lineOf, redact)),
  };
  const isEmpty = resolved.servers.length + resolved.folders.length === 0 && resolved.broken.length > 0;
  if (context.issues.length > 0 || (isEmpty && source.needsServers?.(dataDir) === true))
    throw new InvalidConfig(document, [...context.issues, ...broken.flatMap(({ issues }) => issues)]);
  return deepFreeze(config);
}

/** Rules that are only tried. They are told at every start, because it is easily forgotten that nothing is denied. */
function dryRunNotices(policy: PolicyConfig | null, { confirm }: SecurityConfig): string[] {
  const agents = policy?.agents ?? [];
  const conditions = [
    ...(policy?.conditions ?? []),
    ...agents.flatMap((agent) => agent.conditions),
    ...confirm.map(({ condition }) => condition),
  ];
  const places = [
    ...agents.filter(({ dryRun }) => dryRun).map(({ name }) => `agent_policies.${name}`),
    ...conditions.filter(({ dryRun }) => dryRun).map(({ place }) => place),
  ];
  return [
    ...(policy?.dryRun === true ? ['dry_run is on: the policy is not enforced, only recorded in the audit.'] : []),
    ...places.map((place) => `${place}.dry_run is on: the rule is not enforced, only recorded in the audit.`),
  ];
}

/** What to tell about servers and folders of tools that can write our own files. */
function reachNotices(
  { servers, folders }: Pick<ResolvedServers, 'servers' | 'folders'>,
  own: readonly OwnPath[],
  home: string | undefined,
  usualCwd: string,
): string[] {
  const targets = [
    ...servers.map(({ key, launch }) => [key, launch] as const),
    ...folders.map((one) => [one.key, one] as const),
  ];
  return targets.flatMap(([key, target]) => {
    const reached = reachText(target, own, home, usualCwd);
    if (reached === null) return [];
    return `server "${key}" can reach ${reached}. If it can write files, an agent that uses it can change its own policies and start any program. Give it a folder of its own, or keep the configuration elsewhere (--config).`;
  });
}

function readRevisions(text: string): string[] | null {
  const revisions = splitList(text);
  return revisions.length > 0 && revisions.every((one) => ALL_REVISIONS.includes(one)) ? revisions : null;
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
