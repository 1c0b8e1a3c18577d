/**
 * The sections `servers` and `mcpServers`: one entry per server, which is a program, an address or a folder of tools.
 */
import * as z from 'zod';
import { canonicalJson, sha256 } from '../base/hash.ts';
import { isObject } from '../base/objects.ts';
import { quotedList } from '../base/text.ts';
import { type BadEntry, type BrokenDraft, describeBroken } from './broken.ts';
import {
  type CallLimits,
  limitsByTool,
  resolveToolLimits,
  serverLimitShape,
  type ToolLimits,
  toolLimitsSchema,
} from './call-limits.ts';
import { createContext, type ResolveContext } from './context.ts';
import { camelCased, choice, duration, flag, strictMap, text } from './fields.ts';
import { type FolderDefaults, folderShape, type Isolation, type Packages } from './folders.ts';
import { type Issue, type Path, pathText } from './issues.ts';
import {
  expandMap,
  type Launch,
  launchHash,
  launchShape,
  resolveLaunch,
  resolveSandbox,
  type Sandbox,
} from './launch.ts';
import type { RawServer } from './raw-config.ts';
import { startsToolgate } from './self-reference.ts';

/** One server of a configuration. */
export interface ServerConfig {
  /**
   * Unique in the configuration: the namespace, or the name of the entry. If there is neither, or they are taken, a name
   * made from what it runs, which stays the same wherever its entry is. Names the server in logs and in toolsets.
   */
  readonly key: string;
  readonly namespace: string;
  readonly launch: Launch;
  /** Hash of `launch` and `share`. It names the offer on disk and decides whether a reload restarts the server. */
  readonly launchHash: string;
  readonly description: string;
  /** Version and author of a folder of tools, as it says itself; absent if it does not. */
  readonly version?: string;
  readonly author?: string;
  readonly enabled: boolean;
  readonly required: boolean;
  readonly start: 'eager' | 'lazy';
  /** Milliseconds without a call after which the server is stopped; null keeps it running. */
  readonly idleStop: number | null;
  /** Whether all callers share it, or each has its own connection. */
  readonly share: 'project' | 'session';
  /** Whether each agent has a login of its own; absent if all use the same one. */
  readonly credentials?: 'agent';
  /** Milliseconds that one call may go without a sign of life. */
  readonly timeout: number;
  /** Milliseconds that one call may take in all. */
  readonly totalTimeout: number;
  /** Milliseconds that start-up and listing may take. */
  readonly startTimeout: number;
  /** Milliseconds between two checks that it still answers; 0 for no checks. */
  readonly healthInterval: number;
  /** How much its calls may take, all together; its time-outs are given above. */
  readonly limits: CallLimits;
  /** The same for single tools, by its own names for them. */
  readonly tools: readonly ToolLimits[];
}

/** A folder of tools that the configuration names. Its content decides how many workers it has. */
export interface FolderConfig extends Omit<ServerConfig, 'launch' | 'launchHash'> {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Bytes that one worker may have. */
  readonly memory: number;
  readonly isolation: Isolation;
  readonly packages: Packages;
}

/** Folders of tools: the settings for those in the data folder, and the folders that have an entry. */
export interface FoldersConfig extends FolderDefaults {
  readonly named: readonly FolderConfig[];
  /** Whether those in the data folder are not served, because nobody has trusted them yet. Absent: they are. */
  readonly isHeld?: true;
}

const NAMESPACE = /^[A-Za-z0-9_.-]*$/;
const NAMESPACE_FORM = 'only letters, digits, "_", "." and "-"';
const LAZY_IDLE_STOP = 600_000;
const TOTAL_TIMEOUT = 3_600_000;
/** For programs and addresses. Folders take their defaults from the section `folders`. */
const PROGRAM_DEFAULTS = { timeout: 300_000, startTimeout: 30_000, concurrency: 256 };

