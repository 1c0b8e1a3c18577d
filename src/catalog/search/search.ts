/**
 * The search over one catalog, which is already narrowed to what a caller may know. It is built when it is first used,
 * in short pieces, so that calls go on meanwhile. Reading an item is nearly all of the work and is done once per item:
 * after a change only what changed is read again.
 */
import { setImmediate } from 'node:timers/promises';
import { memo } from '../../base/memo.ts';
import type { Catalog } from '../catalog.ts';
import { canonicalName, type Entry } from '../entry.ts';
import { KINDS, type Kind } from '../item.ts';
import { type Bag, createVocabulary, isWorn, packBag, type Vocabulary, withExamples } from './bag.ts';
import { documentOf } from './document.ts';
import { type Examples, NO_EXAMPLES } from './examples.ts';
import { buildIndex, type WeightedNearness } from './search-index.ts';
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

type NamedEntry = readonly [name: string, entry: Entry];

interface KnownBags {
  readonly vocabulary: Vocabulary;
  readonly bags: WeakMap<Entry, { readonly purpose: string; readonly bag: Bag }>;
}

let memory: KnownBags = { vocabulary: createVocabulary(), bags: new WeakMap() };

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
  if (isWorn(memory.vocabulary)) memory = { vocabulary: createVocabulary(), bags: new WeakMap() };
  const { vocabulary, bags: known } = memory;
  const purposes = purposesIn(catalog);
  const found: NamedEntry[] = KINDS.flatMap((kind) => [...catalog.entries[kind]]);
  const bags: Bag[] = [];
  let pause = performance.now() + PIECE;
  for (const [name, entry] of found) {
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
    bags.push(queries.length === 0 ? bag.bag : withExamples(vocabulary, bag.bag, queries));
  }
  return createSearch(found, vocabulary, bags, vectors === null ? null : await nearnessIn(found, vectors));
}

const documentVectors = memo((_: WordVectors) => new WeakMap<Entry, DocumentVector>());

/** As the bags: read once per item, in short pieces. */
async function nearnessIn(found: readonly NamedEntry[], { words, weight }: WeightedVectors): Promise<WeightedNearness> {
  // Loaded when it is used: most searches have no vectors.
  const { createNearness, vectorOf } = await import('./vectors/nearness.ts');
  const known = documentVectors(words);
  const all: DocumentVector[] = [];
  let pause = performance.now() + PIECE;
  for (const [, entry] of found) {
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

function createSearch(
  found: readonly NamedEntry[],
  vocabulary: Vocabulary,
  bags: Bag[],
  vectors: WeightedNearness | null,
): ItemSearch {
  const index = buildIndex(vocabulary, bags, vectors);
  return {
    find(query, most, { kinds, isServer } = {}) {
      const wants = ({ kind }: Entry) => kinds?.has(kind) ?? true;
      const isWanted =
        kinds === undefined && isServer === undefined
          ? undefined
          : (at: number) => wants(found[at]![1]) && (isServer?.(found[at]![1]) ?? true);
      const { best, near } = index.find(query, most, isWanted);
      const scores = new Map(best.map(({ at, score }) => [at, score]));
      const places = [...scores.keys(), ...near];
      // A person who types a name means it, however many others have its words.
      const isExact = exactName(query);
      const exact = places.filter((at) => isExact(found[at]!));
      const all = exact.length === 0 ? places : [...exact, ...places.filter((at) => !exact.includes(at))];
      const top = best[0]?.score ?? 0;
      return {
        best: all
          .slice(0, most)
          .map((at) => ({ name: found[at]![0], entry: found[at]![1], score: scores.get(at) ?? top })),
        more: countServers(all.slice(most).map((at) => found[at]![1])),
      };
    },
  };
}

/** Whether a query is one of the names of an item. Lengths come first, because many items may be compared. */
function exactName(query: string): (one: NamedEntry) => boolean {
  const wanted = query.trim().toLowerCase();
  const { length } = wanted;
  const is = (own: string) => own.length === length && own.toLowerCase() === wanted;
  return ([name, entry]) => {
    const { sourceKey, item } = entry;
    if (is(name) || is(item.name)) return true;
    return sourceKey.length + 1 + item.name.length === length && is(canonicalName(entry));
  };
}

function countServers(entries: readonly Entry[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { sourceKey } of entries) counts.set(sourceKey, (counts.get(sourceKey) ?? 0) + 1);
  return new Map([...counts].sort(([a, some], [b, others]) => others - some || (a < b ? -1 : 1)));
}
