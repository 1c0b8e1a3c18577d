/** A short version of test/soak/policies.test.ts. */
import { expect, it } from 'vitest';
import { holdPolicies } from '../support/changing-policies.ts';
import { createRandom } from '../support/random.ts';

it('enforces the policies of many agents while a server hangs', { timeout: 120_000 }, async () => {
  const plan = { agents: 12, hanging: 100, rounds: 1, phase: 1_500, pace: 50 };
  const { calls, denials, leaks, audited } = await holdPolicies(plan, createRandom());
  expect(leaks).toEqual([]);
  expect(calls).toBeGreaterThan(50);
  expect(denials).toBeGreaterThan(50);
  expect(audited.found).toBe(audited.due);
});
