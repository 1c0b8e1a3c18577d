/**
 * Which documents have a term, and how much it counts in each. A change reads only the documents that changed: it keeps
 * the lists of an earlier state as they are, notes which of their documents are gone, and adds short lists of those that
 * are new. What a query asks for is put together when it is first asked for. So it is the same, to the last digit, as if
 * all documents were new.
 */
import { type Bag, termIn, type Vocabulary, weightIn } from './bag.ts';

/** How much more often a term counts less and less, and how much long documents count less. */
export interface Saturation {
  readonly k1: number;
  readonly b: number;
}

/** The documents of a term. */
export interface TermPostings {
  /** How rare the term is. */
  readonly rarity: number;
  /** The places of its documents, in their order. */
  readonly places: Uint32Array;
  /** How much it counts in each of them, apart from how rare it is. */
  readonly weights: Float32Array;
  /** The places of those that have it in their name. */
  readonly named: Uint32Array;
}

export interface Postings {
  readonly bags: readonly Bag[];
  /** Null if no document has the term. */
  term(term: string): TermPostings | null;
  /** The places of the documents with a trigram in their name, in their order. Null if there are none. */
  trigram(trigram: string): Uint32Array | null;
  /** How rare the words of a name are together. */
  nameRarity(at: number): number;
}

/** Numbers in groups: those of group `n` are `values` from `starts[n]` to `starts[n + 1]`. */
interface Groups {
  readonly starts: Uint32Array;
  readonly values: Uint32Array;
}

/** Documents with the lists of all their terms and trigrams. Later states are made from it. */
interface PostingLists {
  readonly bags: readonly Bag[];
  readonly terms: Groups;
  readonly trigrams: Groups;
  /** Where each bag is. Made at the first change. */
  places: ReadonlyMap<Bag, number> | null;
}

/** How documents differ from those of a base. */
interface Difference {
  /** For each document of the base its place now, or `GONE`. They are in the same order. */
  readonly places: Int32Array;
  readonly gone: readonly Bag[];
  readonly added: readonly number[];
}

const GONE = -1;

/** Above this part of all documents all lists are built again. Below it, queries skip the documents that are gone. */
const MOST_CHANGED = 0.2;

/** In a value of a group: the place of a document, whether its name has the term, and the weight as a bag has it. */
const NAMED = 1 << 8;
const PLACE_SHIFT = 9;

const bases = new WeakMap<Postings, PostingLists>();

/** @param before earlier states with the same vocabulary. The first that is much the same is built on. */
export function createPostings(
  vocabulary: Vocabulary,
  bags: readonly Bag[],
  saturation: Saturation,
  before: readonly Postings[],
): Postings {
  let base: PostingLists | null = null;
  let difference: Difference | null = null;
  for (const earlier of new Set(before.map((one) => bases.get(one)!))) {
    difference = compare(earlier, bags);
    if (difference === null) continue;
    base = earlier;
    break;
  }
  base ??= createBase(
    bags,
    bags.map((_, at) => at),
    vocabulary,
  );
  const postings = openPostings(vocabulary, bags, saturation, base, difference);
  bases.set(postings, base);
  return postings;
}

function openPostings(
  vocabulary: Vocabulary,
  bags: readonly Bag[],
  { k1, b }: Saturation,
  base: PostingLists,
  difference: Difference | null,
): Postings {
  const size = bags.length;
  let total = 0;
  for (let at = 0; at < size; at++) total += bags[at]!.length;
  const average = total / Math.max(1, size) || 1;
  const counts = countsOf(base.terms, vocabulary.terms.size);
  let added: PostingLists | null = null;
  if (difference !== null) {
    const fresh = difference.added.map((at) => bags[at]!);
    for (const bag of difference.gone) count(bag, counts, -1);
    for (const bag of fresh) count(bag, counts, 1);
    added = createBase(fresh, difference.added, vocabulary);
  }
  /** By how many documents have a term. */
  const rarities = new Map<number, number>();
  /** Zero if it was not asked for. */
  const nameRarities = new Float32Array(size);
  const terms = new Map<string, TermPostings>();
  const trigrams = new Map<string, Uint32Array>();

  function rarityOf(count: number): number {
    let rarity = rarities.get(count);
    if (rarity === undefined) {
      rarity = Math.fround(Math.log(1 + (size - count + 0.5) / (count + 0.5)));
      rarities.set(count, rarity);
    }
    return rarity;
  }

  function makeTerm(values: Uint32Array): TermPostings {
    const places = new Uint32Array(values.length);
    const weights = new Float32Array(values.length);
    const named: number[] = [];
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      const at = value >>> PLACE_SHIFT;
      const weight = weightIn(value);
      const norm = Math.fround(k1 * (1 - b + (b * bags[at]!.length) / average));
      places[i] = at;
      weights[i] = (weight * (k1 + 1)) / (weight + norm);
      if ((value & NAMED) !== 0) named.push(at);
    }
    return { rarity: rarityOf(values.length), places, weights, named: Uint32Array.from(named) };
  }

  return {
    bags,
    term(term) {
      const known = terms.get(term);
      if (known !== undefined) return known;
      const number = vocabulary.terms.get(term);
      // Other catalogs have words that no document here has, and later ones have numbers that are unknown here.
      if (number === undefined || number >= counts.length || counts[number] === 0) return null;
      const postings = makeTerm(
        join(groupOf(base.terms, number), groupOf(added?.terms, number), difference, counts[number]!),
      );
      terms.set(term, postings);
      return postings;
    },
    trigram(trigram) {
      const known = trigrams.get(trigram);
      if (known !== undefined) return known;
      const number = vocabulary.trigrams.get(trigram);
      if (number === undefined) return null;
      const values = join(groupOf(base.trigrams, number), groupOf(added?.trigrams, number), difference, null);
      if (values.length === 0) return null;
      const places = values.map((value) => value >>> PLACE_SHIFT);
      trigrams.set(trigram, places);
      return places;
    },
    nameRarity(at) {
      if (nameRarities[at] === 0) {
        const { packed, named } = bags[at]!;
        let sum = 0;
        for (let i = 0; i < named; i++) sum += rarityOf(counts[termIn(packed[i]!)]!);
        nameRarities[at] = sum;
      }
      return nameRarities[at]!;
    },
  };
}

