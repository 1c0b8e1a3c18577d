/**
 * The search over one catalog, which is already narrowed to what a caller may know. It is built when it is first used,
 * in short pieces, so that calls go on meanwhile. Reading an item is nearly all of the work and is done once per item:
 * after a change only what changed is read again.
 */
import { setImmediate } from 'node:timers/promises';
import { getOrMake, memo } from '../../base/memo.ts';
import type { Catalog } from '../catalog.ts';
import { canonicalName, type Entry } from '../entry.ts';
import { KINDS, type Kind } from '../item.ts';
import { type Bag, createVocabulary, isWorn, packBag, type Vocabulary, withExamples } from './bag.ts';
import { documentOf } from './document.ts';
import { type Examples, NO_EXAMPLES } from './examples.ts';
import { buildIndex, type SearchIndex, type WeightedNearness } from './search-index.ts';
import type { DocumentVector } from './vectors/nearness.ts';
import type { WordVectors } from './vectors/word-vectors.ts';

/** An item that was found, under its name in the catalog. */
export interface Match {
  readonly name: string;
  readonly entry: Entry;
  readonly score: number;
}

export interface Matches {
  /** The best ones, best first. */
  readonly best: readonly Match[];
  /** How many others match nearly as well, by server: the servers with the most come first. */
  readonly more: ReadonlyMap<string, number>;
}

export interface SearchFilter {
  /** Absent: tools, resources, templates and prompts. */
  readonly kinds?: ReadonlySet<Kind>;
  /** Absent: all servers. */
  isServer?(entry: Entry): boolean;
}

export interface ItemSearch {
  find(query: string, most: number, filter?: SearchFilter): Matches;
}

/** Vectors of words, and how much they count. The same object for the same file and weight, because an index is kept for each. */
export interface WeightedVectors {
  readonly words: WordVectors;
  readonly weight: number;
}

const NO_QUERIES: readonly string[] = [];

/** Milliseconds of work at a time. */
const PIECE = 4;

/** Indexes of the catalogs that were searched last. Others are built again, which takes a few milliseconds. */
const MOST_KEPT = 16;

/** The items of a catalog by their places in its index. */
interface FoundEntries {
  readonly names: readonly string[];
  readonly entries: readonly Entry[];
}

interface KnownBags {
  readonly vocabulary: Vocabulary;
  readonly bags: WeakMap<Entry, { readonly purpose: string; readonly bag: Bag }>;
  readonly taught: WeakMap<Bag, { readonly queries: readonly string[]; readonly bag: Bag }>;
  /** The index that was built last. It is held, because its catalog may be gone when the next one is built from it. */
  last: SearchIndex | null;
  /** Earlier ones, the newest first: agents with different views have an index each. */
  readonly earlier: WeakRef<SearchIndex>[];
}

const noBags = (): KnownBags => ({
  vocabulary: createVocabulary(),
  bags: new WeakMap(),
  taught: new WeakMap(),
  last: null,
  earlier: [],
});

let memory = noBags();

interface Built {
  readonly vectors: WeightedVectors | null;
  readonly search: Promise<ItemSearch>;
}

const searches = memo((_: Catalog) => new WeakMap<Examples, Built>());
const kept: { readonly catalog: WeakRef<Catalog>; readonly examples: WeakRef<Examples> }[] = [];

/** The search over a catalog. The same one while neither the catalog nor the examples change. */
export function searchOf(
  catalog: Catalog,
  examples: Examples = NO_EXAMPLES,
  vectors: WeightedVectors | null = null,
): Promise<ItemSearch> {
  const known = searches(catalog).get(examples);
  if (known !== undefined && known.vectors === vectors) return known.search;
  const search = build(catalog, examples, vectors);
  searches(catalog).set(examples, { vectors, search });
  kept.push({ catalog: new WeakRef(catalog), examples: new WeakRef(examples) });
  if (kept.length > MOST_KEPT) {
    const oldest = kept.shift()!;
    const [before, its] = [oldest.catalog.deref(), oldest.examples.deref()];
    if (before !== undefined && its !== undefined) searches(before).delete(its);
  }
  return search;
}

async function build(catalog: Catalog, examples: Examples, vectors: WeightedVectors | null): Promise<ItemSearch> {
  if (isWorn(memory.vocabulary)) memory = noBags();
  const own = memory;
  const { vocabulary, bags: known } = own;
  const purposes = purposesIn(catalog);
  const { names, entries } = foundIn(catalog);
  const bags: Bag[] = [];
  let pause = performance.now() + PIECE;
  for (let at = 0; at < entries.length; at++) {
    const [name, entry] = [names[at]!, entries[at]!];
    const purpose = purposes.get(entry.sourceKey) ?? '';
    let bag = known.get(entry);
    if (bag === undefined || bag.purpose !== purpose) {
      bag = { purpose, bag: packBag(vocabulary, documentOf(entry, purpose)) };
      known.set(entry, bag);
      if (performance.now() >= pause) {
        await setImmediate();
        pause = performance.now() + PIECE;
      }
    }
    const queries =
      examples.size === 0 ? NO_QUERIES : [...(examples.get(canonicalName(entry)) ?? []), ...(examples.get(name) ?? [])];
    bags.push(queries.length === 0 ? bag.bag : taughtBag(own, bag.bag, queries));
  }
  const nearness = vectors === null ? null : await nearnessIn(entries, vectors);
  return createSearch({ names, entries }, indexOf(own, bags, nearness));
}

