/** The catalog: a frozen snapshot of everything every source offers, under exposed names. */
import type { Entry, Owner } from './entry.ts';
import { toEntry } from './entry.ts';
import { CATALOG_URI, type Introduction, introductionOf } from './introduction.ts';
import { EMPTY_OFFER, type Item, KINDS, type Kind, type Offer } from './item.ts';
import { exposedName, JOINED, type Naming, nextName, prefixesOf } from './names.ts';

/** A problem with a server that the operator should know about. */
export interface Problem {
  readonly source: string;
  readonly message: string;
}

/** A frozen snapshot of what all servers offer. Every change makes a new one. */
export interface Catalog {
  /** Grows with every change. */
  readonly version: number;
  /** In the order of the configuration, then in the order of the server. */
  readonly entries: Readonly<Record<Kind, ReadonlyMap<string, Entry>>>;
  /** @internal */
  readonly claims: Claims;
  /** The keys and namespaces of all sources. */
  readonly sources: ReadonlySet<string>;
  /**
   * What the sources say about themselves, in the order of the configuration.
   * @internal
   */
  readonly introductions: readonly Introduction[];
  readonly problems: readonly Problem[];
  /**
   * The sources that are not up: what they offer may be unknown, or change in a moment.
   * @internal
   */
  readonly away: readonly AwaySource[];
  /**
   * Templates that are not listed, and of which only some URIs may be read.
   * @internal
   */
  readonly unlisted: ReadonlySet<Entry>;
  /**
   * Whether a template must not be used for a URI of its server, although it matches. Null if every URI may be read.
   * @internal
   */
  readonly isClosed: ((template: Entry, uri: string) => boolean) | null;
  /**
   * What an entry is called here. Null if that is its exposed name.
   * @internal
   */
  readonly nameOf: ((entry: Entry) => string | undefined) | null;
}

/** Why a source is not up. */
export interface Absence {
  /** `installing` is a start that installs something first, which may take minutes. */
  readonly state: 'starting' | 'installing' | 'down' | 'crash_loop' | 'locked' | 'broken' | 'untrusted';
  /** May be empty while it starts. */
  readonly reason: string;
  /** Since when, in milliseconds since 1970. */
  readonly since: number;
  /** Whether its dependencies could not be installed. */
  readonly lacksDependencies?: boolean;
}

/** A source that is not up. */
export interface AwaySource extends Owner, Absence {
  /** Whether its items are listed all the same, as its last run offered them. */
  readonly isListed: boolean;
  /** Whether its items are known. */
  readonly isKnown: boolean;
  /** Each of its names begins with one of these. */
  readonly prefixes: readonly string[];
}

/** The owner of each name, even while its source is unavailable; null for built-in names. */
export type Claims = Readonly<Record<Kind, ReadonlyMap<string, Entry | null>>>;

/** The beginning of all names of a server. */
interface ReservedPrefix {
  readonly key: string;
  readonly prefix: string;
}

export interface Contribution extends Owner {
  /** What the source offers, or last offered. */
  readonly offer: Offer;
  /** False while the source is unavailable: its names stay reserved, but nothing is listed under them. */
  readonly present: boolean;
  /** Why the source is not up; null or absent if it is. */
  readonly absence?: Absence | null;
  /** What the source is for, as the configuration says; absent or empty if it does not. */
  readonly description?: string;
}

/**
 * Builds the catalog from offers in configuration order. The first source that claims a name keeps it, even while it is
 * unavailable: otherwise another server's tool could take over a name that a caller already trusts. For the same reason a
 * source without a namespace has no name that begins with the namespace of another one.
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
  claims.resource.set(CATALOG_URI, null);
  const reserved = contributions.flatMap(({ key, namespace }) =>
    namespace === '' ? [] : prefixesOf(namespace, naming).map((prefix) => ({ key, prefix })),
  );
  for (const contribution of contributions) {
    const { key, offer, present } = contribution;
    if (present) for (const message of offer.problems) problems.push({ source: key, message });
    for (const item of offer.items) {
      const { kind } = item;
      const wanted = exposedName(kind, contribution.namespace, item.name, naming);
      const owner = claims[kind].get(wanted);
      let name: string | null = wanted;
      const prefix =
        contribution.namespace === '' && owner !== null
          ? reserved.find((one) => wanted.startsWith(one.prefix))
          : undefined;
      if (prefix !== undefined) {
        name = isRenamed(kind, naming)
          ? otherName(nextName(wanted, key, item.name, 0, naming), key, item, claims[kind], naming)
          : null;
        if (present) problems.push({ source: key, message: reservedName(item, wanted, name, prefix) });
      } else if (owner !== undefined) {
        name = isRenamed(kind, naming) ? otherName(wanted, key, item, claims[kind], naming) : null;
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
    introductions: contributions.map((one) => introductionOf(one, naming)),
    problems: Object.freeze(problems),
    away: Object.freeze(contributions.flatMap((one) => awaySource(one, naming))),
    unlisted: new Set<Entry>(),
    isClosed: null,
    nameOf: null,
  });
}

function awaySource(source: Contribution, naming: Naming): AwaySource[] {
  const { id, key, namespace, offer, present, absence = null } = source;
  if (absence === null) return [];
  const prefixes = prefixesOf(namespace, naming);
  return [{ id, key, namespace, ...absence, isListed: present, isKnown: offer !== EMPTY_OFFER, prefixes }];
}

/** Whether an item whose name is taken gets another name. Otherwise it is dropped. */
function isRenamed(kind: Kind, naming: Naming): boolean {
  return naming.names === 'flat' && (kind === 'tool' || kind === 'prompt');
}

/** Another name for an item whose name is taken; null if the same item, listed twice, has taken it. */
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

function reservedName(item: Item, wanted: string, name: string | null, prefix: ReservedPrefix): string {
  return `${outcome(item, wanted, name)}names that begin with "${prefix.prefix}" belong to server "${prefix.key}"; give this server a namespace`;
}

function outcome(item: Item, wanted: string, name: string | null): string {
  return name === null
    ? `${item.kind} "${wanted}" is dropped: `
    : `${item.kind} "${item.name}" is exposed as "${name}", not "${wanted}": `;
}

function collision(item: Item, key: string, wanted: string, name: string | null, owner: Entry | null): string {
  const what = outcome(item, wanted, name);
  if (owner === null) return `${what}the name belongs to Toolgate itself; give the server another namespace`;
  if (owner.sourceKey !== key) {
    return `${what}server "${owner.sourceKey}", which is listed first, has that name; give one of them another namespace`;
  }
  return name === null
    ? `${what}the server lists that name twice`
    : `${what}the server has that name for "${owner.item.name}"`;
}

/** The name of an entry in this catalog. */
export function nameIn({ nameOf }: Catalog, entry: Entry): string {
  return nameOf?.(entry) ?? entry.name;
}

export const EMPTY_CATALOG: Catalog = buildCatalog(0, [], []);
