/** Keeps a gateway on the folders of tools in its data folder: one that is dropped, edited or deleted is served anew. */
import type { ServerConfig } from './config/config.ts';
import { launchHash } from './config/launch.ts';
import { resolveLimits } from './config/limits.ts';
import type { Gateway } from './gateway.ts';
import type { Scan } from './workers/namespaces.ts';
import type { Namespace } from './workers/scan-folder.ts';
import { watchNamespaces } from './workers/watch-folders.ts';

export interface FollowingFolders {
  close(): void;
}

/** How long a tool may take, and a worker to start. */
const TIMEOUT = 60_000;
const TOTAL_TIMEOUT = 3_600_000;
const START_TIMEOUT = 60_000;

export async function followFolders(gateway: Gateway): Promise<FollowingFolders> {
  let told = new Set<string>();

  function serve({ namespaces, problems }: Scan): void {
    const texts = problems.map(({ source, message }) => ({ source, message, key: `${source} ${message}` }));
    for (const { source, message, key } of texts) if (!told.has(key)) gateway.events.emit('note', { source, message });
    told = new Set(texts.map(({ key }) => key));
    const taken = new Set(gateway.config.servers.map(({ key }) => key));
    gateway.serve(namespaces.flatMap((namespace) => toServers(namespace, gateway.config.dataDir, taken)));
  }

  const watching = await watchNamespaces({
    dataDir: gateway.config.dataDir,
    enabled: gateway.config.watchFolders,
    changed: serve,
  });
  if (watching.scan.namespaces.length > 0 || watching.scan.problems.length > 0) serve(watching.scan);
  return { close: () => watching.close() };
}

/** One for each language: each has a worker of its own. */
function toServers({ name, folder, metadata, parts }: Namespace, dataDir: string, taken: Set<string>): ServerConfig[] {
  return parts.map(({ language, hash }, i) => {
    const wanted = i === 0 ? name : `${name}-${language}`;
    const key = taken.has(wanted) ? `${wanted}-folder` : wanted;
    taken.add(key);
    const launch = {
      kind: 'folder',
      folder,
      language,
      namespace: name,
      dataDir,
      env: metadata.env,
      version: hash,
    } as const;
    return {
      key,
      namespace: name,
      launch,
      launchHash: launchHash(launch),
      description: metadata.description,
      enabled: true,
      required: false,
      start: 'eager',
      idleStop: null,
      share: 'project',
      timeout: TIMEOUT,
      totalTimeout: TOTAL_TIMEOUT,
      startTimeout: START_TIMEOUT,
      healthInterval: 30_000,
      limits: { ...resolveLimits({ concurrency: 64 }), timeout: null, totalTimeout: null },
      tools: [],
    };
  });
}