/** How documents differ from those of a base; null if that is too much. */
function compare(base: PostingLists, bags: readonly Bag[]): Difference | null {
  const most = MOST_CHANGED * bags.length;
  if (base.bags.length - bags.length > most) return null;
  const places = new Int32Array(base.bags.length).fill(GONE);
  const added: number[] = [];
  let next = 0;
  for (let at = 0; at < bags.length; at++) {
    const bag = bags[at]!;
    let place: number | undefined = next;
    if (base.bags[next] !== bag) {
      base.places ??= new Map(base.bags.map((one, i) => [one, i]));
      place = base.places.get(bag);
    }
    // One that comes earlier than before is treated as new, so that the lists stay in order.
    if (place === undefined || place < next) {
      if (added.push(at) > most) return null;
    } else {
      places[place] = at;
      next = place + 1;
    }
  }
  if (base.bags.length - (bags.length - added.length) > most) return null;
  return { places, gone: base.bags.filter((_, i) => places[i] === GONE), added };
}

function createBase(bags: readonly Bag[], places: readonly number[], vocabulary: Vocabulary): PostingLists {
  return {
    bags,
    terms: groupTerms(bags, places, vocabulary.terms.size),
    trigrams: groupTrigrams(bags, places, vocabulary.trigrams.size),
    places: null,
  };
}

/** The values of one group, those that are gone left out and new ones in their places. */
function join(old: Uint32Array, fresh: Uint32Array, difference: Difference | null, known: number | null): Uint32Array {
  if (difference === null) return old;
  const { places } = difference;
  const joined = new Uint32Array(known ?? old.length + fresh.length);
  let length = 0;
  let next = 0;
  for (let i = 0; i < old.length; i++) {
    const place = places[old[i]! >>> PLACE_SHIFT]!;
    if (place === GONE) continue;
    const value = ((place << PLACE_SHIFT) | (old[i]! & (2 * NAMED - 1))) >>> 0;
    while (next < fresh.length && fresh[next]! < value) joined[length++] = fresh[next++]!;
    joined[length++] = value;
  }
  while (next < fresh.length) joined[length++] = fresh[next++]!;
  return joined.subarray(0, length);
}

const NOTHING = new Uint32Array(0);

function groupOf(groups: Groups | undefined, number: number): Uint32Array {
  if (groups === undefined || number + 1 >= groups.starts.length) return NOTHING;
  return groups.values.subarray(groups.starts[number]!, groups.starts[number + 1]!);
}

/** In how many documents each term is. */
function countsOf({ starts }: Groups, numbers: number): Uint32Array {
  const counts = new Uint32Array(numbers);
  for (let i = 0; i + 1 < starts.length; i++) counts[i] = starts[i + 1]! - starts[i]!;
  return counts;
}

function count({ packed, terms }: Bag, counts: Uint32Array, by: number): void {
  for (let i = 0; i < terms; i++) counts[termIn(packed[i]!)]! += by;
}

function groupTerms(bags: readonly Bag[], places: readonly number[], numbers: number): Groups {
  const starts = new Uint32Array(numbers + 1);
  for (const { packed, terms } of bags) for (let i = 0; i < terms; i++) starts[termIn(packed[i]!) + 1]!++;
  const next = addUp(starts);
  const values = new Uint32Array(starts[numbers]!);
  for (let one = 0; one < bags.length; one++) {
    const { packed, terms, named } = bags[one]!;
    const place = places[one]! << PLACE_SHIFT;
    for (let i = 0; i < terms; i++) {
      const term = termIn(packed[i]!);
      values[next[term]!++] = (place | (i < named ? NAMED : 0) | (packed[i]! & (NAMED - 1))) >>> 0;
    }
  }
  return { starts, values };
}

/** The documents of each trigram, in their order. */
function groupTrigrams(bags: readonly Bag[], places: readonly number[], numbers: number): Groups {
  const starts = new Uint32Array(numbers + 1);
  for (const { packed, terms } of bags) for (let i = terms; i < packed.length; i++) starts[packed[i]! + 1]!++;
  const next = addUp(starts);
  const values = new Uint32Array(starts[numbers]!);
  for (let one = 0; one < bags.length; one++) {
    const { packed, terms } = bags[one]!;
    const value = (places[one]! << PLACE_SHIFT) >>> 0;
    for (let i = terms; i < packed.length; i++) values[next[packed[i]!]!++] = value;
  }
  return { starts, values };
}

/** Makes the beginnings of groups from their sizes. Returns a copy, to count on from them. */
function addUp(starts: Uint32Array): Uint32Array {
  for (let i = 1; i < starts.length; i++) starts[i]! += starts[i - 1]!;
  return starts.slice();
}
