/** The section `folders`: how folders of tools are served. What an entry of `servers` says about its own folder goes first. */

import type { ResolveContext } from './context.ts';
import { choice, count, duration, flag, type Section, section, size } from './fields.ts';

/** Whether the processes of folders run in bubblewrap: where that works, always or not at all, or never. */
export type Isolation = 'auto' | 'required' | 'off';

/** What holds for folders of tools that do not say otherwise. */
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
}

const isolation = () => choice(['auto', 'required', 'off'] satisfies Isolation[]);

const foldersShape = {
  watch: flag()
    .prefault(true)
    .describe(
      'Whether folders of tools are watched: a change is served at once. `false`: as they are at the start. ' +
        'The environment variable ENABLE_FS_WATCHER goes first.',
    ),
  debounce: duration(0)
    .prefault('300ms')
    .describe(
      'How long a folder has to be left alone until it is served anew. FS_WATCHER_DEBOUNCE_MS in the environment goes first.',
    ),
  timeout: duration(1)
    .prefault('60s')
    .describe(
      'How long a call of a tool may go without a sign of life. TOOL_CALL_TIMEOUT_SECONDS in the environment goes first.',
    ),
  start_timeout: duration(1)
    .prefault('60s')
    .describe('How long loading the files of a folder may take; what they depend on is installed before.'),
  concurrency: count(1, 1_000_000)
    .prefault(64)
    .describe('Calls that a folder works on at one time. NAMESPACE_MAX_CONCURRENCY in the environment goes first.'),
  memory: size().prefault('1GiB').describe('Bytes of memory that the process of a folder may have.'),
  isolation: isolation()
    .prefault('auto')
    .describe(
      '`auto` keeps the processes of folders apart with bubblewrap where that works, `required` starts none without it, ' +
        '`off` does not use it.',
    ),
};

export const foldersSchema = section(foldersShape);

/** What an entry of `servers` may say about its own folder. */
export const folderShape = {
  memory: size().optional().describe('For this `folder`, instead of `folders.memory`.'),
  isolation: isolation().optional().describe('For this `folder`, instead of `folders.isolation`.'),
};

export function resolveFolders(folders: Section<typeof foldersShape>, context: ResolveContext): FolderDefaults {
  return {
    ...folders,
    watch: context.flagVariable('ENABLE_FS_WATCHER') ?? folders.watch,
    debounce: context.numberVariable('FS_WATCHER_DEBOUNCE_MS', 0, 60_000) ?? folders.debounce,
    timeout: context.numberVariable('TOOL_CALL_TIMEOUT_SECONDS', 0.001, 2_000_000, 1_000) ?? folders.timeout,
    concurrency: context.numberVariable('NAMESPACE_MAX_CONCURRENCY', 1, 1_000_000) ?? folders.concurrency,
  };
}