export const serverShape = {
  namespace: text()
    .regex(NAMESPACE, { error: `expected ${NAMESPACE_FORM}` })
    .optional()
    .describe(
      'Prefix of everything the server offers: `git` makes its `status` tool `git_status`. May be empty. ' +
        'Default: the name of the entry if `servers` is a map, else empty.',
    ),
  ...launchShape,
  description: text().prefault('').describe('What the server is for, in one sentence; shown in lists.'),
  enabled: flag().prefault(true).describe('`false` keeps the entry in the file without starting the server.'),
  required: flag().prefault(false).describe('`true` makes `/ready` wait until this server is up.'),
  start: choice(['eager', 'lazy'])
    .prefault('eager')
    .describe('`eager` starts the server with Toolgate, `lazy` when it is first needed.'),
  idle_stop: duration(1)
    .optional()
    .describe('Stops the server after this long without a call. Default: never; `10m` for a lazy server.'),
  share: choice(['project', 'session'])
    .prefault('project')
    .describe('`project`: all clients share the server. `session`: each client has its own process or connection.'),
  credentials: choice(['shared', 'agent'])
    .optional()
    .describe(
      'Whose login calls to `url` are made with. `shared` (default): one for all. `agent`: each agent has its own ' +
        '(`toolgate login SERVER --agent NAME`), and a connection of its own; the shared one only lists.',
    ),
  timeout: duration(1)
    .optional()
    .describe(
      'How long one call may go without a sign of life: progress restarts the clock, and a question to a person stops it. ' +
        'Default: `5m`, or `folders.timeout` for a `folder`.',
    ),
  total_timeout: duration(1)
    .optional()
    .describe('How long one call may take in all. Default: `1h`, or `timeout` if that is longer.'),
  start_timeout: duration(1)
    .optional()
    .describe(
      'How long starting the server and listing its tools may take. Default: `start_timeout` of all servers, or `folders.start_timeout` for a `folder`.',
    ),
  health_interval: duration(0).optional().describe('For this server, instead of the setting of the same name.'),
  resolve_packages: flag().optional().describe('For this server, instead of the setting of the same name.'),
  ...folderShape,
  ...serverLimitShape,
  tools: limitsByTool(toolLimitsSchema)
    .optional()
    .describe("Limits of individual tools, by the server's own name for them or a pattern."),
};

/** The keys of which a server has exactly one: a program, an address or a folder. */
const REACHED_BY = ['command', 'url', 'folder'] as const;
type ReachedBy = (typeof REACHED_BY)[number];

const transportsOf: Readonly<Record<ReachedBy, readonly string[]>> = {
  command: ['stdio'],
  url: ['http', 'sse'],
  folder: [],
};

/** Keys that only some kinds of server have. */
const keysOf = {
  args: ['command'],
  env: ['command', 'folder'],
  cwd: ['command'],
  inherit_env: ['command'],
  resolve_packages: ['command'],
  sandbox: ['command'],
  headers: ['url'],
  tls: ['url'],
  oauth: ['url'],
  credentials: ['url'],
  memory: ['folder'],
  isolation: ['folder'],
  packages: ['folder'],
} as const satisfies Readonly<Record<string, readonly ReachedBy[]>>;

/** The keys that servers of this kind do not have. */
export function keysWithout(reachedBy: ReachedBy): string[] {
  return Object.entries(keysOf).flatMap(([key, kinds]) =>
    (kinds as readonly ReachedBy[]).includes(reachedBy) ? [] : key,
  );
}

const serverMap = strictMap(serverShape);

function checkServer(server: z.output<typeof serverMap>, context: z.core.$RefinementCtx): void {
  const add = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  const { transport } = server;
  const [reachedBy, other] = REACHED_BY.filter((key) => server[key] !== undefined);
  if (reachedBy === undefined) {
    add(
      [],
      'needs "command" (a program to start), "url" (an address to connect to) or "folder" (a folder of tool files)',
    );
    return;
  }
  if (other !== undefined) {
    add([other], `cannot be combined with "${reachedBy}". Keep one of the two`);
    return;
  }
  const isKnown = Object.values(transportsOf).some((all) => all.includes(transport ?? ''));
  if (transport !== undefined && isKnown && !transportsOf[reachedBy].includes(transport)) {
    const [fitting] = transportsOf[reachedBy];
    const instead = fitting === undefined ? 'Leave it out' : `Use "${fitting}" or leave it out`;
    add(['transport'], `"${transport}" needs "${transport === 'stdio' ? 'command' : 'url'}". ${instead}`);
  }
  for (const [key, kinds] of Object.entries(keysOf) as [keyof typeof keysOf, readonly ReachedBy[]][]) {
    if (server[key] === undefined || kinds.includes(reachedBy)) continue;
    add([key], `has no effect with "${reachedBy}": it is for servers with ${quotedList(kinds)}`);
  }
  const { oauth, credentials } = server;
  if (isObject(oauth) && oauth.grant === 'token_exchange' && credentials !== 'agent')
    add(['credentials'], 'is missing: "token_exchange" is for servers with credentials = "agent"');
}

