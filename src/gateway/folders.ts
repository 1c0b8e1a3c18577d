/** Tool folders as servers: those in the data folder, and those that the configuration names. */
import { sha256 } from '../base/hash.ts';
import type { Problem } from '../catalog/catalog.ts';
import { UNLIMITED } from '../config/call-limits.ts';
import type { Config } from '../config/config.ts';
import { launchHash } from '../config/launch.ts';
import type { FolderConfig, ServerConfig } from '../config/servers.ts';
import { referToSecrets } from '../secrets/reference.ts';
import { type NamedFolder, type NamespaceScan, scanNamespaces } from '../workers/namespaces.ts';
import type { Namespace } from '../workers/scan-folder.ts';
import { nameProblem } from '../workers/tool-files.ts';
import { sweepEnvironments } from '../workers/unused-environments.ts';
import { watchNamespaces } from '../workers/watch-folders.ts';

const TOTAL_TIMEOUT = 3_600_000;
const HEALTH_INTERVAL = 30_000;
/** How often environments of deleted folders are looked for. They are removed the second time. */
const SWEEP = 10 * 60_000;

/** A gateway's tool folders, as the last scan found them. */
export interface ToolFolders {
  /** Scans the folders that this configuration names, and those in the data folder. Never rejects. */
  scan(config: Config): Promise<void>;
  /** Whether the last scan covered exactly the folders that this configuration names. */
  isScanned(config: Config): boolean;
  /** The workers that serve the folders under this configuration: one for each language in a folder. */
  serversOf(config: Config): ServerConfig[];
  /** Their namespaces, including those without a tool. */
  namespacesOf(config: Config): string[];
  problemsOf(config: Config): Problem[];
  /** Calls `changed` after each scan that found a difference. */
  watch(changed: () => void): void;
  /** Resolves when `changed` was called for what is on the disk now, if the folders are watched. */
  settled(): Promise<void>;
  close(): void;
}

/** Resolves when the folders have been scanned, which is before their dependencies are installed. */
export async function openToolFolders(initial: Config): Promise<ToolFolders> {
  let places = placesOf(initial);
  let changed = () => {};
  const watching = await watchNamespaces({
    dataDir: initial.dataDir,
    folders: places,
    enabled: initial.folders.watch,
    debounce: initial.folders.debounce,
    changed: () => changed(),
  });
  let unused: ReadonlySet<string> = new Set();
  const sweep = async () => {
    const served = new Set(watching.scan.namespaces.map(({ name }) => name));
    unused = await sweepEnvironments(initial.dataDir, served, unused);
  };
  const sweeping = setInterval(() => void sweep().catch(() => {}), SWEEP);
  sweeping.unref();
  return {
    scan(config) {
      places = placesOf(config);
      return watching.setFolders(places);
    },
    isScanned: (config) => JSON.stringify(placesOf(config)) === JSON.stringify(places),
    serversOf: (config) => serversOf(watching.scan, config),
    namespacesOf: (config) => servedFolders(watching.scan, config).map(({ folder }) => folder.namespace),
    problemsOf: (config) => problemsOf(watching.scan, config),
    watch(then) {
      changed = then;
    },
    settled: () => (initial.folders.watch ? watching.check() : Promise.resolve()),
    close() {
      clearInterval(sweeping);
      watching.close();
    },
  };
}

/** A tool folder with the server key it is served under. */
export interface FoundFolder extends Namespace, Pick<FolderConfig, 'isolation' | 'packages'> {
  readonly key: string;
}

export interface FoundFolders {
  readonly folders: readonly FoundFolder[];
  /** The workers that would serve them. */
  readonly servers: readonly ServerConfig[];
  readonly problems: NamespaceScan['problems'];
}

/** Scans all tool folders that a gateway with this configuration would serve. Starts nothing. */
export async function scanFolders(config: Config): Promise<FoundFolders> {
  const scan = await scanNamespaces(config.dataDir, placesOf(config));
  const folders = servedFolders(scan, config).map(({ namespace, folder }) => {
    const { key, isolation, packages } = folder;
    return { ...namespace, key, isolation, packages };
  });
  return { folders, servers: serversOf(scan, config), problems: problemsOf(scan, config) };
}

