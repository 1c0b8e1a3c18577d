/**
 * The written configuration as the one the gateway works with: variables expanded, paths absolute, every server with
 * a key and a launch. Reads nothing but its arguments.
 */

import { dirname, resolve } from 'node:path';
import { ALL_REVISIONS } from '../protocol/revisions.ts';
import type { Config, FolderConfig, FoldersConfig, ServerConfig } from './config.ts';
import { type Environment, expand } from './expand.ts';
import { isMap } from './fields.ts';
import { resolveFolder, resolveFolders, toFolder } from './folders.ts';
import { resolveIdentity, tokenVariables } from './identity.ts';
import { type ConfigDocument, InvalidConfig, type Issue, issueText, type Path, pathText } from './issues.ts';
import { launchHash, resolveLaunch } from './launch.ts';
import { resolveLimits, resolveToolLimits } from './limits.ts';
import { resolveMacros } from './macros.ts';
import { resolvePolicy } from './policy.ts';
import type { RawServer } from './raw-config.ts';
import type { Entry, Settings } from './schema.ts';
import { secretsOf } from './secrets.ts';
import { resolveVault } from './secrets-key.ts';
import { resolveSecurity } from './security.ts';
import { startsToolgate } from './self-reference.ts';
import type { TasksConfig } from './task-rules.ts';
import { readVariables } from './variables.ts';

const LAZY_IDLE_STOP = 600_000;
const TIMEOUT = 300_000;
const TOTAL_TIMEOUT = 3_600_000;
const START_TIMEOUT = 30_000;
const CONCURRENCY = 256;
/** This machine, and where the manager is in its own network of containers. */
const MANAGER_NETWORKS = ['172.30.0.10/32', '127.0.0.1/32'];

/** Where a configuration came from, and what of it is decided by that. */
export interface Source {
  readonly document: ConfigDocument;
  /** The absolute path; null for a configuration given in code. */
  readonly file: string | null;
  readonly cwd: string;
  readonly env: Environment;
  /** Whether a server that cannot be resolved is left out with a notice; else it fails the whole. */
  readonly lenient: boolean;
  readonly defaultControls: Config['controls'];
  readonly defaultNames: Config['names'];
  readonly tasks: TasksConfig;
  /** The settings as they are written. */
  readonly written?: Readonly<Record<string, unknown>>;
  readonly notices: readonly string[];
}

export function resolveConfig(settings: Settings, entries: readonly Entry[], source: Source): Config {
  const folder = source.file === null ? source.cwd : dirname(source.file);
  const issues: Issue[] = [];
  const variables = readVariables(source.env, issues);
  const folderDefaults = resolveFolders(settings, variables);
  const {
    servers,
    named,
    notices,
    issues: ofServers,
    written,
  } = resolveServers(entries, folder, source, settings, folderDefaults);
  issues.push(...ofServers);
  const text = (path: Path, written: string): string => {
    const expansion = expand(written, source.env);
    if ('text' in expansion) return expansion.text;
    issues.push({ path, message: expansion.problem });
    return written;
  };
  const texts = (path: Path, list: readonly string[]) => list.map((written, i) => text([...path, i], written));
  const { active_toolsets: active, http, limits, audit } = settings;
  const identity = resolveIdentity(settings, text, issues);
  const controls = [...new Set(settings.controls ?? source.defaultControls)];
  const { dataDir } = variables;
  const data = dataDir ? resolve(source.cwd, dataDir) : resolve(folder, text(['data_dir'], settings.data_dir));
  const secrets = secretsOf(entries, source.env);
  const config: Config = {
    file: source.file,
    servers,
    activeToolsets: active ? texts(['active_toolsets'], active) : null,
    controls,
    equipped: null,
    selection: settings.selection,
    toolsets: Object.entries(settings.toolsets ?? {}).map(([name, { description, tools }]) => ({
      name,
      description,
      tools: tools.map((namespacedName) => ({ namespacedName })),
      toolNotes: [],
    })),
    names: settings.names ?? (controls.includes('equip') ? 'flat' : source.defaultNames),
    nameLimit: settings.name_limit ?? null,
    startWait: settings.start_wait,
    revisions: variables.revisions ?? settings.revisions ?? ALL_REVISIONS,
    policy: resolvePolicy(settings, issues),
    security: resolveSecurity(settings.security),
    tasks: source.tasks,
    macros: resolveMacros(
      settings,
      [...servers, ...named].map(({ key }) => key),
      issues,
    ),
    dataDir: data,
    folders: { ...folderDefaults, named },
    http: {
      host: text(['http', 'host'], http.host),
      port: variables.port ?? http.port,
      allowedOrigins: variables.origins ?? texts(['http', 'allowed_origins'], http.allowed_origins),
      allowedHosts: texts(['http', 'allowed_hosts'], http.allowed_hosts),
      drain: http.drain,
      sessionTtl: variables.sessionTtl ?? http.session_ttl,
      maxSessions: http.max_sessions,
      sse: variables.sse ?? http.sse,
      requireNamespace: http.require_namespace,
      mcpo: http.mcpo,
      ...identity.http,
      manager: { token: () => variables.managerToken, networks: variables.managerNetworks ?? MANAGER_NETWORKS },
    },
    agents: identity.agents,
    limits: {
      body: limits.body,
      depth: limits.depth,
      message: limits.message,
      page: limits.page ?? null,
      maxResult: limits.max_result ?? null,
      replay: limits.replay,
      unread: limits.unread,
      unreadTotal: limits.unread_total,
    },
    audit: {
      enabled: audit.enabled ?? null,
      dir: audit.dir === undefined ? resolve(data, 'logs') : resolve(folder, text(['audit', 'dir'], audit.dir)),
      retention: variables.retention ?? audit.retention,
      arguments: audit.arguments,
      results: audit.results,
      maxValue: audit.max_value,
      onFailure: audit.on_failure,
    },
    vault: resolveVault(settings.secrets, { env: source.env, cwd: source.cwd, folder, text }, issues),
    secrets: () => (variables.managerToken === null ? secrets : [...secrets, variables.managerToken]),
    written: () => ({ settings: source.written ?? {}, servers: written }),
    notices: [...source.notices, ...notices],
  };
  if (issues.length > 0) throw new InvalidConfig(source.document, issues);
  return deepFreeze(config);
}

