/** The section `folders`: how folders of tools are served. An entry of `servers` overrides it for its own folder. */
import type { ResolveContext } from './context.ts';
import { choice, count, duration, flag, type Section, section, size } from './fields.ts';

/** Whether the workers of tool folders run in bubblewrap: if it works, always (or they do not start), or never. */
export type Isolation = 'auto' | 'required' | 'off';

/** Which packages a folder may ask for: built ones of a registry, or also those that run code when they are installed. */
export type Packages = 'registry' | 'any';

/** The defaults for folders of tools. */
export interface FolderDefaults {
  readonly watch: boolean;
  /** Milliseconds. */
  readonly debounce: number;
  readonly timeout: number;
  readonly startTimeout: number;
  readonly concurrency: number;
  /** Bytes. */
  readonly memory: number;
  readonly isolation: Isolation;
  readonly packages: Packages;
}

const START_TIMEOUT = 60_000;

const isolation = () => choice(['auto', 'required', 'off'] satisfies Isolation[]);

const packages = () => choice(['registry', 'any'] satisfies Packages[]);

const foldersShape = {
  watch: flag()
    .prefault(true)
    .describe(
      'Whether folders of tools are watched, so that changes take effect at once. `false`: they stay as they are at the start. ' +
        'The environment variable ENABLE_FS_WATCHER overrides this.',
    ),
  debounce: duration(0)
    .prefault('300ms')
    .describe(
      'How long a folder must be unchanged before it is loaded again. The environment variable FS_WATCHER_DEBOUNCE_MS overrides this.',
    ),
  timeout: duration(1)
    .prefault('60s')
    .describe(
      'How long a call may go without a sign of life. The environment variable TOOL_CALL_TIMEOUT_SECONDS overrides this.',
    ),
  start_timeout: duration(1)
    .optional()
    .describe(
      'How long loading the files of a folder may take. Their dependencies are installed before that. ' +
        'Default: `start_timeout` of all servers, or `60s`.',
    ),
  concurrency: count(1, 1_000_000)
    .prefault(64)
    .describe(
      'How many calls a folder handles at one time. The environment variable NAMESPACE_MAX_CONCURRENCY overrides this.',
    ),
  memory: size().prefault('1GiB').describe('Memory that the process of a folder may use.'),
  isolation: isolation()
    .prefault('auto')
    .describe(
      '`auto` isolates the processes of folders with bubblewrap if that works, `required` starts none without it, ' +
        '`off` does not use it. Installers of their packages are isolated in the same way.',
    ),
  packages: packages()
    .prefault('registry')
    .describe(
      '`registry` installs versions of packages from registries, and wheels only for Python. `any` also takes source packages, ' +
        'folders, addresses and repositories, which may run code while they are installed.',
    ),
};

export const foldersSchema = section(foldersShape);

/** What an entry of `servers` may say about its own folder. */
export const folderShape = {
  memory: size().optional().describe('For this `folder`, instead of `folders.memory`.'),
  isolation: isolation().optional().describe('For this `folder`, instead of `folders.isolation`.'),
  packages: packages().optional().describe('For this `folder`, instead of `folders.packages`.'),
};

/** `startTimeout` is that of all servers; null if the configuration has none. */
export function resolveFolders(
  folders: Section<typeof foldersShape>,
  startTimeout: number | null,
  context: ResolveContext,
): FolderDefaults {
  return {
    ...folders,
    startTimeout: folders.startTimeout ?? startTimeout ?? START_TIMEOUT,
    watch: context.flagVariable('ENABLE_FS_WATCHER') ?? folders.watch,
    debounce: context.numberVariable('FS_WATCHER_DEBOUNCE_MS', 0, 60_000) ?? folders.debounce,
    timeout: context.numberVariable('TOOL_CALL_TIMEOUT_SECONDS', 0.001, 2_000_000, 1_000) ?? folders.timeout,
    concurrency: context.numberVariable('NAMESPACE_MAX_CONCURRENCY', 1, 1_000_000) ?? folders.concurrency,
  };
}
