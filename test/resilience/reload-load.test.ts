/** A short version of test/soak/reloading.test.ts. */
import { expect, it } from 'vitest';
import { createRandom } from '../support/random.ts';
import { reloadUnderLoad } from '../support/reloading.ts';

it('serves every call during reloads with random edits, and restarts nothing needlessly', async () => {
  const random = createRandom();
  const { calls, failures, restarts } = await reloadUnderLoad(8, random);
  expect({ seed: random.seed, failures, restarts }).toEqual({ seed: random.seed, failures: [], restarts: [] });
  expect(calls).toBeGreaterThan(8);
});
