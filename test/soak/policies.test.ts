import { expect, it } from 'vitest';
import { holdPolicies } from '../support/changing-policies.ts';
import { createRandom } from '../support/random.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

it('applies the policies of 50 agents while a server hangs with 500 calls, and the others stay as fast as before', {
  timeout: 300_000,
}, async () => {
  const random = createRandom();
  console.log(`seed ${random.seed}`);
  const plan = { agents: 50, hanging: 500, rounds: 10, phase: 2_000, pace: 100 };
  const { calls, denials, leaks, p50, p99, hanging, audited } = await holdPolicies(plan, random);
  const ms = (one: { before: number; during: number }) => `${one.before.toFixed(1)} to ${one.during.toFixed(1)} ms`;
  console.log(
    `${calls} calls, ${denials} forbidden, ${leaks.length} leaks; p50 ${ms(p50)}, p99 ${ms(p99)}; ` +
      `of ${hanging.asked} hanging calls ${hanging.refused} refused at once; ${audited.found} of ${audited.due} in the audit`,
  );
  expect(leaks).toEqual([]);
  expect(audited.found).toBe(audited.due);
  expect(p99.during).toBeLessThanOrEqual(p99.before * 1.5);
});
