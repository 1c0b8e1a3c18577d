/** How near documents are to a query by the direction of their words, whatever words they use. */
import type { SearchDocument } from '../bag.ts';
import { quantize, type WeightedText, type WordVectors } from './word-vectors.ts';

/** The vector of a document in eight bits. */
export interface DocumentVector {
  readonly values: Int8Array;
  readonly scale: number;
}

/** For each document how near it is to a query, from minus one to one. Null if no word of the query is known. */
export type Nearness = (query: string) => Float32Array | null;

/** How many characters of a description count: its beginning says what an item does. */
const BEGINNING = 600;

export function vectorOf(vectors: WordVectors, document: SearchDocument): DocumentVector {
  const { name, titles, server, description, parameters } = document;
  const texts: WeightedText[] = [
    [name, 2],
    ...titles.map((title): WeightedText => [title, 1]),
    [server === name ? '' : server, 1],
    [description.slice(0, BEGINNING), 1],
    ...parameters.map((parameter): WeightedText => [parameter.name, 0.5]),
  ];
  const values = new Int8Array(vectors.dimensions);
  const direction = vectors.directionOf(texts);
  return { values, scale: direction === null ? 0 : quantize(direction, values, 0) };
}

export function createNearness(vectors: WordVectors, documents: readonly DocumentVector[]): Nearness {
  const { dimensions } = vectors;
  // One array for all: a query reads every number of it.
  const all = new Int8Array(documents.length * dimensions);
  for (let at = 0; at < documents.length; at++) all.set(documents[at]!.values, at * dimensions);
  return (query) => {
    const direction = vectors.directionOf([[query, 1]]);
    if (direction === null) return null;
    const near = new Float32Array(documents.length);
    for (let at = 0, place = 0; at < documents.length; at++) {
      let sum = 0;
      for (let i = 0; i < dimensions; i++) sum += direction[i]! * all[place++]!;
      near[at] = sum * documents[at]!.scale;
    }
    return near;
  };
}
