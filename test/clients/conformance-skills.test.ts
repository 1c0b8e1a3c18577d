/** The scenarios of the official suite for skills, on both sides of the gateway. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import {
  explain,
  named,
  type Revision,
  runClient,
  runScenario,
  startFixture,
  startGateway,
  type Upstream,
} from '../support/conformance-suite.ts';
import { isSoak, isWide, some } from '../support/wide.ts';

const REVISIONS: readonly Revision[] = ['2025-11-25', '2026-07-28'];
const ROUNDS = isSoak ? 10 : 1;

/** What a server with skills has to do. */
const SERVER = ['sep-2640-skills-directory', 'sep-2640-skills-enumeration', 'sep-2640-skills-manifest'];

/** What a program that loads skills has to do, here with Toolgate between it and the suite's server. */
const CLIENT = [
  'sep-2640-client-no-prefetch',
  'sep-2640-client-verify-digest',
  'sep-2640-client-verify-frontmatter',
  'sep-2640-client-verify-size',
];

const host = fileURLToPath(new URL('skills-host.mjs', import.meta.url));

async function expectAll(url: string, revision: Revision): Promise<void> {
  const verdicts = await Promise.all(SERVER.map((scenario) => runScenario(url, revision, scenario, '--force')));
  expect(named(verdicts, false, 'passed'), explain(verdicts)).toEqual(SERVER);
}

describe('skills', { timeout: 300_000 * ROUNDS }, () => {
  if (isWide)
    it.each(REVISIONS)('of the fixture itself pass %s', async (revision) => {
      await expectAll(await startFixture(), revision);
    });

  const places: [Upstream, Revision, 'both' | 'legacy' | 'modern'][] = [
    ['stdio', '2026-07-28', 'both'],
    ['HTTP', '2025-11-25', 'both'],
    ['HTTP', '2026-07-28', 'legacy'],
    ['stdio', '2025-11-25', 'modern'],
  ];
  it.each(some(places, places.slice(0, 2)))(
    'of a server on %s pass %s through the gateway (eras of the server: %s)',
    async (upstream, revision, era) => {
      const gateway = await startGateway(upstream, ...(era === 'both' ? [] : ['--era', era]));
      await expectAll(gateway.url, revision);
    },
  );

  const scenarios = REVISIONS.flatMap((revision) => CLIENT.map((scenario) => [revision, scenario] as const));
  it.each(isSoak ? scenarios : some(scenarios, [scenarios[0]!, scenarios[5]!]))(
    'of the suite pass %s %s',
    async (revision, scenario) => {
      for (let round = 1; round <= ROUNDS; round++) {
        const verdict = await runClient(host, revision, scenario, false);
        expect(verdict.outcome, `round ${round} of ${ROUNDS}: ${explain([verdict])}`).toBe('passed');
      }
    },
  );
});
