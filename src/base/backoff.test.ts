import { afterEach, expect, it, vi } from 'vitest';
import { backoffDelay, withJitter } from './backoff.ts';

afterEach(() => void vi.restoreAllMocks());

it('doubles the delay with each failure, up to half a minute', () => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
  expect([1, 2, 3, 4, 7, 8, 100].map(backoffDelay)).toEqual([250, 500, 1_000, 2_000, 16_000, 30_000, 30_000]);
});

it('varies a delay by up to a quarter', () => {
  vi.spyOn(Math, 'random').mockReturnValueOnce(0).mockReturnValueOnce(1);
  expect([withJitter(1_000), withJitter(1_000)]).toEqual([750, 1_250]);
});
