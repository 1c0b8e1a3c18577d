/**
 * Finds documents by words: BM25 over one weighted bag of terms for each document. Everything that it counts it counts
 * over the documents that it was built from, so that no other document can be noticed through it. Equal scores keep the
 * order of the documents, so an answer is always the same.
 */
import { type Bag, termIn, trigramsIn, type Vocabulary, weightIn } from './bag.ts';
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

/** Numbers in groups: those of group `n` are `values` from `starts[n]` to `starts[n + 1]`. */
interface Groups {
  readonly starts: Uint32Array;
  readonly values: Uint32Array;
}

/** How near documents are by vectors of words, and the most that this adds, as a part of the best score. */
export interface WeightedNearness {
  readonly nearness: Nearness;
  readonly weight: number;
}

export function buildIndex(
  vocabulary: Vocabulary,
  bags: readonly Bag[],
  vectors: WeightedNearness | null = null,
): SearchIndex {
  const size = bags.length;
  const average = bags.reduce((sum, { length }) => sum + length, 0) / Math.max(1, size) || 1;
  const norms = new Float32Array(size);
  /** What the number of trigrams in common is multiplied by. */
  const shares = new Float32Array(size);
  for (let at = 0; at < size; at++) {
    const { length, packed, terms: count } = bags[at]!;
    norms[at] = TUNING.k1 * (1 - TUNING.b + (TUNING.b * length) / average);
    shares[at] = 1 / Math.sqrt(Math.max(1, packed.length - count));
  }
  const terms = groupTerms(bags, vocabulary.terms.size, norms);
  const trigrams = groupTrigrams(bags, vocabulary.trigrams.size);
  const { weights } = terms;
  const rarities = rarityOf(terms, size);
  const names = groupNames(bags);
  /** How rare the words of each name are together. */
  const namesRarity = new Float32Array(size);
  for (let at = 0; at < size; at++)
    for (let i = names.starts[at]!; i < names.starts[at + 1]!; i++) namesRarity[at]! += rarities[names.values[i]!]!;
  /** Zero between queries. One array for all of them, because a query touches few documents. */
  const scores = new Float64Array(size);
  const likeness = new Float64Array(size);
  /** How much each term counts in a name; zero between queries too. */
  const asked = new Float32Array(rarities.length);

  function addTerm(term: string, weight: number, into: Float64Array, touched: number[]): void {
    const number = vocabulary.terms.get(term);
    if (number === undefined || number + 1 >= terms.starts.length) return;
    const rarity = weight * rarities[number]!;
    for (let i = terms.starts[number]!; i < terms.starts[number + 1]!; i++) {
      const at = terms.values[i]!;
      if (into[at] === 0) touched.push(at);
      into[at]! += rarity * weights[i]!;
    }
  }

  function scoreTerms(wanted: ReadonlyMap<string, number>, into: Float64Array): number[] {
    const touched: number[] = [];
    for (const [term, weight] of wanted) addTerm(term, weight, into, touched);
    return touched;
  }

  /** Adds what a name has in common with the query: one whose words all occur in it is hardly found by accident. */
  function addNames(wanted: ReadonlyMap<string, number>, best: number, touched: readonly number[]): void {
    const numbers: number[] = [];
    for (const [term, weight] of wanted) {
      const number = vocabulary.terms.get(term);
      if (number === undefined || number >= asked.length) continue;
      asked[number] = Math.min(1, weight) * rarities[number]!;
      numbers.push(number);
    }
    for (const at of touched) {
      let common = 0;
      for (let i = names.starts[at]!; i < names.starts[at + 1]!; i++) common += asked[names.values[i]!]!;
      if (common > 0) scores[at]! += TUNING.name * best * Math.sqrt(common / namesRarity[at]!);
    }
    for (const number of numbers) asked[number] = 0;
  }

  /** Adds what names that are spelled like the query have in common with it. */
  function addTrigrams(query: string, best: number, touched: number[]): void {
    const wanted = trigramsIn(query);
    const alike: number[] = [];
    for (const one of wanted) {
      const number = vocabulary.trigrams.get(one);
      if (number === undefined || number + 1 >= trigrams.starts.length) continue;
      for (let i = trigrams.starts[number]!; i < trigrams.starts[number + 1]!; i++) {
        const at = trigrams.values[i]!;
        if (likeness[at] === 0) alike.push(at);
        likeness[at]! += 1;
      }
    }
    const part = 1 / Math.sqrt(wanted.size);
    for (const at of alike) {
      const share = likeness[at]! * shares[at]! * part;
      likeness[at] = 0;
      // A few letters in common mean nothing by themselves.
      if (scores[at] === 0) {
        if (share < LEAST_LIKENESS) continue;
        touched.push(at);
      }
      scores[at]! += TUNING.trigram * best * share;
    }
  }

  /** Mixes scores with those of the best single clause, so that each intent of a long query finds something. */
  function addClauses(clauses: readonly ReadonlyMap<string, number>[], best: number, touched: readonly number[]): void {
    if (clauses.length < 2) return;
    const parts = new Map<number, number>();
    for (const clause of clauses) {
      const hit = scoreTerms(clause, likeness);
      const most = greatest(likeness, hit);
      for (const at of hit) {
        const share = likeness[at]! / most;
        likeness[at] = 0;
        if (share > (parts.get(at) ?? 0)) parts.set(at, share);
      }
    }
    for (const at of touched)
      scores[at] = (1 - TUNING.clause) * scores[at]! + TUNING.clause * best * (parts.get(at) ?? 0);
  }

  /** Adds how near documents are. What has no word of the query must be about as near as the nearest one. */
  function addNearness({ nearness, weight }: WeightedNearness, query: string, best: number, touched: number[]): void {
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
        touched.push(at);
      }
      scores[at]! += (weight * best * near[at]!) / nearest;
    }
  }

  return {
    size,
    find(query, most, isWanted) {
      const wanted = queryTerms(query);
      const touched = scoreTerms(wanted, scores);
      const best = greatest(scores, touched);
      addClauses(clausesOf(query, wanted), best, touched);
      addNames(wanted, best, touched);
      addTrigrams(query, best === 0 ? 1 : best, touched);
      if (vectors !== null) addNearness(vectors, query, best === 0 ? 1 : best, touched);
      const found = isWanted === undefined ? touched : touched.filter(isWanted);
      const top = pickBest(scores, found, most);
      const least = (top[0]?.score ?? 0) * NEAR;
      for (const { at } of top) scores[at] = 0;
      const near: number[] = [];
      for (const at of found) if (scores[at]! >= least && scores[at] !== 0) near.push(at);
      for (const at of touched) scores[at] = 0;
      return { best: top, near };
    },
  };
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

