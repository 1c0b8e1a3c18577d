/**
 * Leaves out what nobody has trusted yet. It is shown with the reason, as an entry with a mistake is, and a server that
 * is in force stays as it is (`keep-broken.ts`).
 */
import { counted } from '../base/text.ts';
import type { BrokenEntry } from '../config/broken.ts';
import type { Config } from '../config/config.ts';
import type { FolderConfig, ServerConfig } from '../config/servers.ts';

/**
 * `held` are the keys of servers and folders, `tokens` the hashes of tokens. `dropped` are the namespaces in the data folder that are held too; null if
 * none is. `reason` says what to do.
 */
export function holdUntrusted(
  config: Config,
  held: ReadonlySet<string>,
  dropped: readonly string[] | null,
  tokens: ReadonlySet<string>,
  reason: string,
): Config {
  if (held.size === 0 && dropped === null && tokens.size === 0) return config;
  const isFolder = ({ server }: BrokenEntry) => server?.kind === 'folder';
  const servers = hold(
    config.servers,
    config.broken.filter((one) => !isFolder(one)),
    held,
    reason,
  );
  const folders = hold(config.folders.named, config.broken.filter(isFolder), held, reason);
  const place = folders.left.length;
  return Object.freeze({
    ...config,
    servers: servers.left,
    heldTokens: tokens,
    notices: tokens.size === 0 ? config.notices : [...config.notices, heldText(tokens.size, reason)],
    folders: { ...config.folders, named: folders.left, ...(dropped !== null && { isHeld: true as const }) },
    broken: [
      ...servers.broken,
      ...folders.broken,
      ...(dropped ?? []).map((name) =>
        untrusted(name, { namespace: name, kind: 'folder', required: false, place }, reason),
      ),
    ],
  });
}

function heldText(count: number, reason: string): string {
  return `${counted(count, 'token')} of agents ${count === 1 ? 'lets' : 'let'} nobody in, because nobody has trusted ${count === 1 ? 'it' : 'them'} yet: ${reason}`;
}

function untrusted(key: string, server: NonNullable<BrokenEntry['server']>, reason: string): BrokenEntry {
  return { section: 'servers', key, cause: 'untrusted', problem: reason, server, isKept: false };
}

/** Servers without those that are held, and all entries that are left out, in the order of the file. */
function hold<Server extends ServerConfig | FolderConfig>(
  servers: readonly Server[],
  broken: readonly BrokenEntry[],
  held: ReadonlySet<string>,
  reason: string,
): { readonly left: readonly Server[]; readonly broken: readonly BrokenEntry[] } {
  const isLeft = ({ key, enabled }: Server) => !enabled || !held.has(key);
  const leftBefore = (place: number) => servers.slice(0, place).filter(isLeft).length;
  const entries = [
    // An entry at place 1 comes after the first server and before the second one.
    ...broken.map((one) => ({ at: one.server?.place ?? 0, one })),
    ...servers.flatMap((server, i) =>
      isLeft(server) ? [] : { at: i + 0.5, one: untrusted(server.key, describe(server, i), reason) },
    ),
  ];
  return {
    left: servers.filter(isLeft),
    broken: entries
      .sort((a, b) => a.at - b.at)
      .map(({ one }) => ({
        ...one,
        server: one.server === null ? null : { ...one.server, place: leftBefore(one.server.place) },
      })),
  };
}

function describe(server: ServerConfig | FolderConfig, place: number): NonNullable<BrokenEntry['server']> {
  const { namespace, required } = server;
  const kind = 'folder' in server || server.launch.kind === 'inline' ? 'folder' : server.launch.kind;
  return { namespace, kind, required, place };
}