export const serverSchema = serverMap
  .superRefine(checkServer, {
    // Conflicts between keys are reported even if a single value is wrong, but not if there is an unknown key: that may
    // be a mistyped `command`, which would be reported as missing.
    when: ({ value, issues }) => isObject(value) && !issues.some((issue) => issue.code === 'unrecognized_keys'),
  })
  .meta({
    id: 'Server',
    description:
      'An MCP server behind the gateway: a program to start (`command`), an address (`url`) or a folder of tool files (`folder`).',
    oneOf: REACHED_BY.map((key) => ({ required: [key] })),
  })
  .transform(camelCased(serverShape));

export type ServerSection = z.output<typeof serverSchema>;

const serversByName = z.record(z.string(), serverSchema, { error: 'expected a map of servers' }).superRefine(
  (servers, context) => {
    for (const [name, server] of Object.entries(servers)) {
      // An entry that failed its own check still has the keys that the user wrote.
      if ((server?.namespace ?? null) === null && !NAMESPACE.test(name)) {
        const message = `the name becomes the prefix of the tools: use ${NAMESPACE_FORM}, or set "namespace"`;
        context.addIssue({ code: 'custom', path: [name], message });
      }
    }
  },
  { when: ({ value }) => isObject(value) },
);

export const serversShape = {
  servers: z
    .union([z.array(serverSchema), serversByName], { error: 'expected a list or a map of servers' })
    .optional()
    .describe('The MCP servers behind the gateway: a list of entries with `namespace`, or a map by name.'),
  mcpServers: serversByName
    .optional()
    .describe('The same map in the form of MCP clients: `command` is always one executable with `args`.'),
};

/** One server of a file, with its path in it. */
export interface ServerEntry {
  readonly path: Path;
  /** The entry's name if servers are a map. */
  readonly name: string | null;
  readonly server: ServerSection;
  /** Whether `command` without `args` is a shell line; else it is an executable. */
  readonly isShellLine: boolean;
  /** As it is written; absent if nothing needs that. */
  readonly written?: unknown;
}

interface Servers {
  readonly servers: readonly ServerSection[] | Readonly<Record<string, ServerSection>> | null;
  readonly mcpServers: Readonly<Record<string, ServerSection>> | null;
}

/** The servers in the order in which they are written. */
export function entriesOf({ servers, mcpServers }: Servers): ServerEntry[] {
  const byName = (key: string, map: Readonly<Record<string, ServerSection>>, isShellLine: boolean): ServerEntry[] =>
    Object.entries(map).map(([name, server]) => ({ path: [key, name], name, server, isShellLine }));
  const listed = isList(servers)
    ? servers.map((server, i) => ({ path: ['servers', i], name: null, server, isShellLine: true }))
    : byName('servers', servers ?? {}, true);
  return [...listed, ...byName('mcpServers', mcpServers ?? {}, false)];
}

function isList(servers: Servers['servers']): servers is readonly ServerSection[] {
  return Array.isArray(servers);
}

export interface ServerSettings {
  /** The file as the user would name it. */
  readonly document: string;
  /** Whether an entry that cannot be resolved is left out and reported; else it fails the whole configuration. */
  readonly lenient: boolean;
  readonly healthInterval: number;
  /** Of all servers that have none of their own; null for the default. */
  readonly startTimeout: number | null;
  readonly resolvePackages: boolean;
  readonly folders: FolderDefaults;
  /** Variables that programs do not inherit. */
  readonly withheld: readonly string[];
  /** Variables that all programs inherit besides the ordinary ones. */
  readonly inheritEnv: readonly string[];
  /** What no sandbox shows. */
  readonly own: Pick<Sandbox, 'dataDir' | 'hides'>;
}

