/** How folders of tools are served, after reading. */
import { resolve } from 'node:path';
import type { FolderConfig, FoldersConfig, ServerConfig } from './config.ts';
import type { Environment } from './expand.ts';
import type { Issue } from './issues.ts';
import { expander } from './launch.ts';
import { resolveLimits } from './limits.ts';
import type { Entry, Settings } from './schema.ts';
import type { Variables } from './variables.ts';

type Defaults = Omit<FoldersConfig, 'named'>;

export function resolveFolders({ folders }: Settings, variables: Variables): Defaults {
  return {
    watch: variables.watch ?? folders.watch,
    debounce: variables.debounce ?? folders.debounce,
    timeout: variables.callTimeout ?? folders.timeout,
    startTimeout: folders.start_timeout,
    concurrency: variables.concurrency ?? folders.concurrency,
    memory: folders.memory,
    isolation: folders.isolation,
  };
}

export interface ResolvedFolder {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly issues: readonly Issue[];
}

/** Of an entry with `folder`; `base` is the one that relative paths start from. */
export function resolveFolder({ path, server }: Entry, base: string, env: Environment): ResolvedFolder {
  const { text, texts, issues } = expander(path, env);
  return { folder: resolve(base, text(['folder'], server.folder ?? '', null)), env: texts('env', server.env), issues };
}

/** What `[folders]` says holds where the entry itself says nothing. */
export function toFolder(
  { server }: Entry,
  common: Omit<ServerConfig, 'launch' | 'launchHash'>,
  { folder, env }: ResolvedFolder,
  defaults: Defaults,
): FolderConfig {
  const timeout = server.timeout ?? defaults.timeout;
  return {
    ...common,
    timeout,
    totalTimeout: server.total_timeout ?? Math.max(common.totalTimeout, timeout),
    startTimeout: server.start_timeout ?? defaults.startTimeout,
    limits: {
      ...resolveLimits({ ...server, concurrency: server.concurrency ?? defaults.concurrency }),
      timeout: null,
      totalTimeout: null,
    },
    folder,
    env,
    memory: server.memory ?? defaults.memory,
    isolation: server.isolation ?? defaults.isolation,
  };
}
