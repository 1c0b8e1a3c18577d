/** Other names for an item than its exposed one: `server:name`, `server.name`, or the server's own name for it. */
import { getOrMake, memo } from '../base/memo.ts';
import type { Catalog, Claims } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';

/**
 * Everything that the alias could mean, including unavailable items: an alias must not change its meaning because a
 * server is down. If it begins with the name of a server, it means an item of that server only.
 */
export function aliased({ claims, sources }: Catalog, kind: Kind, alias: string): readonly Entry[] {
  const server = serverIn(alias, sources);
  const names = byOwnName(claims[kind]);
  if (server === null) return names.get(alias) ?? [];
  const ofServer = (name: string) => {
    const all =
      names.get(name)?.filter(({ sourceKey, namespace }) => sourceKey === server || namespace === server) ?? [];
    // Servers may share a namespace, but not a key.
    const exact = all.filter(({ sourceKey }) => sourceKey === server);
    return exact.length > 0 ? exact : all;
  };
  const meant = ofServer(alias.slice(server.length + 1));
  return meant.length > 0 ? meant : ofServer(alias);
}

/** The longest name of a server that the alias begins with. */
function serverIn(alias: string, sources: ReadonlySet<string>): string | null {
  let longest: string | null = null;
  for (const source of sources) {
    const mark = alias[source.length];
    if ((mark !== ':' && mark !== '.') || !alias.startsWith(source)) continue;
    if (longest === null || source.length > longest.length) longest = source;
  }
  return longest;
}

/** Built once for all views of a catalog, when a caller first uses an alias: most use exposed names. */
const byOwnName = memo((claims: Claims[Kind]): ReadonlyMap<string, readonly Entry[]> => {
  const names = new Map<string, Entry[]>();
  for (const entry of claims.values()) if (entry !== null) getOrMake(names, entry.item.name, () => []).push(entry);
  return names;
});
