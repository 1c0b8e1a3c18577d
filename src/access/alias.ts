/** Other words for an item than its exposed name: `server:name`, `server.name`, or the server's own name for it alone. */
import type { Catalog, Claims } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';

/**
 * Everything that the alias could mean, also what is away: an alias does not change its meaning because its server is down.
 * Where it begins with the name of a server it means that server and no other, whatever others call their items.
 */
export function aliased({ claims, sources }: Catalog, kind: Kind, alias: string): readonly Entry[] {
  const server = serverIn(alias, sources);
  const names = byOwnName(claims[kind]);
  if (server === null) return names.get(alias) ?? [];
  const ofServer = (name: string) => {
    const all =
      names.get(name)?.filter(({ sourceKey, namespace }) => sourceKey === server || namespace === server) ?? [];
    // Namespaces may be shared, keys are not.
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

type Names = ReadonlyMap<string, readonly Entry[]>;

// Most callers say exposed names, so it is made when the first one does not, and once for all views of a catalog.
const indexes = new WeakMap<Claims[Kind], Names>();

function byOwnName(claims: Claims[Kind]): Names {
  const known = indexes.get(claims);
  if (known !== undefined) return known;
  const names = new Map<string, Entry[]>();
  for (const entry of claims.values()) {
    if (entry === null) continue;
    const namesakes = names.get(entry.item.name);
    if (namesakes === undefined) names.set(entry.item.name, [entry]);
    else namesakes.push(entry);
  }
  indexes.set(claims, names);
  return names;
}