export interface ResolvedServers {
  readonly servers: readonly ServerConfig[];
  /** The entries that are folders of tools. */
  readonly folders: readonly FolderConfig[];
  readonly notices: readonly string[];
  /** The entries that were left out. */
  readonly broken: readonly BrokenDraft[];
  /** As they are written, by key. */
  readonly written: ReadonlyMap<string, RawServer>;
}

export function resolveServers(
  entries: readonly (ServerEntry | BadEntry)[],
  settings: ServerSettings,
  context: ResolveContext,
): ResolvedServers {
  const servers: ServerConfig[] = [];
  const folders: FolderConfig[] = [];
  const notices: string[] = [];
  const written = new Map<string, RawServer>();
  const broken: BrokenDraft[] = [];
  const taken = new Set<string>();
  const madeKey = keyMaker(entries);
  for (const entry of entries) {
    const { path, name } = entry;
    // A broken entry keeps its key, so that no policy or limit for it is applied to another server.
    const leaveBroken = (issues: readonly Issue[]) => {
      const known = describeBroken(entry.written, name);
      const key = freeKey([known.namespace, name, madeKey(entry)], taken);
      const place = (known.kind === 'folder' ? folders : servers).length;
      broken.push({ section: 'servers', key, issues, server: { ...known, place } });
    };
    if ('issues' in entry) {
      leaveBroken(entry.issues);
      continue;
    }
    const { server, isShellLine } = entry;
    const leaveOut = (reason: string) => notices.push(`${settings.document}: ${pathText(path)}: left out: ${reason}`);
    const own = createContext(context, path);
    const target = server.folder === null ? resolveLaunch(server, isShellLine, own) : resolveFolder(server, own);
    // The variables of a disabled server may be missing.
    if (target === null || (own.issues.length > 0 && server.enabled)) {
      if (settings.lenient) leaveBroken(own.issues);
      else context.issues.push(...own.issues);
    } else if ('file' in target && startsToolgate([target.file, ...target.args])) {
      leaveOut('it would start Toolgate itself again.');
    } else {
      const key = freeKey([server.namespace, name, madeKey(entry)], taken);
      if (isObject(entry.written)) written.set(key, { isShellLine, entry: entry.written });
      if ('kind' in target) servers.push(resolveServer(entry, key, target, settings, own));
      else folders.push(resolveFolderEntry(entry, key, target, settings));
    }
  }
  return { servers, folders, notices, broken, written };
}

function resolveServer(
  entry: ServerEntry,
  key: string,
  launch: Launch,
  settings: ServerSettings,
  context: ResolveContext,
): ServerConfig {
  const share = shareOf(entry.server);
  const kept = launch.kind === 'stdio' ? withSettings(launch, entry, settings, context) : launch;
  return {
    ...resolveCommon(
      entry,
      key,
      { ...PROGRAM_DEFAULTS, startTimeout: settings.startTimeout ?? PROGRAM_DEFAULTS.startTimeout },
      settings,
    ),
    launch: kept,
    launchHash: launchHash(share === 'session' ? { ...kept, share } : kept),
  };
}

function withSettings<Program extends Extract<Launch, { kind: 'stdio' }>>(
  launch: Program,
  { server }: ServerEntry,
  { withheld, inheritEnv, resolvePackages, own }: ServerSettings,
  context: ResolveContext,
): Program {
  const sandbox = resolveSandbox(server, own, context);
  return {
    ...launch,
    ...(sandbox !== null && { sandbox }),
    ...(withheld.length > 0 && { withheld }),
    ...(inheritEnv.length > 0 && { inherits: [...inheritEnv, ...(launch.inherits ?? [])] }),
    ...(!(server.resolvePackages ?? resolvePackages) && { keepsRunner: true }),
  };
}

