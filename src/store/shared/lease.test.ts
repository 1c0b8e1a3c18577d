import { expect, it } from 'vitest';
import { createLease } from './lease.ts';

it('holds calls that were asked for since signs of life come without a gap', () => {
  const lease = createLease(2_000, 500);
  expect(lease.holds(0, 0)).toBe(false);
  lease.renewed(100, 110);
  // The sign of life may have come after the call.
  expect(lease.holds(105, 120)).toBe(false);
  expect(lease.holds(110, 1_599)).toBe(true);
  expect(lease.holds(110, 1_600)).toBe(false);
  lease.renewed(1_500, 1_510);
  expect(lease.holds(110, 2_900)).toBe(true);
  // It was stopped, and may have been declared dead.
  lease.renewed(4_000, 4_010);
  expect(lease.holds(110, 4_020)).toBe(false);
  expect(lease.holds(4_010, 4_020)).toBe(true);
  // The reply came so late that nobody knows whether the sign before was still there.
  lease.renewed(5_000, 5_600);
  expect([lease.holds(4_010, 5_610), lease.holds(5_600, 5_610)]).toEqual([false, true]);
  lease.end();
  expect(lease.holds(5_600, 5_610)).toBe(false);
});
