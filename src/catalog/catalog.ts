/** The catalog: a frozen snapshot of everything every source offers, under exposed names. */
import type { Entry, Owner } from './entry.ts';
import { toEntry } from './entry.ts';
import { type Item, KINDS, type Kind, type Offer } from './item.ts';
import { exposedName, JOINED, type Naming, nextName } from './names.ts';

/** Something about a server that its operator should know. */
export interface Problem {
  readonly source: string;
  readonly message: string;
}

/** A frozen picture of what all servers offer; another one takes its place when that changes. */
export interface Catalog {
  /** Grows with each change. */
  readonly version: number;
  /** In the order of the configuration, then in the order of the server. */
  readonly entries: Readonly<Record<Kind, ReadonlyMap<string, Entry>>>;
  /** @internal */
  readonly claims: Claims;
  /** The keys and namespaces of all sources. */
  readonly sources: ReadonlySet<string>;
  readonly problems: readonly Problem[];
  /**
   * Whether a template must not be used for this URI of its server, though it would fit. Null where all may be.
   * @internal
   */
  readonly isClosed: ((template: Entry, uri: string) => boolean) | null;
  /**
   * What an entry is called here. Null where that is its exposed name.
   * @internal
   */
  readonly nameOf: ((entry: Entry) => string | undefined) | null;
}

/** Whose a name is, also while its owner is away; null for Toolgate's own. */
export type Claims = Readonly<Record<Kind, ReadonlyMap<string, Entry | null>>>;

export interface Contribution extends Owner {
  /** What the source offers, or last offered. */
  readonly offer: Offer;
  /** False while the source is away: its names stay taken, but nothing is listed under them. */
  readonly present: boolean;
}

/**
 * Puts the offers together in the order of the configuration. The first to claim a name keeps it, even while it is away:
 * otherwise another server's tool would step into a name that a caller already trusts.
 */
export function buildCatalog(
  version: number,
  contributions: readonly Contribution[],
  builtIn: readonly string[],
  naming: Naming = JOINED,
): Catalog {
  const problems: Problem[] = [];
  const entries = {} as Record<Kind, Map<string, Entry>>;
  const claims = {} as Record<Kind, Map<string, Entry | null>>;
  for (const kind of KINDS) {
    entries[kind] = new Map();
    claims[kind] = new Map();
  }
  for (const name of builtIn) claims.tool.set(name, null);
  for (const contribution of contributions) {
    const { key, offer, present } = contribution;
    if (present) for (const message of offer.problems) problems.push({ source: key, message });
    for (const item of offer.items) {
      const { kind } = item;
      const wanted = exposedName(kind, contribution.namespace, item.name, naming);
      const owner = claims[kind].get(wanted);
      let name: string | null = wanted;
      if (owner !== undefined) {
        name = yields(kind, naming) ? otherName(wanted, key, item, claims[kind], naming) : null;
        if (present) problems.push({ source: key, message: collision(item, key, wanted, name, owner) });
      }
      if (name === null) continue;
      const entry = toEntry(contribution, item, name);
      claims[kind].set(name, entry);
      if (present) entries[kind].set(name, entry);
    }
  }
  return Object.freeze({
    version,
    entries: Object.freeze(entries),
    claims: Object.freeze(claims),
    sources: new Set(contributions.flatMap(({ key, namespace }) => [key, namespace]).filter((name) => name !== '')),
    problems: Object.freeze(problems),
    isClosed: null,
    nameOf: null,
  });
}

/** Whether such an item gets another name where its own is taken; else it is dropped. */
function yields(kind: Kind, naming: Naming): boolean {
  return naming.names === 'flat' && (kind === 'tool' || kind === 'prompt');
}

/** A name for an item whose own one is taken; null if that, or one of these, was taken by the same item listed before. */
function otherName(
  wanted: string,
  key: string,
  item: Item,
  claims: ReadonlyMap<string, Entry | null>,
  naming: Naming,
): string | null {
  let name = wanted;
  for (let attempt = 0; claims.has(name); attempt++) {
    const owner = claims.get(name);
    if (owner?.sourceKey === key && owner.item.name === item.name) return null;
    name = nextName(wanted, key, item.name, attempt, naming);
  }
  return name;
}

function collision(item: Item, key: string, wanted: string, name: string | null, owner: Entry | null): string {
  const what =
    name === null
      ? `${item.kind} "${wanted}" is dropped: `
      : `${item.kind} "${item.name}" is exposed as "${name}", not "${wanted}": `;
  if (owner === null) return `${what}the name belongs to Toolgate itself; give the server another namespace`;
  if (owner.sourceKey !== key) {
    return `${what}server "${owner.sourceKey}", which is listed first, has that name; give one of them another namespace`;
  }
  return name === null
    ? `${what}the server lists that name twice`
    : `${what}the server has that name for "${owner.item.name}"`;
}

/** The name under which an entry is to be found in the catalog. */
export function nameIn({ nameOf }: Catalog, entry: Entry): string {
  return nameOf?.(entry) ?? entry.name;
}

export const EMPTY_CATALOG: Catalog = buildCatalog(0, [], []);
