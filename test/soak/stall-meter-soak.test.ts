/** Every text at the edges of JSON in three places, every method with each key twice, and ten thousand generated requests. */
import { expect, it } from 'vitest';
import { sendHostile } from '../support/stall-meter.ts';

it('no hostile request takes 100 ms of computing, ends the gateway, or fills its memory', {
  timeout: 1_800_000,
}, async () => {
  const { sent, wrong, grown, isAlive } = await sendHostile(10_000, (all) => all);
  console.log(`${sent} requests, ${Math.round(grown)} MB more`);
  expect(wrong).toEqual([]);
  expect(isAlive).toBe(true);
  expect(grown).toBeLessThan(400);
});
