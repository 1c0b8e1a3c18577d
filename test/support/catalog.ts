/** Catalogs from literals, for tests of code that only reads them. */
import { buildCatalog, type Catalog, type Contribution } from '../../src/catalog/catalog.ts';
import type { Entry } from '../../src/catalog/entry.ts';
import { KINDS, type Kind, kindWords, type Offer, readItems } from '../../src/catalog/item.ts';
import { JOINED, type Naming } from '../../src/catalog/names.ts';
import { toBytes } from '../../src/protocol/json.ts';

/** The name or URI of an item, or members of its definition. */
type Definition = string | Readonly<Record<string, unknown>>;

export type Offered = { readonly [K in Kind]?: readonly Definition[] };

export interface Offering extends Offered {
  /** Also the default for its key. */
  readonly namespace: string;
  readonly key?: string;
  readonly away?: boolean;
}

/** The offer of a server with these definitions. */
export function offerOf(offered: Offered): Offer {
  const pages = KINDS.map((kind) => {
    const { list, identity } = kindWords[kind];
    const definitions = (offered[kind] ?? []).map((one) => ({
      ...(kind === 'tool' ? { inputSchema: { type: 'object' } } : { name: 'any' }),
      ...(typeof one === 'string' ? { [identity]: one } : one),
    }));
    return readItems(kind, toBytes({ [list]: definitions }));
  });
  return {
    items: pages.flatMap(({ items }) => items),
    problems: pages.flatMap(({ problems }) => problems),
    instructions: '',
  };
}

export function contributionsOf(offerings: readonly Offering[]): Contribution[] {
  return offerings.map(({ namespace, key, away, ...offered }, index) => ({
    id: index + 1,
    key: key ?? (namespace || `server-${index + 1}`),
    namespace,
    offer: offerOf(offered),
    present: away !== true,
  }));
}

/** The catalog of servers in the order of a configuration. */
export function catalogOf(...offerings: Offering[]): Catalog {
  return namedCatalog(JOINED, ...offerings);
}

export function namedCatalog(naming: Naming, ...offerings: Offering[]): Catalog {
  return buildCatalog(1, contributionsOf(offerings), ['toolman_activate'], naming);
}

/** The name in a request to a server, from its JSON as latin1. */
export function askedFor(upstreamName: string): string {
  return JSON.parse(Buffer.from(upstreamName, 'latin1').toString()) as string;
}

/** An entry of which only the name matters. */
export function entryOf(kind: Kind, name: string): Entry {
  const catalog = catalogOf({ namespace: '', [kind]: [name] });
  return catalog.entries[kind].get(name)!;
}
