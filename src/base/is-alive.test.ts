import { expect, it } from 'vitest';
import { isAlive } from './is-alive.ts';

it('is true of processes that run, also of those of other users', () => {
  expect([process.pid, 1].map(isAlive)).toEqual([true, true]);
});

it('is false of numbers that no process has', () => {
  // More than Linux gives to any process.
  expect([4_194_999, 0, -1, 1.5, Number.NaN].map(isAlive)).toEqual([false, false, false, false, false]);
});
