/** Odd JSON and duplicated keys at every place of a request. The soak run sends many more. */
import { expect, it } from 'vitest';
import { sendHostile } from '../support/stall-meter.ts';

it('no hostile request takes 100 ms of computing, ends the gateway, or fills its memory', {
  timeout: 60_000,
}, async () => {
  const { stalls, grown, isAlive } = await sendHostile(300);
  expect(stalls).toEqual([]);
  expect(isAlive).toBe(true);
  expect(grown).toBeLessThan(400);
});
