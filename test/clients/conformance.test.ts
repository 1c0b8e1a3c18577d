/** The official suite against the gateway, with the fixture behind it on stdio and over HTTP. */
import { describe, expect, it } from 'vitest';
import { explain, named, type Revision, runScenario, runSuite, startGateway } from '../support/conformance-suite.ts';
import { isWide, some } from '../support/wide.ts';

/** Scored scenarios that do not pass yet, and why. Remove a scenario from the list when it passes. */
const waiting: Record<Revision, Readonly<Record<string, string>>> = {
  '2025-11-25': {},
  '2026-07-28': {},
};

const RUNS = 4;
const revisions = Object.keys(waiting) as Revision[];
for (const upstream of some<'stdio' | 'HTTP'>(['stdio', 'HTTP'], ['stdio'])) {
  describe(`the gateway in front of a server on ${upstream}`, { timeout: 150_000 }, () => {
    for (const revision of revisions) {
      it(`passes ${revision}, except for known failures`, async () => {
        const verdicts = await runSuite((await startGateway(upstream)).url, revision);
        const unexpected = verdicts.filter(({ scored, scenario }) => scored && !(scenario in waiting[revision]));
        expect(named(verdicts, true, 'failed', 'vacuous'), explain(unexpected)).toEqual(
          Object.keys(waiting[revision]).sort(),
        );
      });

      // The result may overtake the last progress, so one good run, as above, proves nothing.
      if (!isWide) continue;
      it(`never loses progress in ${revision}`, async () => {
        const { url } = await startGateway(upstream);
        const runs = Array.from({ length: RUNS }, () => runScenario(url, revision, 'tools-call-with-progress'));
        const verdicts = await Promise.all(runs);
        expect(named(verdicts, true, 'passed'), explain(verdicts)).toHaveLength(RUNS);
      });
    }
  });
}
