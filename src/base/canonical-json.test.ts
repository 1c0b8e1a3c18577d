import { expect, it } from 'vitest';
import { canonicalJson } from './canonical-json.ts';

it('canonical JSON is the same text for equal values in any key order', () => {
  const text = '{"a":[{"x":1,"y":2}],"b":null}';
  expect(canonicalJson({ b: null, a: [{ y: 2, x: 1 }], c: undefined })).toBe(text);
  expect(canonicalJson({ a: [{ x: 1, y: 2 }], b: null })).toBe(text);
});

it('canonical JSON keeps the order of lists and keys such as __proto__', () => {
  expect(canonicalJson([2, 1])).toBe('[2,1]');
  expect(canonicalJson(JSON.parse('{"b":1,"__proto__":2}'))).toBe('{"__proto__":2,"b":1}');
});
