/** A smaller catalog made from another. What was left out is as if it did not exist, for listing and for calling. */
import { BoundedMap } from '../base/bounded-map.ts';
import { getOrMake, memo } from '../base/memo.ts';
import type { AwaySource, Catalog } from './catalog.ts';
import type { Entry } from './entry.ts';
import type { Introduction } from './introduction.ts';
import { KINDS, type Kind } from './item.ts';
import { exposedName, type Naming } from './names.ts';

export interface Narrowing {
  keep(entry: Entry): boolean;
  /**
   * What an entry is called in the new catalog. Such a catalog has no names of Toolgate's own, and no aliases with a
   * server in front.
   */
  rename?(entry: Entry, isTaken: (name: string) => boolean): string;
  /** The sources that the new catalog introduces. Default: those of its entries. */
  introduces?(introduction: Introduction): boolean;
  /** Whether some URIs of a template that is left out may be read. Default: none. */
  hides?(template: Entry): boolean;
  /** See `Catalog.isClosed`. Default: that of the given catalog. */
  readonly isClosed?: Catalog['isClosed'];
  /** Which of the sources that are not up may be known. Default: those with an item that is kept. */
  away?(all: readonly AwaySource[], hasItems: (source: AwaySource) => boolean): readonly AwaySource[];
}

/** Entries themselves stay the same, so policies, limits, metrics and the audit do not notice. */
export function narrow(catalog: Catalog, narrowing: Narrowing): Catalog {
  const { keep, rename, hides = () => false, isClosed = catalog.isClosed } = narrowing;
  const unlisted = new Set([...catalog.unlisted].filter(keep));
  const { away = (all, hasItems) => all.filter(hasItems) } = narrowing;
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  const claims = {} as Record<Kind, ReadonlyMap<string, Entry | null>>;
  const sources = new Set<string>();
  const keys = new Set<string>();
  const names = new Map<Entry, string>();
  for (const kind of KINDS) {
    const claimed = new Map<string, Entry | null>();
    const present = new Map<string, Entry>();
    for (const [before, entry] of catalog.claims[kind]) {
      if (entry === null) {
        if (rename === undefined) claimed.set(before, null);
        continue;
      }
      if (!keep(entry)) {
        if (kind === 'template' && catalog.entries.template.has(before) && hides(entry)) unlisted.add(entry);
        continue;
      }
      const name = rename?.(entry, (one) => claimed.has(one)) ?? before;
      claimed.set(name, entry);
      keys.add(entry.sourceKey);
      if (catalog.entries[kind].has(before)) present.set(name, entry);
      if (rename === undefined) sources.add(entry.sourceKey).add(entry.namespace);
      else names.set(entry, name);
    }
    claims[kind] = claimed;
    entries[kind] = present;
  }
  sources.delete('');
  if (rename !== undefined)
    for (const entry of unlisted)
      names.set(
        entry,
        rename(entry, () => false),
      );
  const introduces = narrowing.introduces ?? (({ key }: Introduction) => keys.has(key));
  const introductions = catalog.introductions.filter(introduces);
  return Object.freeze({
    ...catalog,
    entries: Object.freeze(entries),
    claims: Object.freeze(claims),
    sources,
    away: away(catalog.away, ({ key }) => keys.has(key)),
    // Renamed entries have no prefix.
    introductions: rename === undefined ? introductions : introductions.map((one) => ({ ...one, prefix: '' })),
    unlisted,
    isClosed,
    nameOf: rename === undefined ? catalog.nameOf : (entry: Entry) => names.get(entry),
  });
}

const MOST = 200;

/**
 * Keeps narrowed catalogs, by the catalog that they were made from, the rules they were narrowed by, and a key. Callers
 * that see the same share one catalog, and with it the views, lists and indexes made from it.
 */
export function rememberNarrowed<Rules extends object>(): (
  catalog: Catalog,
  rules: Rules,
  key: string,
  make: () => Catalog,
) => Catalog {
  const known = memo((_: Catalog) => memo((__: Rules) => new BoundedMap<string, Catalog>(MOST)));
  return (catalog, rules, key, make) => getOrMake(known(catalog)(rules), key, make);
}

const namespaces = rememberNarrowed<Naming>();

/** The catalog as seen from inside one namespace: only its entries, without the prefix. */
export function narrowToNamespace(catalog: Catalog, namespace: string, naming: Naming): Catalog {
  return namespaces(catalog, naming, namespace, () =>
    narrow(catalog, {
      keep: (entry) => entry.namespace === namespace,
      introduces: (one) => one.namespace === namespace,
      rename(entry, isTaken) {
        const bare = exposedName(entry.kind, '', entry.item.name, naming);
        // Two servers of one namespace may use the same name. The first keeps it.
        return isTaken(bare) ? entry.name : bare;
      },
      // Names have no prefix in there, so every name may turn out to be theirs.
      away: (all) =>
        all.filter((source) => source.namespace === namespace).map((source) => ({ ...source, prefixes: [''] })),
    }),
  );
}

/** Whether the namespace contains anything, even if its servers are unavailable. */
export function hasNamespace({ claims, away }: Catalog, namespace: string): boolean {
  if (away.some((source) => source.namespace === namespace)) return true;
  return KINDS.some((kind) => [...claims[kind].values()].some((entry) => entry?.namespace === namespace));
}