/** The same bag for the same examples, so that what an agent learns changes one document and not all that have examples. */
function taughtBag({ vocabulary, taught }: KnownBags, bag: Bag, queries: readonly string[]): Bag {
  const known = taught.get(bag);
  if (known?.queries.length === queries.length && queries.every((one, i) => one === known.queries[i])) return known.bag;
  const own = withExamples(vocabulary, bag, queries);
  taught.set(bag, { queries, bag: own });
  return own;
}

function indexOf(own: KnownBags, bags: readonly Bag[], nearness: WeightedNearness | null): SearchIndex {
  const before = own.earlier.flatMap((one) => one.deref() ?? []);
  const index = buildIndex(own.vocabulary, bags, nearness, before);
  own.last = index;
  own.earlier.unshift(new WeakRef(index));
  own.earlier.length = Math.min(own.earlier.length, MOST_KEPT);
  return index;
}

const documentVectors = memo((_: WordVectors) => new WeakMap<Entry, DocumentVector>());

/** As the bags: read once per item, in short pieces. */
async function nearnessIn(entries: readonly Entry[], { words, weight }: WeightedVectors): Promise<WeightedNearness> {
  // Loaded when it is used: most searches have no vectors.
  const { createNearness, vectorOf } = await import('./vectors/nearness.ts');
  const known = documentVectors(words);
  const all: DocumentVector[] = [];
  let pause = performance.now() + PIECE;
  for (const entry of entries) {
    let own = known.get(entry);
    if (own === undefined) {
      own = vectorOf(words, documentOf(entry, ''));
      known.set(entry, own);
      if (performance.now() >= pause) {
        await setImmediate();
        pause = performance.now() + PIECE;
      }
    }
    all.push(own);
  }
  return { nearness: createNearness(words, all), weight };
}

/** What each server is for, if its operator or the server itself says so. */
function purposesIn({ introductions }: Catalog): Map<string, string> {
  return new Map(introductions.map(({ key, description, about }) => [key, `${description} ${about}`.trim()]));
}

function foundIn(catalog: Catalog): FoundEntries {
  const names: string[] = [];
  const entries: Entry[] = [];
  for (const kind of KINDS)
    catalog.entries[kind].forEach((entry, name) => {
      names.push(name);
      entries.push(entry);
    });
  return { names, entries };
}

function createSearch({ names, entries }: FoundEntries, index: SearchIndex): ItemSearch {
  const matchAt = (at: number, score: number): Match => ({ name: names[at]!, entry: entries[at]!, score });
  let facts: EntryFacts | null = null;
  return {
    find(query, most, { kinds, isServer } = {}) {
      const wants = ({ kind }: Entry) => kinds?.has(kind) ?? true;
      const isWanted =
        kinds === undefined && isServer === undefined
          ? undefined
          : (at: number) => wants(entries[at]!) && (isServer?.(entries[at]!) ?? true);
      const { best, near } = index.find(query, most, isWanted);
      facts ??= factsOf({ names, entries });
      // A person who types a name means it, however many others have its words.
      const isExact = exactName(query, { names, entries }, facts);
      const exact = new Set([...best.map(({ at }) => at).filter(isExact), ...near.filter(isExact)]);
      if (exact.size === 0)
        return { best: best.map(({ at, score }) => matchAt(at, score)), more: countServers(near, facts) };
      const scores = new Map(best.map(({ at, score }) => [at, score]));
      const all = [...new Set([...exact, ...scores.keys(), ...near])];
      const top = best[0]?.score ?? 0;
      return {
        best: all.slice(0, most).map((at) => matchAt(at, scores.get(at) ?? top)),
        more: countServers(all.slice(most), facts),
      };
    },
  };
}

/** What a query asks of thousands of items, as numbers by their places: reading the items themselves takes longer. */
interface EntryFacts {
  /** The lengths of the names in the catalog, and of the servers' own. */
  readonly lengths: Uint32Array;
  readonly ownLengths: Uint32Array;
  /** The place of the server in `servers`. */
  readonly serverAt: Uint32Array;
  readonly servers: readonly string[];
}

function factsOf({ names, entries }: FoundEntries): EntryFacts {
  const numbers = new Map<string, number>();
  return {
    lengths: Uint32Array.from(names, ({ length }) => length),
    ownLengths: Uint32Array.from(entries, ({ item }) => item.name.length),
    serverAt: Uint32Array.from(entries, ({ sourceKey }) => getOrMake(numbers, sourceKey, () => numbers.size)),
    servers: [...numbers.keys()],
  };
}

/** Whether a query is one of the names of an item. Lengths come first, because many items are compared. */
function exactName(query: string, { names, entries }: FoundEntries, facts: EntryFacts): (at: number) => boolean {
  const wanted = query.trim().toLowerCase();
  const { length } = wanted;
  const { lengths, ownLengths, serverAt, servers } = facts;
  const is = (own: string) => own.length === length && own.toLowerCase() === wanted;
  return (at) => {
    const own = ownLengths[at]!;
    if (lengths[at] === length && is(names[at]!)) return true;
    if (own === length && is(entries[at]!.item.name)) return true;
    return servers[serverAt[at]!]!.length + 1 + own === length && is(canonicalName(entries[at]!));
  };
}

function countServers(places: readonly number[], { serverAt, servers }: EntryFacts): ReadonlyMap<string, number> {
  const counts = new Uint32Array(servers.length);
  for (const at of places) counts[serverAt[at]!]!++;
  const counted = servers.flatMap((server, i): [string, number][] => (counts[i] === 0 ? [] : [[server, counts[i]!]]));
  return new Map(counted.sort(([a, some], [b, others]) => others - some || (a < b ? -1 : 1)));
}
