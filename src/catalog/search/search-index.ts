/**
 * Finds documents by words: BM25 over one weighted bag of terms for each document. Everything that it counts it counts
 * over the documents that it was built from, so that no other document can be noticed through it. Equal scores keep the
 * order of the documents, so an answer is always the same.
 */
import { type Bag, trigramsIn, type Vocabulary } from './bag.ts';
import { createPostings, type Postings, type TermPostings } from './postings.ts';
import { synonymsOf } from './synonyms.ts';
import type { Nearness } from './vectors/nearness.ts';
import { termsOf } from './words.ts';

/** Scored on the sets of queries that `npm run bench:search` reads. */
const TUNING = {
  /** How much more often a term counts less and less, and how much long documents count less. */
  k1: 1.2,
  b: 0.7,
  synonym: 0.2,
  /** What a name whose words are all in the query adds, as a part of the best score. */
  name: 0.2,
  /** What a name that is spelled alike can add, as a part of the best score. */
  trigram: 0.1,
  /** The part of a score that comes from the best single clause of a query. */
  clause: 0.4,
};

/** A document that was found, by its place in the list that the index was built from. */
export interface Scored {
  readonly at: number;
  readonly score: number;
}

export interface Findings {
  /** The best documents, best first. */
  readonly best: readonly Scored[];
  /** The places of the others that match nearly as well. */
  readonly near: readonly number[];
}

export interface SearchIndex {
  readonly size: number;
  /** At most `most` documents, among those that are wanted. */
  find(query: string, most: number, isWanted?: (at: number) => boolean): Findings;
}

/** How near documents are by vectors of words, and the most that this adds, as a part of the best score. */
export interface WeightedNearness {
  readonly nearness: Nearness;
  readonly weight: number;
}

/** Places of documents, each at most once. An array that is used again, because a query would make large ones. */
class Places {
  readonly list: Uint32Array;
  count = 0;

  constructor(size: number) {
    this.list = new Uint32Array(size);
  }

  add(at: number): void {
    this.list[this.count++] = at;
  }
}

function scoreTerm({ rarity, places, weights }: TermPostings, weight: number, into: Float64Array, hit: Places): void {
  const factor = weight * rarity;
  for (let i = 0; i < places.length; i++) {
    const at = places[i]!;
    const score = into[at]!;
    if (score === 0) hit.add(at);
    into[at] = score + factor * weights[i]!;
  }
}

/** The postings of each index, from which the next one is made. */
const postingsOf = new WeakMap<SearchIndex, Postings>();

/** @param before indexes of the same vocabulary: if one is much the same, only what differs from it is read. */
export function buildIndex(
  vocabulary: Vocabulary,
  bags: readonly Bag[],
  vectors: WeightedNearness | null = null,
  before: readonly SearchIndex[] = [],
): SearchIndex {
  const size = bags.length;
  const earlier = before.flatMap((one) => postingsOf.get(one) ?? []);
  const postings = createPostings(vocabulary, bags, TUNING, earlier);
  /** What the number of trigrams in common is multiplied by. */
  const shares = new Float32Array(size);
  for (let at = 0; at < size; at++) shares[at] = 1 / Math.sqrt(Math.max(1, bags[at]!.packed.length - bags[at]!.terms));
  /** Zero between queries. One array for all of them: a query touches thousands of documents, and is over at once. */
  const scores = new Float64Array(size);
  const likeness = new Float64Array(size);
  const touched = new Places(size);
  const alike = new Places(size);

  function scoreTerms(wanted: ReadonlyMap<string, number>, into: Float64Array, hit: Places): void {
    for (const [term, weight] of wanted) {
      const found = postings.term(term);
      if (found !== null) scoreTerm(found, weight, into, hit);
    }
  }

  /** Adds what a name has in common with the query: one whose words all occur in it is hardly found by accident. */
  function addNames(wanted: ReadonlyMap<string, number>, best: number): void {
    for (const [term, weight] of wanted) {
      const found = postings.term(term);
      if (found === null) continue;
      const { named, rarity } = found;
      const counts = Math.min(1, weight) * rarity;
      for (let i = 0; i < named.length; i++) {
        const at = named[i]!;
        if (likeness[at] === 0) alike.add(at);
        likeness[at]! += counts;
      }
    }
    const part = TUNING.name * best;
    for (let i = 0; i < alike.count; i++) {
      const at = alike.list[i]!;
      scores[at]! += part * Math.sqrt(likeness[at]! / postings.nameRarity(at));
      likeness[at] = 0;
    }
    alike.count = 0;
  }

  /** Adds what names that are spelled like the query have in common with it. */
  function addTrigrams(query: string, best: number): void {
    const wanted = trigramsIn(query);
    for (const one of wanted) {
      const places = postings.trigram(one);
      if (places === null) continue;
      for (let i = 0; i < places.length; i++) {
        const at = places[i]!;
        const count = likeness[at]!;
        if (count === 0) alike.add(at);
        likeness[at] = count + 1;
      }
    }
    const part = 1 / Math.sqrt(wanted.size);
    for (let i = 0; i < alike.count; i++) {
      const at = alike.list[i]!;
      const share = likeness[at]! * shares[at]! * part;
      likeness[at] = 0;
      // A few letters in common mean nothing by themselves.
      if (scores[at] === 0) {
        if (share < LEAST_LIKENESS) continue;
        touched.add(at);
      }
      scores[at]! += TUNING.trigram * best * share;
    }
    alike.count = 0;
  }

  /** Mixes scores with those of the best single clause, so that each intent of a long query finds something. */
  function addClauses(clauses: readonly ReadonlyMap<string, number>[], best: number): void {
    if (clauses.length < 2) return;
    const parts = new Map<number, number>();
    for (const clause of clauses) {
      scoreTerms(clause, likeness, alike);
      const most = greatest(likeness, alike);
      for (let i = 0; i < alike.count; i++) {
        const at = alike.list[i]!;
        const share = likeness[at]! / most;
        likeness[at] = 0;
        if (share > (parts.get(at) ?? 0)) parts.set(at, share);
      }
      alike.count = 0;
    }
    for (let i = 0; i < touched.count; i++) {
      const at = touched.list[i]!;
      scores[at] = (1 - TUNING.clause) * scores[at]! + TUNING.clause * best * (parts.get(at) ?? 0);
    }
  }

  /** Adds how near documents are. What has no word of the query must be about as near as the nearest one. */
  function addNearness({ nearness, weight }: WeightedNearness, query: string, best: number): void {
    const near = nearness(query.slice(0, LONGEST_QUERY));
    if (near === null) return;
    let nearest = 0;
    for (let at = 0; at < size; at++) if (near[at]! > nearest) nearest = near[at]!;
    if (nearest < LEAST_NEARNESS) return;
    const least = Math.max(LEAST_NEARNESS, nearest * NEAR_ENOUGH);
    for (let at = 0; at < size; at++) {
      if (near[at]! <= 0) continue;
      if (scores[at] === 0) {
        if (near[at]! < least) continue;
        touched.add(at);
      }
      scores[at]! += (weight * best * near[at]!) / nearest;
    }
  }

  const index: SearchIndex = {
    size,
    find(query, most, isWanted) {
      const wanted = queryTerms(query);
      scoreTerms(wanted, scores, touched);
      const best = greatest(scores, touched);
      addClauses(clausesOf(query, wanted), best);
      addNames(wanted, best);
      addTrigrams(query, best === 0 ? 1 : best);
      if (vectors !== null) addNearness(vectors, query, best === 0 ? 1 : best);
      const all = touched.list.subarray(0, touched.count);
      const found = isWanted === undefined ? all : all.filter(isWanted);
      const top = pickBest(scores, found, most);
      const least = (top[0]?.score ?? 0) * NEAR;
      for (const { at } of top) scores[at] = 0;
      const near: number[] = [];
      for (let i = 0; i < found.length; i++) {
        const score = scores[found[i]!]!;
        if (score >= least && score !== 0) near.push(found[i]!);
      }
      for (let i = 0; i < all.length; i++) scores[all[i]!] = 0;
      touched.count = 0;
      return { best: top, near };
    },
  };
  postingsOf.set(index, postings);
  return index;
}

