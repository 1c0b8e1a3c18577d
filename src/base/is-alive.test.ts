import { expect, it } from 'vitest';
import { isAlive } from './is-alive.ts';

it('isAlive is true for running processes, including those of other users', () => {
  expect([process.pid, 1].map(isAlive)).toEqual([true, true]);
});

it('isAlive is false for ids without a process', () => {
  // More than Linux gives to any process.
  expect([4_194_999, 0, -1, 1.5, Number.NaN].map(isAlive)).toEqual([false, false, false, false, false]);
});
