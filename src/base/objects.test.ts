import { expect, it } from 'vitest';
import { isObject, toObject } from './objects.ts';

it('recognizes plain objects and nothing else as objects', () => {
  expect([{}, { a: 1 }, Object.create(null)].every(isObject)).toBe(true);
  expect([null, undefined, [], [{}], 'text', 1, true, () => {}].some(isObject)).toBe(false);
});

it('turns a value that is not an object into an empty object', () => {
  const object = { a: 1 };
  expect(toObject(object)).toBe(object);
  expect([toObject(null), toObject([1]), toObject('text')]).toEqual([{}, {}, {}]);
});