function resolveServers(
  entries: readonly Entry[],
  folder: string,
  { document: { name }, env, lenient }: Source,
  settings: Settings,
  folders: Omit<FoldersConfig, 'named'>,
) {
  const servers: ServerConfig[] = [];
  const named: FolderConfig[] = [];
  const notices: string[] = [];
  const issues: Issue[] = [];
  const taken = new Set<string>();
  const written = new Map<string, RawServer>();
  const withheld = tokenVariables(settings);
  for (const [i, entry] of entries.entries()) {
    const leaveOut = (reason: string) => notices.push(`${name}: ${pathText(entry.path)}: left out: ${reason}`);
    const isFolder = entry.server.folder !== undefined;
    const resolved = isFolder ? resolveFolder(entry, folder, env) : resolveLaunch(entry, folder, env);
    const { issues: found } = resolved;
    const launch = 'launch' in resolved ? resolved.launch : null;
    // A server that is switched off may well lack its variables.
    if ((launch === null && !isFolder) || (found.length > 0 && entry.server.enabled)) {
      if (lenient) leaveOut(found.map(({ path, message }) => issueText({ path: path.slice(2), message })).join(' '));
      else issues.push(...found);
    } else if (launch?.kind === 'stdio' && startsToolgate([launch.file, ...launch.args])) {
      leaveOut('it would start Toolgate itself again.');
    } else {
      const key = freeKey([entry.server.namespace, entry.name, `server-${i + 1}`], taken);
      const common = resolveServer(entry, key, settings);
      if (isMap(entry.written)) written.set(key, { isShellLine: entry.shellLine, entry: entry.written });
      if ('folder' in resolved) named.push(toFolder(entry, common, resolved, folders));
      else {
        const kept = launch!.kind === 'stdio' && withheld.length > 0 ? { ...launch!, withheld } : launch!;
        const { share } = entry.server;
        const hashed = launchHash(share === 'session' ? { ...kept, share } : kept);
        servers.push({ ...common, launch: kept, launchHash: hashed });
      }
    }
  }
  return { servers, named, notices, issues, written };
}

function resolveServer(
  { name, server }: Entry,
  key: string,
  settings: Settings,
): Omit<ServerConfig, 'launch' | 'launchHash'> {
  const timeout = server.timeout ?? TIMEOUT;
  return {
    key,
    namespace: server.namespace ?? name ?? '',
    description: server.description,
    enabled: server.enabled,
    required: server.required,
    start: server.start,
    idleStop: server.idle_stop ?? (server.start === 'lazy' ? LAZY_IDLE_STOP : null),
    share: server.share,
    timeout,
    totalTimeout: server.total_timeout ?? Math.max(TOTAL_TIMEOUT, timeout),
    startTimeout: server.start_timeout ?? START_TIMEOUT,
    healthInterval: server.health_interval ?? settings.health_interval,
    limits: {
      ...resolveLimits({ ...server, concurrency: server.concurrency ?? CONCURRENCY }),
      timeout: null,
      totalTimeout: null,
    },
    tools: resolveToolLimits(server.tools),
  };
}

/** The first candidate that says something and is not taken; the last one, numbered, where all are. */
function freeKey(candidates: readonly (string | null | undefined)[], taken: Set<string>): string {
  let key = candidates.find((candidate) => candidate && !taken.has(candidate));
  for (let i = 2; !key; i++) {
    const numbered = `${candidates.at(-1)}-${i}`;
    if (!taken.has(numbered)) key = numbered;
  }
  taken.add(key);
  return key;
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
