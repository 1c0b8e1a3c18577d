/** How folders of tools are served, as users write it. */
import * as z from 'zod';
import { count, duration, flag, size, strictMap } from './fields.ts';

export const ISOLATION = ['auto', 'required', 'off'] as const;

const isolation = () => z.enum(ISOLATION, { error: 'expected "auto", "required" or "off"' });

export const foldersSchema = strictMap({
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
});

/** What a single folder says for itself. */
export const folderShape = {
  memory: size().optional().describe('For this `folder`, instead of `folders.memory`.'),
  isolation: isolation().optional().describe('For this `folder`, instead of `folders.isolation`.'),
};
