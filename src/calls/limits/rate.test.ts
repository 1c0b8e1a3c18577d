import { describe, expect, it } from 'vitest';
import { Rate } from './rate.ts';

const take = (rate: Rate, now: number) => {
  const pause = rate.pause(now);
  if (pause === 0) rate.take(now);
  return pause;
};

describe('a rate limit', () => {
  it.each([1, 2, 3, 7, 30, 1_000])('admits a burst of %d calls, then one call at a time', (count) => {
    const rate = new Rate('x', { count, period: 60_000, text: `${count}/m` });
    const start = 12_345.678;
    for (let i = 0; i < count; i++) expect(take(rate, start)).toBe(0);
    const interval = 60_000 / count;
    expect(take(rate, start)).toBeCloseTo(interval, 3);
    expect(take(rate, start + interval - 1)).toBeCloseTo(1, 3);
    expect(take(rate, start + interval)).toBe(0);
    expect(take(rate, start + interval)).toBeCloseTo(interval, 3);
  });

  it('recovers fully after its period and never exceeds its burst', () => {
    const rate = new Rate('x', { count: 5, period: 1_000, text: '5/s' });
    for (let i = 0; i < 5; i++) rate.take(0);
    for (let i = 0; i < 5; i++) expect(take(rate, 60_000)).toBe(0);
    expect(take(rate, 60_000)).toBeGreaterThan(0);
  });

  it('takes nothing from the budget for a refused call', () => {
    const rate = new Rate('x', { count: 1, period: 1_000, text: '1/s' });
    take(rate, 0);
    for (let i = 0; i < 100; i++) expect(take(rate, 500)).toBe(500);
    expect(take(rate, 1_000)).toBe(0);
  });
});
