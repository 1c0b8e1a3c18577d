/** Three replicas behind haproxy, a hundred clients of both eras, and every fault, again and again. */
import { describe, expect, it } from 'vitest';
import { FAULTS, quantile, runChaos } from '../support/chaos.ts';
import { isMissing } from '../support/needs.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

const RUNS = Number(process.env.CHAOS_RUNS ?? 10);

describe.skipIf(isMissing('redis') || isMissing('haproxy'))('a fleet under faults', () => {
  it.each(Array.from({ length: RUNS }, (_, i) => i + 1))(
    'loses, doubles and mixes up no call, run %i',
    async (run) => {
      const clients = Number(process.env.CHAOS_CLIENTS ?? 100);
      const { recoveries, wrong, ...counts } = await runChaos({
        replicas: 3,
        legacy: clients / 2,
        modern: clients / 2,
        faults: FAULTS,
        pause: 1_000,
      });
      const [p50, p99] = [0.5, 0.99].map((q) => Math.round(quantile(recoveries, q)));
      console.log(`run ${run}: ${JSON.stringify(counts)}, recovery p50 ${p50} ms, p99 ${p99} ms`, wrong);
      expect(wrong).toEqual([]);
      expect(counts.calls).toBeGreaterThan(clients);
      // Five seconds on an idle machine.
      expect(p99).toBeLessThan(30_000);
    },
    300_000,
  );
});
