/** Three replicas behind haproxy, a hundred clients of both eras, and every fault, again and again. */
import { cpus, loadavg } from 'node:os';
import { describe, expect, it } from 'vitest';
import { FAULTS, quantile, runChaos } from '../support/chaos.ts';
import { isMissing } from '../support/needs.ts';
import { useProcesses } from '../support/switch.ts';

useProcesses();

/** Before the first run: what a run does is load, too. */
const IS_IDLE = loadavg()[0]! < cpus().length / 4;
/** Milliseconds. On a machine that others use, processes that are started and woken wait for it. */
const RECOVERED = IS_IDLE ? 5_000 : 30_000;
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
      const all = [...recoveries.values()].flat().sort((a, b) => a - b);
      const at = (of: readonly number[], q: number) => Math.round(quantile(of, q));
      const faults = [...recoveries].map(([fault, of]) => `${fault} ${at(of, 0.5)}/${at(of, 1)}`).join(', ');
      const p99 = at(all, 0.99);
      console.log(`run ${run}: ${JSON.stringify(counts)}, recovery p50 ${at(all, 0.5)} ms, p99 ${p99} ms`, wrong);
      console.log(`run ${run}: median and longest recovery in ms: ${faults}`);
      expect(wrong).toEqual([]);
      expect(counts.calls).toBeGreaterThan(clients);
      expect(p99).toBeLessThanOrEqual(RECOVERED);
    },
    300_000,
  );
});