type FolderTarget = Pick<FolderConfig, 'folder' | 'env'>;

function resolveFolder({ folder, env }: ServerSection, context: ResolveContext): FolderTarget {
  return { folder: context.path(['folder'], folder ?? ''), env: expandMap('env', env, context) };
}

function resolveFolderEntry(
  entry: ServerEntry,
  key: string,
  target: FolderTarget,
  settings: ServerSettings,
): FolderConfig {
  const { server } = entry;
  return {
    ...resolveCommon(entry, key, settings.folders, settings),
    ...target,
    memory: server.memory ?? settings.folders.memory,
    isolation: server.isolation ?? settings.folders.isolation,
    packages: server.packages ?? settings.folders.packages,
  };
}

/** What programs, addresses and folders have in common. */
function resolveCommon(
  { name, server }: ServerEntry,
  key: string,
  defaults: Pick<FolderDefaults, 'timeout' | 'startTimeout' | 'concurrency'>,
  { healthInterval }: ServerSettings,
): Omit<ServerConfig, 'launch' | 'launchHash'> {
  const timeout = server.timeout ?? defaults.timeout;
  return {
    key,
    namespace: server.namespace ?? name ?? '',
    description: server.description,
    enabled: server.enabled,
    required: server.required,
    start: server.start,
    idleStop: server.idleStop ?? (server.start === 'lazy' ? LAZY_IDLE_STOP : null),
    share: shareOf(server),
    ...(server.credentials === 'agent' && { credentials: 'agent' as const }),
    timeout,
    totalTimeout: server.totalTimeout ?? Math.max(TOTAL_TIMEOUT, timeout),
    startTimeout: server.startTimeout ?? defaults.startTimeout,
    healthInterval: server.healthInterval ?? healthInterval,
    limits: {
      timeout: null,
      totalTimeout: null,
      concurrency: server.concurrency ?? defaults.concurrency,
      queue: server.queue,
      rate: server.rate,
      callsPerDay: server.callsPerDay,
      maxArguments: server.maxArguments,
      maxResult: server.maxResult,
    },
    tools: resolveToolLimits(server.tools ?? {}),
  };
}

/** Servers may tie a session to the one who opened it, so agents with logins of their own share none. */
function shareOf({ share, credentials }: ServerSection): ServerConfig['share'] {
  return credentials === 'agent' ? 'session' : share;
}

/**
 * Keys for entries without a name, made from what they run as it is written. A place in the file would belong to another
 * server after an edit, and toolsets and policies with it. Entries that run the same differ by their variables.
 */
function keyMaker(entries: readonly (ServerEntry | BadEntry)[]): (entry: ServerEntry | BadEntry) => string {
  const counts = new Map<string, number>();
  const runs = (entry: ServerEntry | BadEntry) => hashOf(entry, ['command', 'args', 'url', 'folder', 'cwd']);
  for (const entry of entries) counts.set(runs(entry), (counts.get(runs(entry)) ?? 0) + 1);
  return (entry) => {
    const hash = runs(entry);
    const isOnly = counts.get(hash) === 1;
    return `server-${isOnly ? hash : hashOf(entry, ['command', 'args', 'url', 'folder', 'cwd', 'env', 'headers'])}`;
  };
}

function hashOf(entry: ServerEntry | BadEntry, keys: readonly string[]): string {
  const written: Readonly<Record<string, unknown>> =
    'server' in entry ? { ...entry.server } : isObject(entry.written) ? entry.written : {};
  const values = keys.map((key) => (isEmpty(written[key]) ? null : written[key]));
  return sha256(canonicalJson(values)).slice(0, 8);
}

/** Absent keys of valid entries have defaults. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0);
}

/** The first candidate that is neither empty nor taken; if all are, the last one with a number. */
function freeKey(candidates: readonly (string | null)[], taken: Set<string>): string {
  let key = candidates.find((candidate) => candidate && !taken.has(candidate));
  for (let i = 2; !key; i++) {
    const numbered = `${candidates.at(-1)}-${i}`;
    if (!taken.has(numbered)) key = numbered;
  }
  taken.add(key);
  return key;
}
