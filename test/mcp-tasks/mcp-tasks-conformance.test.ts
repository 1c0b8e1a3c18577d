/** The scenarios of the official suite for the tasks extension, directly and through the gateway. */
import { describe, expect, it } from 'vitest';
import { explain, named, runScenario } from '../support/conformance-suite.ts';
import { startHttp } from '../support/gateway.ts';
import { at, command, configOf, startTasks } from '../support/mcp-tasks.ts';
import { server } from '../support/server.ts';
import { isWide, onePart, some } from '../support/wide.ts';

const SCENARIOS = onePart(9, [
  'tasks-capability-negotiation',
  'tasks-dispatch-and-envelope',
  'tasks-lifecycle',
  'tasks-mrtr-composition',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-request-state-removal',
  'tasks-required-task-error',
  'tasks-wire-fields',
]);

/** Each of them is a process of the suite. Where the place makes little difference, another third runs after every commit. */
const THIRD = SCENARIOS.filter((_, i) => i % 3 === Number(process.env.SEED) % 3);

/** Without `tasks-status-notifications`, which the suite always skips. */
async function expectAll(url: string, scenarios: readonly string[]): Promise<void> {
  const verdicts = await Promise.all(scenarios.map((scenario) => runScenario(url, '2026-07-28', scenario, '--force')));
  expect(named(verdicts, false, 'passed'), explain(verdicts)).toEqual(scenarios);
}

describe('the scenarios for tasks', { timeout: 150_000 }, () => {
  if (isWide)
    it('pass against the fixture itself', async () => {
      await expectAll((await startTasks('tasks')).url, THIRD);
    });

  const places: [string, readonly string[], () => Promise<string>][] = [
    ['stdio', SCENARIOS, async () => command(server('tasks'))],
    ['HTTP', THIRD, async () => at((await startTasks('tasks')).url)],
  ];
  it.each(some(places, places.slice(0, 1)))(
    'pass through the gateway, with the server on %s',
    async (_, scenarios, place) => {
      const gateway = await startHttp({ config: configOf({ '': await place() }) });
      await expectAll(gateway.url, scenarios);
    },
  );
});
