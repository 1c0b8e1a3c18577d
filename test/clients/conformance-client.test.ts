/** The official suite as a server, with Toolgate as its client: what Toolgate does towards the servers behind it. */
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';
import { clientScenarios, explain, type Revision, runClient } from '../support/conformance-suite.ts';
import { isSoak } from '../support/wide.ts';

/** One pass proves little where two programs wait for each other. The long tests ask for ten of ten. */
const ROUNDS = isSoak ? 10 : 1;

const driver = fileURLToPath(new URL('conformance-driver.mjs', import.meta.url));

/** Scenarios of extensions that do not pass yet, and why. Remove a scenario from the list when it passes. */
const waiting: Readonly<Record<string, string>> = {};

const revisions: readonly Revision[] = ['2025-11-25', '2026-07-28'];

describe('Toolgate as a client of the official suite', { timeout: 300_000 * ROUNDS, concurrent: isSoak }, () => {
  for (const revision of revisions) {
    it.for(clientScenarios(revision))(`passes $scenario of ${revision}`, async ({ scenario, scored }, { expect }) => {
      const failed: string[] = [];
      for (let round = 1; round <= ROUNDS; round++) {
        const verdict = await runClient(driver, revision, scenario, scored);
        if (verdict.outcome !== 'passed') failed.push(`round ${round} of ${ROUNDS}: ${explain([verdict])}`);
      }
      if (scenario in waiting) expect(failed).not.toEqual([]);
      else expect(failed, failed.join('\n')).toEqual([]);
    });
  }
});
