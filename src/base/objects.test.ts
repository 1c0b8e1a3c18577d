import { describe, expect, it } from 'vitest';
import { isObject, isSameValue, toObject } from './objects.ts';

it('recognizes plain objects and nothing else as objects', () => {
  expect([{}, { a: 1 }, Object.create(null)].every(isObject)).toBe(true);
  expect([null, undefined, [], [{}], 'text', 1, true, () => {}].some(isObject)).toBe(false);
});

it('turns a value that is not an object into an empty object', () => {
  const object = { a: 1 };
  expect(toObject(object)).toBe(object);
  expect([toObject(null), toObject([1]), toObject('text')]).toEqual([{}, {}, {}]);
});

describe('two values are the same', () => {
  it.each([
    ['plain data in another order of keys', { a: 1, b: [{ c: null }] }, { b: [{ c: null }], a: 1 }],
    ['functions with equal results', { key: () => 'x' }, { key: () => 'x' }],
    ['functions with parameters', { check: (n: number) => n }, { check: (n: number) => n + 1 }],
    ['maps with equal entries', new Map([['a', { b: 1 }]]), new Map([['a', { b: 1 }]])],
    ['equal sets', { a: new Set([1]) }, { a: new Set([1]) }],
    ['objects without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['NaN', [Number.NaN], [Number.NaN]],
  ])('%s', (_, a, b) => {
    expect(isSameValue(a, b)).toBe(true);
    expect(isSameValue(b, a)).toBe(true);
  });
});

describe('two values differ', () => {
  it.each([
    ['in a nested value', { a: [{ b: 1 }] }, { a: [{ b: 2 }] }],
    ['in a key', { a: undefined }, { b: undefined }],
    ['in a missing key', { a: 1 }, { a: 1, b: undefined }],
    ['in the order of a list', [1, 2], [2, 1]],
    ['in the length of a list', [1], [1, 2]],
    ['in what a function returns', { key: () => 'x' }, { key: () => 'y' }],
    ['in a function and a value', { key: () => 'x' }, { key: 'x' }],
    ['in a map', new Map([['a', 1]]), new Map([['a', 2]])],
    ['in a set', new Set([1]), new Set([2])],
    ['in a list and an object', [], {}],
    ['in null and an object', null, {}],
  ])('%s', (_, a, b) => {
    expect(isSameValue(a, b)).toBe(false);
    expect(isSameValue(b, a)).toBe(false);
  });
});
