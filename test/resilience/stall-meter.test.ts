/** Odd JSON and duplicated keys at every place of a request. The soak run sends many more. */
import { expect, it } from 'vitest';
import { sendHostile } from '../support/stall-meter.ts';
import { onePart } from '../support/wide.ts';

it('no hostile request takes 100 ms of computing, ends the gateway, or fills its memory', {
  timeout: 120_000,
}, async () => {
  const { wrong, grown, isAlive } = await sendHostile(100, (all) => onePart(10, all));
  expect(wrong).toEqual([]);
  expect(isAlive).toBe(true);
  expect(grown).toBeLessThan(400);
});
