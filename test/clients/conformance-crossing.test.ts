/** The official suite against the gateway, with a server behind it that supports only the other era. */
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import {
  explain,
  type Revision,
  runScenario,
  runSuite,
  startGateway,
  startSharing,
  type Verdict,
} from '../support/conformance-suite.ts';
import type { HttpGateway } from '../support/gateway.ts';
import { answersTo, callModern } from '../support/questions.ts';

/** Scored scenarios that cannot pass, and their failing checks. Remove a scenario from the list when it passes. */
interface Exception {
  readonly scenario: string;
  readonly checks: readonly string[];
  readonly because: string;
}

interface Crossing {
  readonly client: Revision;
  readonly server: 'legacy' | 'modern';
  readonly exceptions: readonly Exception[];
}

const crossings: Crossing[] = [
  { client: '2025-11-25', server: 'modern', exceptions: [] },
  {
    client: '2026-07-28',
    server: 'legacy',
    exceptions: [
      {
        scenario: 'input-required-result-basic-elicitation',
        checks: ['sep-2322-elicitation-incomplete'],
        because: 'The suite knows the key of the question; those of the older era have none, and get one of ours.',
      },
      {
        scenario: 'input-required-result-basic-list-roots',
        checks: ['sep-2322-list-roots-incomplete'],
        because: 'A server of the older era that is shared is told of no roots: it may narrow itself to them.',
      },
      {
        scenario: 'input-required-result-multiple-input-requests',
        checks: ['sep-2322-multiple-inputs-incomplete'],
        because: 'Roots are among the three, and in the older era nothing says that questions belong together.',
      },
      {
        scenario: 'server-stateless',
        checks: ['sep-2575-server-rejects-undeclared-capability', 'sep-2575-missing-capability-http-400'],
        because:
          'Only the server knows if it can do without an answer, and the older era has no error to say that it cannot.',
      },
    ],
  },
];

/**
 * Starts all processes of a server on a pipe, by asking that many questions at once. Some checks allow only half a second, in
 * which a busy machine cannot start another process.
 */
async function warmUp(gateway: HttpGateway): Promise<void> {
  const elicit = async (message: string) => {
    const asked = await callModern(gateway, 'test_elicitation', { message });
    await callModern(gateway, 'test_elicitation', { message }, answersTo(asked));
  };
  await elicit('first');
  await Promise.all(['left', 'right'].map(elicit));
}

it.each(['stdio', 'HTTP'] as const)(
  'a legacy server on %s that is not shared gets the roots of its client',
  async (upstream) => {
    const gateway = await startSharing('session', upstream, '--era', 'legacy');
    const verdict = await runScenario(gateway.url, '2026-07-28', 'input-required-result-basic-list-roots');
    expect(verdict.outcome, explain([verdict])).toBe('passed');
  },
);

for (const { client, server, exceptions } of crossings) {
  describe.each(['stdio', 'HTTP'] as const)(`a ${server} server on %s`, { timeout: 150_000 }, (upstream) => {
    it(`behind the gateway passes as a ${client} server, with known exceptions`, async () => {
      const gateway = await startGateway(upstream, '--era', server);
      if (upstream === 'stdio' && server === 'legacy') await warmUp(gateway);
      const first = await runSuite(gateway.url, client);
      const failed = ({ scored, outcome }: Verdict) => scored && outcome !== 'passed';
      const isKnown = ({ scenario, failures }: Verdict) =>
        isDeepStrictEqual(exceptions.find((one) => one.scenario === scenario)?.checks, failures);
      // The suite abandons questions, and each occupies a process for a while. Scenarios that found no free process run again
      // against another gateway.
      const failing = await Promise.all(
        first.filter(failed).map(async (verdict) => {
          if (upstream !== 'stdio' || isKnown(verdict)) return verdict;
          const another = await startGateway(upstream, '--era', server);
          if (server === 'legacy') await warmUp(another);
          return runScenario(another.url, client, verdict.scenario);
        }),
      ).then((verdicts) => verdicts.filter(failed));
      expect(Object.fromEntries(failing.map((one) => [one.scenario, one.failures])), explain(failing)).toEqual(
        Object.fromEntries(exceptions.map(({ scenario, checks }) => [scenario, checks])),
      );
    });
  });
}
