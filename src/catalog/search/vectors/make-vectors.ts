/**
 * Makes word vectors for the search from what a user has: a model with static vectors, as model2vec and
 * sentence-transformers publish them, with its tokenizer; or a table with a word and its numbers in each line.
 */
import { GatewayError } from '../../../base/errors.ts';
import { isObject, toObject } from '../../../base/objects.ts';
import { numbersOf, readTensors, type Tensor } from './tensors.ts';
import { INSIDE, type PieceVectors, quantize } from './word-vectors.ts';

export interface VectorLimits {
  /** The most pieces; the first ones are kept. Models and tables begin with the most frequent ones. */
  readonly most: number;
  /** How many numbers of each vector are kept; null for all of them. */
  readonly dimensions: number | null;
}

/** The names under which models have their vectors. */
const VECTORS = ['embeddings', 'embedding.weight', 'vectors'];
const PIECE = /^[\p{L}\p{N}\p{M}]+$/u;

type VectorRow = readonly [piece: string, vector: ArrayLike<number>];

/** `tokenizer` is the text of its `tokenizer.json`. `name` is the model in messages. */
export function vectorsFromModel(
  model: Uint8Array,
  tokenizer: string,
  name: string,
  limits: VectorLimits,
): PieceVectors {
  const { tensors } = readTensors(model, name);
  const found = VECTORS.map((one) => tensors.get(one)).find((one) => one !== undefined);
  if (found === undefined || found.shape.length !== 2)
    throw invalid(name, `it has no table of vectors (${VECTORS.join(', ')}), so it is no model with static vectors`);
  const [rows, width] = found.shape as [number, number];
  const values = numbersOf(found);
  const weights = optional(tensors.get('weights'));
  const places = optional(tensors.get('mapping'));
  const vectorOf = (id: number): Float32Array | null => {
    const row = places === null ? id : (places[id] ?? -1);
    if (!(row >= 0 && row < rows)) return null;
    const vector = values.slice(row * width, (row + 1) * width);
    const weight = weights?.[id] ?? 1;
    return weight === 1 ? vector : vector.map((one) => one * weight);
  };
  const pieces = piecesIn(tokenizer, name);
  return pack(
    (function* (): Generator<VectorRow> {
      for (const [piece, id] of pieces) {
        const vector = vectorOf(id);
        if (vector !== null) yield [piece, vector];
      }
    })(),
    width,
    name,
    limits,
  );
}

function optional(tensor: Tensor | undefined): Float32Array | null {
  return tensor === undefined ? null : numbersOf(tensor);
}

/** The pieces of a tokenizer with their numbers: those in lower case first, because all words are. */
function piecesIn(text: string, name: string): [piece: string, id: number][] {
  const { vocab, continuing_subword_prefix: prefix } = toObject(toObject(parseJson(text, name)).model);
  const listed: [string, number][] = Array.isArray(vocab)
    ? vocab.map((one, id) => [String((one as unknown[])?.[0]), id])
    : isObject(vocab)
      ? Object.entries(vocab).map(([piece, id]) => [piece, Number(id)])
      : [];
  if (listed.length === 0) throw invalid(name, 'its tokenizer has no vocabulary');
  const begins = ['▁', 'Ġ'].find((mark) => listed.some(([piece]) => piece.length > 1 && piece.startsWith(mark)));
  const inside = typeof prefix === 'string' && prefix !== '' ? prefix : INSIDE;
  const named = listed
    .sort(([, a], [, b]) => a - b)
    .flatMap(([piece, id]): [string, string, number][] => {
      const isInside = begins === undefined ? piece.startsWith(inside) : !piece.startsWith(begins);
      const bare = begins === undefined ? (isInside ? piece.slice(inside.length) : piece) : piece.replace(begins, '');
      return PIECE.test(bare) ? [[isInside ? INSIDE : '', bare, id]] : [];
    });
  const lower = named.filter(([, bare]) => bare === fold(bare));
  const others = named.filter(([, bare]) => bare !== fold(bare));
  return [...lower, ...others].map(([mark, bare, id]) => [mark + fold(bare), id]);
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}

/** `lines` are those of the file. A first line with only two numbers says how large the table is. */
export function vectorsFromTable(lines: Iterable<string>, name: string, limits: VectorLimits): PieceVectors {
  let width = 0;
  return pack(
    (function* (): Generator<VectorRow> {
      let at = 0;
      for (const line of lines) {
        at++;
        const [word = '', ...numbers] = line.trim().split(/\s+/);
        if (word === '' || (at === 1 && numbers.length === 1)) continue;
        const vector = numbers.map(Number);
        if (width === 0) width = vector.length;
        if (vector.length !== width || width < 2 || vector.some((one) => !Number.isFinite(one)))
          throw invalid(name, `line ${at} is not a word with ${width < 2 ? 'its' : width} numbers`);
        if (PIECE.test(word)) yield [fold(word), vector];
      }
    })(),
    null,
    name,
    limits,
  );
}

function pack(rows: Iterable<VectorRow>, width: number | null, name: string, { most, dimensions }: VectorLimits) {
  if (dimensions !== null && width !== null && dimensions > width)
    throw invalid(name, `its vectors have ${width} numbers, so ${dimensions} of them cannot be kept`);
  const pieces = new Map<string, Int8Array>();
  const scales: number[] = [];
  for (const [piece, vector] of rows) {
    if (pieces.size === most) break;
    if (pieces.has(piece)) continue;
    const kept = Array.prototype.slice.call(vector, 0, dimensions ?? vector.length) as number[];
    const values = new Int8Array(kept.length);
    scales.push(quantize(kept, values, 0));
    pieces.set(piece, values);
  }
  const size = pieces.values().next().value?.length ?? 0;
  if (size === 0) throw invalid(name, 'it has no words with vectors');
  const values = new Int8Array(pieces.size * size);
  [...pieces.values()].forEach((one, at) => {
    values.set(one, at * size);
  });
  return { pieces: [...pieces.keys()], dimensions: size, values, scales: Float32Array.from(scales) };
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(name, 'its tokenizer is no JSON');
  }
}

function invalid(name: string, why: string): GatewayError {
  return new GatewayError('config_invalid', `No vectors can be made from ${name}: ${why}.`);
}
