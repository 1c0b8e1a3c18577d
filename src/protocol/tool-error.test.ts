import { describe, expect, it } from 'vitest';
import { endsWithError, saysError, startsWithError } from './tool-error.ts';

const filler = (length: number) => [{ type: 'text', text: 'isError "isError":true '.repeat(length / 23) }];
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));

describe('saysError', () => {
  const cases: [string, boolean, Buffer][] = [
    ['nothing', false, bytes({ content: [] })],
    ['an empty object', false, bytes({})],
    ['true at the end', true, bytes({ content: filler(100), isError: true })],
    ['true at the start', true, bytes({ isError: true, content: filler(100) })],
    ['true in between', true, bytes({ content: filler(100), isError: true, _meta: { a: 1 } })],
    ['false', false, bytes({ content: [], isError: false })],
    ['a text that looks like it', false, bytes({ content: filler(500) })],
    ['something inside that says so', false, bytes({ content: [], structuredContent: { isError: true } })],
    ['something inside, and itself', true, bytes({ structuredContent: { isError: false }, isError: true })],
    ['spaces', true, Buffer.from('{ "content" : [] , "isError" :\n true }')],
    ['what is no boolean', false, bytes({ content: [], isError: 'true' })],
    ['a long one, at its end', true, bytes({ content: filler(100_000), isError: true })],
    ['a long one, at its start', true, bytes({ isError: true, content: filler(100_000) })],
    ['a long one that says nothing', false, bytes({ content: filler(100_000) })],
  ];

  it.each(cases)('%s: %s', (_, expected, result) => {
    expect(saysError(result)).toBe(expected);
  });

  it.each(cases)('%s: %s, in whatever parts it comes', (_, expected, result) => {
    const cuts = Array.from({ length: Math.min(60, result.length) }, (_, i) => i + 1);
    for (const one of cuts) {
      const [start, end] = [result.length - one, result.length];
      expect(saysError([result.subarray(0, one), result.subarray(one)])).toBe(expected);
      expect(saysError([result.subarray(0, start), result.subarray(start)])).toBe(expected);
      expect(saysError([result.subarray(0, start), result.subarray(start, end - 1), result.subarray(end - 1)])).toBe(
        expected,
      );
    }
  });

  it('looks at both ends of a result in parts', () => {
    const result = bytes({ content: filler(10_000), isError: true });
    expect(saysError([result.subarray(0, 5_000), result.subarray(5_000)])).toBe(true);
    expect(saysError([Buffer.from('{"isError":true,"content":'), Buffer.from('[]}')])).toBe(true);
    expect(saysError([Buffer.from('{"content":'), Buffer.from('[]}')])).toBe(false);
  });
});

it.each([
  ['{"isError":true,"content":[', true],
  ['{"content":[{"text":"a{","isError":true}', false],
  ['{"isError":false,"content":[', false],
])('tells by its beginning whether a long result %s… reports an error', (text, expected) => {
  expect(startsWithError(Buffer.from(text))).toBe(expected);
});

it.each([
  ['x"}],"isError":true}', true],
  ['x"}],"isError" : true,"_meta":{"a":["}"]} }', true],
  ['x"}],"structuredContent":{"isError":true}}', false],
  ['x","isError":true}]}', false],
])('tells by its end whether a long result …%s reports an error', (text, expected) => {
  expect(endsWithError(Buffer.from(text))).toBe(expected);
});