/** The part of the best score from which on a document matches nearly as well. */
const NEAR = 0.5;

/** The least nearness that means anything, and the part of the nearest one that a document without common words needs. */
const LEAST_NEARNESS = 0.2;
const NEAR_ENOUGH = 0.7;

/** The least that a name must be spelled like a query if it has none of its words. */
const LEAST_LIKENESS = 0.4;

/** The terms of a query with their weights: its own, and synonyms. */
function queryTerms(text: string): Map<string, number> {
  const own = termsOf(text.slice(0, LONGEST_QUERY));
  const wanted = new Map<string, number>();
  for (const term of own) wanted.set(term, Math.min((wanted.get(term) ?? 0) + 1, MOST_REPEATS));
  for (const term of new Set(own))
    for (const other of synonymsOf(term)) if (!wanted.has(other)) wanted.set(other, TUNING.synonym);
  return wanted;
}

const LONGEST_QUERY = 4_000;
const MOST_REPEATS = 2;

/** Commas and "and" separate details more often than intents. */
const CLAUSE_END = /[.;!?\n。！？；]+\s*/;
const MOST_CLAUSES = 12;

/** The parts of a query that may mean different things. */
function clausesOf(query: string, whole: ReadonlyMap<string, number>): ReadonlyMap<string, number>[] {
  const parts = query.slice(0, LONGEST_QUERY).split(CLAUSE_END, MOST_CLAUSES);
  if (parts.length < 2 || whole.size < 4) return [];
  return parts.map(queryTerms).filter((terms) => terms.size > 0);
}

function greatest(scores: Float64Array, { list, count }: Places): number {
  let most = 0;
  for (let i = 0; i < count; i++) if (scores[list[i]!]! > most) most = scores[list[i]!]!;
  return most;
}

/** The documents with the highest scores. Equal ones are in their order. */
function pickBest(scores: Float64Array, among: Uint32Array, most: number): Scored[] {
  const best: Scored[] = [];
  if (most === 0) return best;
  let least = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < among.length; i++) {
    const at = among[i]!;
    const score = scores[at]!;
    // Nearly all end here.
    if (score < least) continue;
    let place = best.length;
    while (place > 0 && isBefore(score, at, best[place - 1]!)) place--;
    if (place === most) continue;
    best.splice(place, 0, { at, score });
    if (best.length > most) best.pop();
    if (best.length === most) least = best[most - 1]!.score;
  }
  return best;
}

function isBefore(score: number, at: number, other: Scored): boolean {
  return score > other.score || (score === other.score && at < other.at);
}
