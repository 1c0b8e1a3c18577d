import { expect, it } from 'vitest';
import { isObject, toObject } from './objects.ts';

it('tells objects from everything else', () => {
  expect([{}, { a: 1 }, Object.create(null)].every(isObject)).toBe(true);
  expect([null, undefined, [], [{}], 'text', 1, true, () => {}].some(isObject)).toBe(false);
});

it('makes an empty object of what is none', () => {
  const object = { a: 1 };
  expect(toObject(object)).toBe(object);
  expect([toObject(null), toObject([1]), toObject('text')]).toEqual([{}, {}, {}]);
});
