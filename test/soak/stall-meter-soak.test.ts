/** Ten thousand generated hostile requests. */
import { expect, it } from 'vitest';
import { sendHostile } from '../support/stall-meter.ts';

it('no hostile request takes 100 ms of computing, ends the gateway, or fills its memory', {
  timeout: 900_000,
}, async () => {
  const { stalls, grown, isAlive } = await sendHostile(10_000);
  expect(stalls).toEqual([]);
  expect(isAlive).toBe(true);
  expect(grown).toBeLessThan(400);
});
