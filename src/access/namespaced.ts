/** The catalog as it looks from inside one namespace: nothing else is there, and names have no prefix. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { exposedName, type Naming } from '../catalog/names.ts';
import type { ViewControls } from './view.ts';

// Callers in the same namespace look at the same catalog, so that what hangs on it is made once for all of them.
const made = new WeakMap<Catalog, Map<string, Catalog>>();

/** Only the names change: entries stay what they are to policies, limits and figures, whichever way they are come by. */
export function namespaced(catalog: Catalog, namespace: string | null, naming: Naming): Catalog {
  if (namespace === null) return catalog;
  const known = made.get(catalog) ?? new Map<string, Catalog>();
  const inside = known.get(namespace) ?? enter(catalog, namespace, naming);
  made.set(catalog, known.set(namespace, inside));
  return inside;
}

function enter(catalog: Catalog, namespace: string, naming: Naming): Catalog {
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  const claims = {} as Record<Kind, ReadonlyMap<string, Entry | null>>;
  const names = new Map<Entry, string>();
  for (const kind of KINDS) {
    const inside = new Map<string, Entry>();
    for (const entry of catalog.claims[kind].values()) {
      if (entry === null || entry.namespace !== namespace) continue;
      const bare = exposedName(kind, '', entry.item.name, naming);
      // Two servers of one namespace may have the same name for two things: the first keeps it.
      const name = inside.has(bare) ? entry.name : bare;
      inside.set(name, entry);
      names.set(entry, name);
    }
    claims[kind] = inside;
    entries[kind] = new Map([...inside].filter(([, entry]) => catalog.entries[kind].get(entry.name) === entry));
  }
  return Object.freeze({
    ...catalog,
    entries: Object.freeze(entries),
    claims: Object.freeze(claims),
    // No names with a server in front: there is but one namespace here.
    sources: new Set<string>(),
    nameOf: (entry: Entry) => names.get(entry),
  });
}

/** Whether there is anything in it, also while its servers are away. */
export function isInhabited({ claims }: Catalog, namespace: string): boolean {
  return KINDS.some((kind) => [...claims[kind].values()].some((entry) => entry?.namespace === namespace));
}

/** Inside a namespace there is nothing to switch. */
export const NO_CONTROLS: ViewControls = {
  entries: () => [],
  alias: () => undefined,
  advice: () => 'It is not in the toolset that the address names.',
};