function greatest(scores: Float64Array, among: readonly number[]): number {
  let most = 0;
  for (const at of among) if (scores[at]! > most) most = scores[at]!;
  return most;
}

/** The documents with the highest scores. Equal ones are in their order. */
function pickBest(scores: Float64Array, among: readonly number[], most: number): Scored[] {
  const best: Scored[] = [];
  if (most === 0) return best;
  let least = Number.NEGATIVE_INFINITY;
  for (const at of among) {
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

/** The documents of each term in their order, and how much it counts in each of them, apart from how rare it is. */
interface Terms extends Groups {
  readonly weights: Float32Array;
}

// Loops over numbers, with as few as possible: after each change they run over all documents.

function groupTerms(bags: readonly Bag[], numbers: number, norms: Float32Array): Terms {
  const starts = new Uint32Array(numbers + 1);
  for (const { packed, terms } of bags) for (let i = 0; i < terms; i++) starts[termIn(packed[i]!) + 1]!++;
  const next = addUp(starts);
  const values = new Uint32Array(starts[numbers]!);
  const weights = new Float32Array(values.length);
  for (let at = 0; at < bags.length; at++) {
    const { packed, terms } = bags[at]!;
    const norm = norms[at]!;
    for (let i = 0; i < terms; i++) {
      const place = next[termIn(packed[i]!)]!++;
      const weight = weightIn(packed[i]!);
      values[place] = at;
      weights[place] = (weight * (TUNING.k1 + 1)) / (weight + norm);
    }
  }
  return { starts, values, weights };
}

/** The documents of each trigram, in their order. */
function groupTrigrams(bags: readonly Bag[], numbers: number): Groups {
  const starts = new Uint32Array(numbers + 1);
  for (const { packed, terms } of bags) for (let i = terms; i < packed.length; i++) starts[packed[i]! + 1]!++;
  const next = addUp(starts);
  const values = new Uint32Array(starts[numbers]!);
  for (let at = 0; at < bags.length; at++) {
    const { packed, terms } = bags[at]!;
    for (let i = terms; i < packed.length; i++) values[next[packed[i]!]!++] = at;
  }
  return { starts, values };
}

/** Makes the beginnings of groups from their sizes. Returns a copy, to count on from them. */
function addUp(starts: Uint32Array): Uint32Array {
  for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!;
  return starts.slice();
}

/** The terms of the name of each document. */
function groupNames(bags: readonly Bag[]): Groups {
  const starts = new Uint32Array(bags.length + 1);
  for (let at = 0; at < bags.length; at++) starts[at + 1] = starts[at]! + bags[at]!.named;
  const values = new Uint32Array(starts[bags.length]!);
  for (let at = 0; at < bags.length; at++) {
    const { packed, named } = bags[at]!;
    for (let i = 0; i < named; i++) values[starts[at]! + i] = termIn(packed[i]!);
  }
  return { starts, values };
}

/** How rare each term is. */
function rarityOf({ starts }: Groups, size: number): Float32Array {
  const rarities = new Float32Array(starts.length - 1);
  for (let i = 0; i < rarities.length; i++) {
    const count = starts[i + 1]! - starts[i]!;
    rarities[i] = Math.log(1 + (size - count + 0.5) / (count + 0.5));
  }
  return rarities;
}
