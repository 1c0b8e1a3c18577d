import { expect, it } from 'vitest';
import { canonicalJson, sha256 } from './hash.ts';

it('sha256 hashes text and bytes alike, in the requested encoding', () => {
  const hex = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  expect(sha256('abc')).toBe(hex);
  expect(sha256(Buffer.from('abc'))).toBe(hex);
  expect(sha256('abc', 'base64url')).toBe(Buffer.from(hex, 'hex').toString('base64url'));
});

it('canonical JSON is the same text for equal values in any key order', () => {
  const text = '{"a":[{"x":1,"y":2}],"b":null}';
  expect(canonicalJson({ b: null, a: [{ y: 2, x: 1 }], c: undefined })).toBe(text);
  expect(canonicalJson({ a: [{ x: 1, y: 2 }], b: null })).toBe(text);
});

it('canonical JSON keeps the order of lists and keys such as __proto__', () => {
  expect(canonicalJson([2, 1])).toBe('[2,1]');
  expect(canonicalJson(JSON.parse('{"b":1,"__proto__":2}'))).toBe('{"__proto__":2,"b":1}');
});
