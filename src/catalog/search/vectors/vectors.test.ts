import { describe, expect, it } from 'vitest';
import { createVocabulary, packBag, type SearchDocument } from '../bag.ts';
import { buildIndex } from '../search-index.ts';
import { vectorsFromModel, vectorsFromTable } from './make-vectors.ts';
import { createNearness, vectorOf } from './nearness.ts';
import { numbersOf, printTensors, readTensors, type Tensor } from './tensors.ts';
import { createVectors, type PieceVectors, printVectors, readVectors } from './word-vectors.ts';

const ALL = { most: 1_000, dimensions: null };
const TABLE = ['folder 1 0 0', 'directory 0.9 0.1 0', 'weather 0 1 0', 'rain 0 0.9 0.2', 'invoice 0 0 1'];

const floats = (shape: number[], ...values: number[]): Tensor => ({
  type: 'F32',
  shape,
  bytes: new Uint8Array(Float32Array.from(values).buffer),
});
const model = (...tensors: [string, Tensor][]) => printTensors({ metadata: {}, tensors: new Map(tensors) });
const tokenizer = (vocab: unknown, more: object = {}) => JSON.stringify({ model: { vocab, ...more } });

const direction = (made: PieceVectors, text: string) => {
  const found = createVectors(made).directionOf([[text, 1]]);
  return found === null ? null : [...found].map((one) => Number(one.toFixed(2)));
};

describe('files in the format safetensors', () => {
  it('are read as they were written', () => {
    const { metadata, tensors } = readTensors(
      printTensors({ metadata: { a: 'b' }, tensors: new Map([['x', floats([2, 2], 1, 2, 3, -4.5)]]) }),
      'x',
    );
    expect(metadata).toEqual({ a: 'b' });
    expect([...numbersOf(tensors.get('x')!)]).toEqual([1, 2, 3, -4.5]);
  });

  it('may have numbers of sixteen bits, of either kind', () => {
    const of = (type: string, ...bits: number[]) => [
      ...numbersOf({ type, shape: [bits.length], bytes: new Uint8Array(Uint16Array.from(bits).buffer) }),
    ];
    expect(of('F16', 0x3c00, 0xc000, 0x3555, 0x0001)).toEqual([1, -2, 0.333251953125, 2 ** -24]);
    expect(of('BF16', 0x3f80, 0xc000)).toEqual([1, -2]);
  });

  it.each([
    ['an empty file', Buffer.alloc(0), /too short/],
    ['text', Buffer.from('this is only some text'), /header is longer/],
    ['a header that is no JSON', Buffer.from('\x02\0\0\0\0\0\0\0{]'), /no JSON/],
    ['a tensor beyond the end', model(['x', floats([2], 1, 2)]).subarray(0, -1), /size that its header says/],
  ])('are refused if they are %s', (_, bytes, message) => {
    expect(() => readTensors(bytes, 'words.vectors')).toThrow(message);
    expect(() => readVectors(bytes, 'words.vectors')).toThrow(/words\.vectors/);
  });
});

describe('vectors from a table', () => {
  it('are kept in eight bits, and read again from their file', () => {
    const made = vectorsFromTable(TABLE, 'table', ALL);
    expect(made.pieces).toEqual(['folder', 'directory', 'weather', 'rain', 'invoice']);
    const read = readVectors(printVectors(made), 'words.vectors');
    expect(read).toMatchObject({ dimensions: 3, size: 5 });
    expect([...read.directionOf([['a Directory and a folder', 1]])!].map((one) => one.toFixed(1))).toEqual([
      '1.0',
      '0.1',
      '0.0',
    ]);
    expect(read.directionOf([['of the zzz', 1]])).toBeNull();
  });

  it('may begin with their number, and have more words and numbers than are kept', () => {
    const made = vectorsFromTable(['5 3', ...TABLE], 'table', { most: 2, dimensions: 2 });
    expect(made).toMatchObject({ pieces: ['folder', 'directory'], dimensions: 2 });
  });

  it('are refused by the line that is wrong', () => {
    expect(() => vectorsFromTable([...TABLE, 'short 1 2'], 'my.txt', ALL)).toThrow(
      'No vectors can be made from my.txt: line 6 is not a word with 3 numbers.',
    );
    expect(() => vectorsFromTable(['only words here'], 'my.txt', ALL)).toThrow(/line 1/);
    expect(() => vectorsFromTable([], 'my.txt', ALL)).toThrow(/no words with vectors/);
  });
});

