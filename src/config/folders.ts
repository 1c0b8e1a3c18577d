/** How folders of tools are served, after reading. */
import { resolve } from 'node:path';
import type { FolderConfig, FoldersConfig, ServerConfig } from './config.ts';
import type { Environment } from './expand.ts';
import type { Issue } from './issues.ts';
import { expander } from './launch.ts';
import { resolveLimits } from './limits.ts';
import type { Entry, Settings } from './schema.ts';

type Defaults = Omit<FoldersConfig, 'named'>;

const MOST_SECONDS = 2_000_000;
const MOST_CALLS = 1_000_000;

/** The variables of the environment go before what is written. */
export function resolveFolders({ folders }: Settings, env: Environment, issues: Issue[]): Defaults {
  const wrong = (name: string, expected: string) =>
    issues.push({ path: [], message: `the environment variable ${name} is not ${expected}. Correct it` });
  const number = (name: string, most: number): number | null => {
    const text = env[name];
    if (!text) return null;
    const value = Number(text);
    if (/^\d+(\.\d+)?$/.test(text) && value <= most) return value;
    wrong(name, `a number up to ${most}`);
    return null;
  };
  const watcher = env.ENABLE_FS_WATCHER;
  if (watcher && !['true', 'false'].includes(watcher)) wrong('ENABLE_FS_WATCHER', 'true or false');
  const seconds = number('TOOL_CALL_TIMEOUT_SECONDS', MOST_SECONDS);
  return {
    watch: watcher ? watcher === 'true' : folders.watch,
    debounce: number('FS_WATCHER_DEBOUNCE_MS', 60_000) ?? folders.debounce,
    timeout: seconds === null ? folders.timeout : Math.max(1, Math.round(seconds * 1_000)),
    startTimeout: folders.start_timeout,
    concurrency: Math.max(1, Math.floor(number('NAMESPACE_MAX_CONCURRENCY', MOST_CALLS) ?? folders.concurrency)),
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
