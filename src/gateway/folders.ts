/**
 * A gateway with the folders of tools there are: those in its data folder, and those that its configuration names. One that
 * is dropped, edited or deleted is served anew.
 */
import { createHash } from 'node:crypto';
import { UNLIMITED } from '../config/call-limits.ts';
import type { Config } from '../config/config.ts';
import { launchHash } from '../config/launch.ts';
import type { FolderConfig, ServerConfig } from '../config/servers.ts';
import { referToSecrets } from '../secrets/reference.ts';
import { type NamedFolder, type NamespaceScan, scanNamespaces } from '../workers/namespaces.ts';
import type { Namespace } from '../workers/scan-folder.ts';
import { nameProblem } from '../workers/tool-files.ts';
import { watchNamespaces } from '../workers/watch-folders.ts';
import { createGateway } from './gateway.ts';
import type { Beside, Gateway, GatewayOptions } from './types.ts';

const TOTAL_TIMEOUT = 3_600_000;
const HEALTH_INTERVAL = 30_000;

/**
 * A gateway that also serves the folders of tools there are, in its data folder and in the configuration. Resolves when they
 * have been looked at, which is before their dependencies are there.
 */
export async function openGateway(config: Config, options: Omit<GatewayOptions, 'beside'> = {}): Promise<Gateway> {
  let gateway: Gateway | null = null;
  let told = new Set<string>();

  function tell({ problems }: NamespaceScan, { folders }: Config): void {
    const keys = new Map(folders.named.map((folder) => [idOf(folder), folder.key]));
    const texts = problems.map(({ source, message }) => ({ source: keys.get(source) ?? source, message }));
    for (const { source, message } of texts)
      if (!told.has(`${source} ${message}`)) gateway?.events.emit('note', { source, message });
    told = new Set(texts.map(({ source, message }) => `${source} ${message}`));
  }

  function serve(scan: NamespaceScan): void {
    if (gateway === null) return;
    tell(scan, gateway.config);
    gateway.serve(servedOf(scan, gateway.config));
  }

  const watching = await watchNamespaces({
    dataDir: config.dataDir,
    folders: foldersOf(config),
    enabled: config.folders.watch,
    debounce: config.folders.debounce,
    changed: serve,
  });
  const { scan } = watching;
  gateway = createGateway(config, { ...options, beside: { ...servedOf(scan, config), close: watching.close } });
  tell(scan, config);
  gateway.events.listen((name, event) => {
    if (name !== 'config' || !(event as { ok: boolean }).ok || gateway === null) return;
    // What is in the folders may be as before, but not how it is to be served.
    void watching.setFolders(foldersOf(gateway.config)).then(() => serve(watching.scan));
  });
  gateway.reloading.add(() => watching.check());
  return gateway;
}

/** A folder of tools under the key that it is served by. */
export interface FoundFolder extends Namespace {
  readonly key: string;
}

export interface FoundFolders {
  readonly folders: readonly FoundFolder[];
  /** The workers that they would have. */
  readonly servers: readonly ServerConfig[];
  readonly problems: NamespaceScan['problems'];
}

/** What is in all folders of tools that a gateway with this configuration would serve. Nothing is started for it. */
export async function scanFolders(config: Config): Promise<FoundFolders> {
  const scan = await scanNamespaces(config.dataDir, foldersOf(config));
  const folders = servedFolders(scan, config).map(({ namespace, folder }) => ({ ...namespace, key: folder.key }));
  return { folders, servers: servedOf(scan, config).servers, problems: scan.problems };
}

/** The folders that a configuration names and wants served. */
function foldersOf({ folders }: Config): NamedFolder[] {
  return folders.named.filter(({ enabled }) => enabled).map((named) => ({ name: idOf(named), folder: named.folder }));
}

/** Names what is kept of a folder: another than that of a folder in the data folder, whatever the configuration calls it. */
function idOf({ namespace, folder }: FolderConfig): string {
  const hash = createHash('sha256').update(folder).digest('hex').slice(0, 8);
  return `${nameProblem(namespace) === null ? namespace : 'folder'}.${hash}`;
}

function servedOf(scan: NamespaceScan, config: Config): Omit<Beside, 'close'> {
  const served = servedFolders(scan, config);
  const taken = new Set([...config.servers, ...served.map(({ folder }) => folder)].map(({ key }) => key));
  return {
    servers: served.flatMap(({ namespace, folder }) => toServers(namespace, folder, config.dataDir, taken)),
    namespaces: served.map(({ folder }) => folder.namespace),
  };
}

function servedFolders(
  { namespaces }: NamespaceScan,
  config: Config,
): { readonly namespace: Namespace; readonly folder: FolderConfig }[] {
  const { named } = config.folders;
  const byId = new Map(named.map((folder) => [idOf(folder), folder]));
  const own = new Set(named.map(({ folder }) => folder));
  const taken = new Set([...config.servers, ...named].map(({ key }) => key));
  return namespaces.flatMap((namespace) => {
    const folder = byId.get(namespace.name);
    if (folder !== undefined) return { namespace, folder };
    // A folder in the data folder that the configuration names too is served as that says, or not at all.
    return own.has(namespace.folder) ? [] : { namespace, folder: dropped(namespace, config, taken) };
  });
}

/** How a folder is served that nobody said anything about. */
function dropped({ name, folder }: Namespace, { folders }: Config, taken: Set<string>): FolderConfig {
  return {
    key: free(name, taken),
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
  };
}

/** One for each language: each has a worker of its own. */
function toServers(
  { name, metadata, parts }: Namespace,
  { folder, env, memory, isolation, ...common }: FolderConfig,
  dataDir: string,
  taken: Set<string>,
): ServerConfig[] {
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
      memory,
    } as const;
    return {
      ...common,
      key: i === 0 ? common.key : free(`${common.key}-${language}`, taken),
      description: common.description || metadata.description,
      launch,
      launchHash: launchHash(common.share === 'session' ? { ...launch, share: common.share } : launch),
    };
  });
}

function free(wanted: string, taken: Set<string>): string {
  let key = wanted;
  for (let i = 1; taken.has(key); i++) key = `${wanted}-folder${i === 1 ? '' : i}`;
  taken.add(key);
  return key;
}