/** Their sources are the keys of servers. */
function problemsOf({ problems }: NamespaceScan, { folders }: Config): Problem[] {
  const keys = new Map(folders.named.map((folder) => [idOf(folder), folder.key]));
  return problems.map(({ source, message }) => ({ source: keys.get(source) ?? source, message }));
}

/** The enabled folders that a configuration names. */
function placesOf({ folders }: Config): NamedFolder[] {
  return folders.named.filter(({ enabled }) => enabled).map((named) => ({ name: idOf(named), folder: named.folder }));
}

/** The id under which a folder's state is stored. It cannot collide with the name of a folder in the data folder. */
function idOf({ namespace, folder }: FolderConfig): string {
  return `${nameProblem(namespace) === null ? namespace : 'folder'}.${sha256(folder).slice(0, 8)}`;
}

interface ServedFolder {
  readonly namespace: Namespace;
  readonly folder: FolderConfig;
}

function servedFolders({ namespaces }: NamespaceScan, config: Config): ServedFolder[] {
  const { named } = config.folders;
  const byId = new Map(named.map((folder) => [idOf(folder), folder]));
  const configured = new Set(named.map(({ folder }) => folder));
  const taken = new Set([...config.servers, ...named].map(({ key }) => key));
  return namespaces.flatMap((namespace) => {
    const folder = byId.get(namespace.name);
    if (folder !== undefined) return { namespace, folder };
    // A folder in the data folder that the configuration names too is served as the configuration says, or not at all.
    return config.folders.isHeld === true || configured.has(namespace.folder)
      ? []
      : { namespace, folder: withDefaults(namespace, config, taken) };
  });
}

function serversOf(scan: NamespaceScan, config: Config): ServerConfig[] {
  const served = servedFolders(scan, config);
  const taken = new Set([...config.servers, ...served.map(({ folder }) => folder)].map(({ key }) => key));
  return served.flatMap(({ namespace, folder }) => toServers(namespace, folder, config.dataDir, taken));
}

/** The settings for a folder that the configuration does not name. */
function withDefaults({ name, folder }: Namespace, { folders }: Config, taken: Set<string>): FolderConfig {
  return {
    key: freeKey(name, taken),
    namespace: name,
    description: '',
    enabled: true,
    required: false,
    start: 'eager',
    idleStop: null,
    share: 'project',
    timeout: folders.timeout,
    totalTimeout: Math.max(TOTAL_TIMEOUT, folders.timeout),
    startTimeout: folders.startTimeout,
    healthInterval: HEALTH_INTERVAL,
    limits: { ...UNLIMITED, concurrency: folders.concurrency },
    tools: [],
    folder,
    env: {},
    memory: folders.memory,
    isolation: folders.isolation,
    packages: folders.packages,
  };
}

/** One server for each language, because each language needs its own worker. */
function toServers(
  { name, metadata, parts }: Namespace,
  { folder, env, memory, isolation, packages, ...common }: FolderConfig,
  dataDir: string,
  taken: Set<string>,
): ServerConfig[] {
  const { limits } = metadata;
  const timeout = Math.min(common.timeout, limits.timeout ?? common.timeout);
  return parts.map(({ language, hash }, i) => {
    const launch = {
      kind: 'folder',
      folder,
      language,
      namespace: name,
      dataDir,
      env,
      defaults: Object.fromEntries(Object.entries(metadata.env).map(([key, text]) => [key, referToSecrets(text)])),
      secrets: metadata.secrets,
      version: hash,
      isolation,
      memory: closer(memory, limits.memory),
      ...(packages !== 'registry' && { packages }),
      ...(!limits.network && { network: false as const }),
    } as const;
    return {
      ...common,
      timeout,
      key: i === 0 ? common.key : freeKey(`${common.key}-${language}`, taken),
      description: common.description || metadata.description,
      ...(metadata.version !== '' && { version: metadata.version }),
      ...(metadata.author !== '' && { author: metadata.author }),
      launch,
      launchHash: launchHash(common.share === 'session' ? { ...launch, share: common.share } : launch),
    };
  });
}

/** The smaller of two bounds, of which either may be absent. */
function closer(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

function freeKey(wanted: string, taken: Set<string>): string {
  let key = wanted;
  for (let i = 1; taken.has(key); i++) key = `${wanted}-folder${i === 1 ? '' : i}`;
  taken.add(key);
  return key;
}