describe('vectors from a model', () => {
  const values = floats([4, 2], 1, 0, 0, 1, 3, 4, 0, -2);

  it('have the pieces of words that its tokenizer has', () => {
    const wordPiece = tokenizer({ '[UNK]': 0, weather: 1, fore: 2, '##cast': 3 }, { continuing_subword_prefix: '##' });
    const made = vectorsFromModel(model(['embeddings', values]), wordPiece, 'model', ALL);
    expect(made.pieces).toEqual(['weather', 'fore', '##cast']);
    expect(direction(made, 'weather')).toEqual([0, 1]);
    // (3, 4) and (0, -2) together.
    expect(direction(made, 'forecast')).toEqual([0.83, 0.56]);
    expect(direction(made, 'cast')).toBeNull();
  });

  it('prefer pieces in lower case, and know other marks for the beginning of a word', () => {
    const bpe = tokenizer({ '▁Fore': 0, ther: 1, '▁fore': 2, '▁wea': 3 });
    const made = vectorsFromModel(model(['embedding.weight', values]), bpe, 'model', ALL);
    expect(made.pieces).toEqual(['##ther', 'fore', 'wea']);
    expect(direction(made, 'fore')).toEqual([0.6, 0.8]);
    const unigram = tokenizer([
      ['<unk>', 0],
      ['▁wea', -1],
    ]);
    expect(vectorsFromModel(model(['embeddings', values]), unigram, 'model', ALL).pieces).toEqual(['wea']);
  });

  it('may share vectors, with a weight for each piece', () => {
    const places = { type: 'I64', shape: [3], bytes: new Uint8Array(BigInt64Array.from([0n, 1n, 1n]).buffer) };
    const bytes = model(['embeddings', values], ['mapping', places], ['weights', floats([3], 1, 1, 0.5)]);
    const made = vectorsFromModel(bytes, tokenizer({ a: 0, big: 1, small: 2 }), 'model', ALL);
    expect(direction(made, 'big')).toEqual(direction(made, 'small'));
    expect(made.scales[2]! / made.scales[1]!).toBeCloseTo(0.5);
  });

  it('are refused with the reason', () => {
    expect(() => vectorsFromModel(model(['layer.0', values]), tokenizer({ a: 0 }), 'my model', ALL)).toThrow(
      /my model: it has no table of vectors .* no model with static vectors/,
    );
    expect(() => vectorsFromModel(model(['embeddings', values]), '{}', 'my model', ALL)).toThrow(/no vocabulary/);
    expect(() => vectorsFromModel(model(['embeddings', values]), 'x', 'my model', ALL)).toThrow(/no JSON/);
    expect(() =>
      vectorsFromModel(model(['embeddings', values]), tokenizer({ a: 0 }), 'my model', { most: 9, dimensions: 3 }),
    ).toThrow(/have 2 numbers, so 3 of them cannot be kept/);
  });
});

describe('a search with vectors', () => {
  const document = (name: string, description: string): SearchDocument => ({
    ...{ name, description, titles: [], server: 'any', purpose: '', parameters: [] },
  });
  const documents = [document('show_rain', 'Rain'), document('pay', 'An invoice'), document('ls', 'A directory')];
  const words = createVectors(vectorsFromTable(TABLE, 'table', ALL));
  const vocabulary = createVocabulary();
  const bags = documents.map((one) => packBag(vocabulary, one));
  const nearness = createNearness(
    words,
    documents.map((one) => vectorOf(words, one)),
  );
  const found = (query: string, weight: number) =>
    buildIndex(vocabulary, bags, { nearness, weight })
      .find(query, 5)
      .best.map(({ at }) => documents[at]!.name);

  it('finds what means the same in other words, and nothing that does not', () => {
    const far = createVectors(vectorsFromTable(['sunny 0 1 0', ...TABLE], 'table', ALL));
    const near = createNearness(
      far,
      documents.map((one) => vectorOf(far, one)),
    );
    const sunny = (vectors: Parameters<typeof buildIndex>[2]) =>
      buildIndex(vocabulary, bags, vectors)
        .find('sunny', 5)
        .best.map(({ at }) => documents[at]!.name);
    expect(sunny(null)).toEqual([]);
    expect(sunny({ nearness: near, weight: 0.2 })).toEqual(['show_rain']);
    expect(found('zzz', 0.2)).toEqual([]);
  });

  it('adds to what words find, and changes nothing with the weight 0', () => {
    const plain = buildIndex(vocabulary, bags).find('directory invoice', 5).best;
    expect(buildIndex(vocabulary, bags, { nearness, weight: 0 }).find('directory invoice', 5).best).toEqual(plain);
    expect(found('directory', 0.2)[0]).toBe('ls');
  });
});
