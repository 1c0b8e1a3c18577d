/**
 * Vectors of words: words that mean about the same have vectors in about the same direction. A text has the direction of
 * its words together. The vectors are those of pieces of words, in eight bits each, and come from a file that
 * `toolgate vectors` makes.
 */
import { GatewayError } from '../../../base/errors.ts';
import { termOf, wordsIn } from '../words.ts';
import { numbersOf, printTensors, readTensors } from './tensors.ts';

export interface WordVectors {
  readonly dimensions: number;
  /** How many pieces of words it knows. */
  readonly size: number;
  /** The direction of texts, each with its weight: a vector of length one. Null if no word is known. */
  directionOf(texts: readonly WeightedText[]): Float32Array | null;
}

export type WeightedText = readonly [text: string, weight: number];

/** Pieces of words with their vectors, one after the other. */
export interface PieceVectors {
  /** A piece that stands inside of a word begins with `##`. */
  readonly pieces: readonly string[];
  readonly dimensions: number;
  readonly values: Int8Array;
  /** What the values of each vector are multiplied by. */
  readonly scales: Float32Array;
}

export const INSIDE = '##';
const FORMAT = 'toolgate-vectors-1';
const MOST = 127;
const LONGEST_PIECE = 24;

/** The bytes of a file. */
export function printVectors({ pieces, dimensions, values, scales }: PieceVectors): Buffer {
  const text = Buffer.from(pieces.join('\n'));
  const bytes = (array: Int8Array | Float32Array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  return printTensors({
    metadata: { format: FORMAT },
    tensors: new Map([
      ['scales', { type: 'F32', shape: [pieces.length], bytes: bytes(scales) }],
      ['vectors', { type: 'I8', shape: [pieces.length, dimensions], bytes: bytes(values) }],
      ['pieces', { type: 'U8', shape: [text.length], bytes: text }],
    ]),
  });
}

/** Throws if the bytes are no file of `toolgate vectors`. `name` is the file in messages. */
export function readVectors(bytes: Uint8Array, name: string): WordVectors {
  const { metadata, tensors } = readTensors(bytes, name);
  const [vectors, scales, text] = ['vectors', 'scales', 'pieces'].map((one) => tensors.get(one));
  const pieces = text === undefined ? [] : Buffer.from(text.bytes).toString().split('\n');
  const [count, dimensions = 0] = vectors?.shape ?? [];
  const isRight =
    metadata.format === FORMAT &&
    vectors?.type === 'I8' &&
    count === pieces.length &&
    dimensions > 0 &&
    scales?.type === 'F32' &&
    scales.shape[0] === count;
  if (!isRight)
    throw new GatewayError(
      'config_invalid',
      `${name} has no word vectors for the search. Make them from a model with: toolgate vectors MODEL ${name}`,
    );
  const values = new Int8Array(vectors.bytes.buffer, vectors.bytes.byteOffset, vectors.bytes.byteLength);
  return createVectors({ pieces, dimensions, values, scales: numbersOf(scales) });
}

export function createVectors({ pieces, dimensions, values, scales }: PieceVectors): WordVectors {
  const places = new Map(pieces.map((piece, at) => [piece, at]));

  /** The pieces of a word: each time the longest one that fits. Single letters say nothing. */
  function piecesOf(word: string): number[] {
    const found: number[] = [];
    let at = 0;
    while (at < word.length) {
      const mark = at === 0 ? '' : INSIDE;
      let end = Math.min(word.length, at + LONGEST_PIECE);
      let place: number | undefined;
      for (; end > at; end--) {
        place = places.get(mark + word.slice(at, end));
        if (place !== undefined) break;
      }
      if (place === undefined) end = at + 1;
      else if (end - at > 1 || word[at]! > 'z') found.push(place);
      at = end;
    }
    return found;
  }

  function addWord(word: string, weight: number, into: Float32Array): void {
    const found = piecesOf(word);
    for (const place of found) {
      const scale = (weight * scales[place]!) / Math.sqrt(found.length);
      const start = place * dimensions;
      for (let i = 0; i < dimensions; i++) into[i]! += scale * values[start + i]!;
    }
  }

  return {
    dimensions,
    size: pieces.length,
    directionOf(texts) {
      const sum = new Float32Array(dimensions);
      for (const [text, weight] of texts)
        for (const word of wordsIn(text)) if (termOf(word) !== null) addWord(word, weight, sum);
      let squares = 0;
      for (const one of sum) squares += one * one;
      if (!(squares > 0)) return null;
      const length = Math.sqrt(squares);
      for (let i = 0; i < dimensions; i++) sum[i]! /= length;
      return sum;
    },
  };
}

/** A vector in eight bits, and what its values are multiplied by. */
export function quantize(vector: ArrayLike<number>, into: Int8Array, start: number): number {
  let most = 0;
  for (let i = 0; i < vector.length; i++) most = Math.max(most, Math.abs(vector[i]!));
  if (!(most > 0) || most === Number.POSITIVE_INFINITY) return 0;
  for (let i = 0; i < vector.length; i++) into[start + i] = Math.round((vector[i]! / most) * MOST);
  return most / MOST;
}
