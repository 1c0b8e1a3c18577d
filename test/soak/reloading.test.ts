import { expect, it } from 'vitest';
import { createRandom } from '../support/random.ts';
import { reloadUnderLoad } from '../support/reloading.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it('serves every call through 100 reloads with random edits, and restarts nothing needlessly', {
  timeout: 600_000,
}, async () => {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const start = performance.now();
  const { reloads, refused, calls, failures, restarts } = await reloadUnderLoad(100, random);
  const seconds = Math.round((performance.now() - start) / 1000);
  console.log(
    `${reloads} reloads (${refused} refused) in ${seconds} s, ${calls} calls, ${failures.length} failed, ${restarts.length} needless restarts`,
  );
  expect(failures).toEqual([]);
  expect(restarts).toEqual([]);
  expect(calls).toBeGreaterThan(reloads);
});
