/**
 * What the search knows of one item: its terms with weights, and the trigrams of its name. Both are numbers of a
 * vocabulary, packed into one array, because ten thousand items have half a million of them.
 */
import { termsOf, wordsIn } from './words.ts';

/** An item as the search reads it. */
export interface SearchDocument {
  readonly name: string;
  /** Other texts that name it: its title, or the name under which it is exposed. */
  readonly titles: readonly string[];
  /** Names of its server. */
  readonly server: string;
  /** What its server is for; may be empty. */
  readonly purpose: string;
  readonly description: string;
  readonly parameters: readonly { readonly name: string; readonly description: string }[];
}

/** How much a term counts, by where it is. Multiples of a half, because that is how they are kept. */
const WEIGHTS = { name: 2, title: 1, server: 1, description: 1, parameter: 1, about: 0.5, example: 0.5 } as const;

/** What is further behind says little, and one tool should not fill the index. */
const LONGEST = { description: 4_000, about: 400, parameters: 100 };

/** The beginning of a description says what an item does, in so many characters. The rest are details. */
const BEGINNING = 300;

/** Weights are kept in these bits, as halves. */
const WEIGHT_BITS = 8;
const MOST_HALVES = (1 << WEIGHT_BITS) - 1;
/** From this size on, most terms of a vocabulary are of items that are gone. */
const WORN = 200_000;

/** The numbers of terms and trigrams. They grow, and are never given again. */
export interface Vocabulary {
  readonly terms: Map<string, number>;
  readonly trigrams: Map<string, number>;
}

export function createVocabulary(): Vocabulary {
  return { terms: new Map(), trigrams: new Map() };
}

/** Whether a new vocabulary should be started. */
export function isWorn({ terms, trigrams }: Vocabulary): boolean {
  return terms.size + trigrams.size > WORN;
}

export interface Bag {
  /** The terms with their weights (`termIn`, `weightIn`), then the trigrams. */
  readonly packed: Uint32Array;
  /** How many terms there are. */
  readonly terms: number;
  /** How many of them are in the name: they come first. */
  readonly named: number;
  /** The sum of all weights. */
  readonly length: number;
}

export function termIn(packed: number): number {
  return packed >>> WEIGHT_BITS;
}

export function weightIn(packed: number): number {
  return (packed & MOST_HALVES) / 2;
}

export function packBag({ terms, trigrams }: Vocabulary, document: SearchDocument): Bag {
  const weights = new Map<string, number>();
  const add = (text: string, weight: number) => {
    for (const term of termsOf(text)) weights.set(term, (weights.get(term) ?? 0) + weight);
  };
  add(document.name, WEIGHTS.name);
  const named = weights.size;
  for (const title of document.titles) add(title, WEIGHTS.title);
  add(document.server, WEIGHTS.server);
  add(document.purpose.slice(0, LONGEST.about), WEIGHTS.about);
  const end = endOfBeginning(document.description);
  add(document.description.slice(0, end), WEIGHTS.description);
  add(document.description.slice(end, LONGEST.description), WEIGHTS.about);
  for (const { name, description } of document.parameters.slice(0, LONGEST.parameters)) {
    add(name, WEIGHTS.parameter);
    add(description.slice(0, LONGEST.about), WEIGHTS.about);
  }
  const numbered = new Map([...weights].map(([term, weight]) => [numberOf(terms, term), weight]));
  const ofName = [...trigramsIn(document.name)].map((one) => numberOf(trigrams, one));
  return pack(numbered, named, ofName);
}

/** No word is cut. */
function endOfBeginning(text: string): number {
  const space = text.slice(BEGINNING, LONGEST.description).search(/\s/);
  return text.length <= BEGINNING || space < 0 ? LONGEST.description : BEGINNING + space;
}

/** The bag with example queries added. */
export function withExamples({ terms }: Vocabulary, bag: Bag, examples: readonly string[]): Bag {
  const weights = new Map<number, number>();
  for (const one of bag.packed.subarray(0, bag.terms)) weights.set(termIn(one), weightIn(one));
  for (const term of examples.flatMap(termsOf)) {
    const number = numberOf(terms, term);
    weights.set(number, (weights.get(number) ?? 0) + WEIGHTS.example);
  }
  return pack(weights, bag.named, bag.packed.subarray(bag.terms));
}

function pack(weights: ReadonlyMap<number, number>, named: number, trigrams: ArrayLike<number>): Bag {
  const packed = new Uint32Array(weights.size + trigrams.length);
  let at = 0;
  let length = 0;
  for (const [term, weight] of weights) {
    packed[at++] = ((term << WEIGHT_BITS) | Math.min(weight * 2, MOST_HALVES)) >>> 0;
    length += weight;
  }
  packed.set(trigrams, at);
  return { packed, terms: weights.size, named, length };
}

function numberOf(numbers: Map<string, number>, text: string): number {
  const known = numbers.get(text);
  if (known !== undefined) return known;
  const number = numbers.size;
  numbers.set(text, number);
  return number;
}

/** The trigrams of all words of a text, with their ends marked. They find names in spite of typing mistakes. */
export function trigramsIn(text: string): Set<string> {
  const trigrams = new Set<string>();
  for (const word of wordsIn(text.slice(0, 200))) {
    const marked = `^${word}$`;
    for (let i = 0; i + 3 <= marked.length; i++) trigrams.add(marked.slice(i, i + 3));
  }
  return trigrams;
}
