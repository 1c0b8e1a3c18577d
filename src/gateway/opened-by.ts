/** What an edit of the configuration may open: programs that it starts, and rules that it changes. */
import { isSameValue } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import type { FolderConfig, ServerConfig } from '../config/servers.ts';

/** Keys that decide what is shown and how, but not what is allowed. A key that is added later is not one of them. */
const HARMLESS: readonly (keyof Config)[] = [
  'activeToolsets',
  'broken',
  'callThrough',
  'catalog',
  'controls',
  'equipped',
  'nameLimit',
  'names',
  'notices',
  'revisions',
  'searchesMany',
  'selection',
  'shared',
  'sharedIdle',
  'startWait',
  'toolsets',
  'uriStyle',
  // What these mean is compared.
  'secrets',
  'written',
  'servers',
  'folders',
];

/** The same of a server. */
const HARMLESS_OF_SERVER: readonly (keyof ServerConfig)[] = [
  'description',
  'healthInterval',
  'idleStop',
  'required',
  'start',
  'startTimeout',
  'timeout',
  'totalTimeout',
];

/** The servers and settings that have to be confirmed, by name. Nothing if the edit only takes away or rearranges. */
export function openedBy(before: Config, after: Config): string[] {
  const known = [...before.servers, ...before.folders.named].map(essence);
  const servers = [...after.servers, ...after.folders.named].filter(
    (server) => server.enabled && !known.some((one) => isSameValue(one, essence(server))),
  );
  const { named: _, ...folders } = before.folders;
  const { named: __, ...nextFolders } = after.folders;
  const keys = (Object.keys(after) as (keyof Config)[]).filter((key) => !HARMLESS.includes(key));
  return [
    ...servers.map(({ key }) => `server "${key}"`),
    ...keys.filter((key) => !isSameValue(before[key], after[key])).map(written),
    ...(isSameValue(folders, nextFolders) ? [] : ['folders']),
  ];
}

function essence(server: ServerConfig | FolderConfig): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(server).filter(([key]) => !HARMLESS_OF_SERVER.includes(key as keyof ServerConfig)),
  );
}

/** The key as users write it: `dataDir` is `data_dir`. */
function written(key: string): string {
  if (key === 'vault') return 'secrets';
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
