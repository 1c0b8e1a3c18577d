/**
 * Other names for an item than its exposed one: `server:name`, `server.name`, the server's own name for it, or a URI with
 * the namespace in its scheme.
 */
import { getOrMake, memo } from '../base/memo.ts';
import type { Catalog, Claims } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { readSchemeUri } from '../catalog/uris.ts';

/**
 * Everything that the alias could mean, including unavailable items: an alias must not change its meaning because a
 * server is down. If it begins with the name of a server, it means an item of that server only.
 */
export function aliased(catalog: Catalog, kind: Kind, alias: string): readonly Entry[] {
  const { claims, sources } = catalog;
  const listed = byScheme(catalog, kind, alias);
  if (listed !== undefined) return [listed];
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

/** The resource or template of that URI, if it has the namespace in its scheme. */
export function byScheme({ claims }: Catalog, kind: Kind, uri: string): Entry | undefined {
  const scheme = kind === 'resource' || kind === 'template' ? readSchemeUri(uri) : null;
  if (scheme === null) return undefined;
  const own = kind === 'resource' ? scheme.uri : scheme.written;
  return byOwnName(claims[kind])
    .get(own)
    ?.find(({ namespace }) => namespace === scheme.namespace);
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
