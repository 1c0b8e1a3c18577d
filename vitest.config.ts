import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { seedOfCommit } from './scripts/seed.mjs';

process.env.SEED ??= String(seedOfCommit());
const soak = process.env.SOAK === '1';
const isWide = process.env.WIDE === '1';
/** Long tests that cover what others cover too, or more of the same. They run with `npm run test:wide`. */
const WIDE = [
  'test/clients/conformance-client.test.ts',
  'test/clients/conformance-direct.test.ts',
  'test/clients/conformance-crossing.test.ts',
  'test/clients/mcporter.test.ts',
  'test/clients/inspector.test.ts',
  'test/clients/published-agents.test.ts',
  'test/clients/published-init.test.ts',
  'test/clients/published-libraries.test.ts',
  'test/docs/newcomer.test.ts',
  'test/docs/pages-1.test.ts',
  'test/docs/pages-2.test.ts',
  'test/docs/pages-3.test.ts',
  'test/docs/pages-4.test.ts',
  'test/logins/asked-login.test.ts',
  'test/logins/bound-tokens.test.ts',
  'test/logins/device.test.ts',
  'test/logins/lost-renewal.test.ts',
  'test/logins/page-processes.test.ts',
  'test/logins/token-exchange.test.ts',
  'test/logins/two-agents.test.ts',
  'test/activation/real-servers.test.ts',
  'test/cli/init-killed.test.ts',
  'test/fixtures/in-process.test.ts',
  'test/servers/package-installs.test.ts',
  'test/servers/package-installs-uv.test.ts',
  'test/policy/crowd.test.ts',
  'test/resilience/many-servers.test.ts',
  'test/resilience/reload-load.test.ts',
  'test/telemetry/starting.test.ts',
  'test/manager/analyze-published.test.ts',
  'test/manager/packages.test.ts',
  'test/manager/manager-killed.test.ts',
  'test/library/package.test.ts',
  'test/toolsets/walk.test.ts',
  'test/tool-folders/python-environment.test.ts',
  'test/tool-folders/node-environment.test.ts',
  'test/tool-folders/faults.test.ts',
  'test/tool-folders/faults-folder.test.ts',
  'test/tool-folders/worker-orphans.test.ts',
  'test/tool-folders/many-namespaces.test.ts',
  'test/rest/schemathesis.test.ts',
  'test/examples/examples-folders.test.ts',
  'test/examples/personas.test.ts',
  'test/deploy/binary.test.ts',
  'test/deploy/debian.test.ts',
  'test/deploy/balancers.test.ts',
  'test/deploy/chart.test.ts',
  'test/scripts/test-runner.test.ts',
  'test/scripts/test-runner-faults.test.ts',
  'test/dashboard/views.test.ts',
  'test/dashboard/hostile-texts.test.ts',
  'test/dashboard/accessibility.test.ts',
  'test/dashboard/pictures.test.ts',
  'test/dashboard/replicas.test.ts',
  'test/dashboard/keyboard.test.ts',
];
/**
 * Long files in groups with related subjects. The usual run takes one file of each group, another one with every commit.
 * What such a file is about must also be tested, in its main lines, by a file that every run has.
 */
const IN_TURN = [
  ['cli/doctor-rules', 'cli/doctor-fix', 'cli/list'],
  ['cli/trusted-config', 'cli/running-commands'],
  ['cli/completion', 'cli/command-requests', 'cli/first-list'],
  ['cli/dev', 'cli/by-hand', 'cli/command-line'],
  ['daemon/recovery', 'daemon/shared-gateway'],
  ['secrets/serving', 'secrets/secrets-canary'],
  ['manager/tool-table', 'manager/manager-tools'],
  ['manager/translation', 'manager/analyze-repo', 'manager/from-openapi'],
  ['resilience/unread-server', 'resilience/away', 'resilience/injected-faults'],
  ['resilience/noise', 'resilience/flood', 'resilience/health-http', 'resilience/broken-entries'],
  ['tool-folders/node-faults', 'tool-folders/python-process'],
  ['tool-folders/named-folders', 'tool-folders/editor-types', 'tool-folders/restart-wait'],
  ['tool-folders/folder-limits', 'tool-folders/own-timeout', 'tool-folders/two-gateways'],
  ['clients/python', 'clients/published', 'clients/mcp-remote'],
  ['logins/logging-in', 'clients/conformance-client'],
  ['logins/login-page', 'logins/token-exchange', 'logins/bound-tokens'],
  ['questions/waiting', 'questions/questions-legacy'],
  ['questions/own', 'questions/roots', 'questions/questions-address'],
  ['questions/questions-subscriptions', 'questions/transports', 'questions/asked-by'],
  ['relay/long-results', 'relay/results-between-eras'],
  ['relay/mixing', 'relay/lists-between-eras'],
  ['relay/pretty', 'relay/errors-between-eras', 'relay/input-between-eras'],
  ['telemetry/traces', 'telemetry/otlp-metrics', 'telemetry/outcomes'],
  ['audit/audit-canary', 'audit/trouble', 'audit/before'],
  ['identity/identity-agents', 'identity/client-certificates', 'identity/trust'],
  ['deploy/kubernetes', 'deploy/monitoring'],
  ['servers/inside', 'servers/package-runners'],
  ['rest/rest-page', 'dashboard/first-look'],
  ['library/slow-readers', 'library/bundle', 'library/library-stdio'],
  ['http/drain', 'http/tls'],
  ['toolsets/renamed', 'toolsets/last-equipped', 'toolsets/implicit'],
  ['toolsets/live', 'toolsets/interrupted', 'toolsets/picking'],
  ['stdio/stdio-ending', 'stdio/unread-news'],
];
/** These run with `npm run soak` too, and take longer there. */
const LONGER = [
  'src/sources/http-response.test.ts',
  'test/toolsets/walk.test.ts',
  'test/tool-folders/many-namespaces.test.ts',
  'test/clients/conformance-client.test.ts',
];
/** These need a process of their own: they replace clocks that modules keep, or measure code that other tests have warmed up. */
const ALONE = [
  'src/calls/limits/breaker.test.ts',
  'src/calls/parked.test.ts',
  'src/base/pattern.test.ts',
  'src/base/backoff.test.ts',
  'test/http/http-streams.test.ts',
  'test/policy/seeing.test.ts',
  'test/modern-clients/modern-streams.test.ts',
];
/**
 * Files that take long start first, so that none of them runs alone at the end. Before them those with a process of their own:
 * in the middle each of them would end a worker, and the next one would load all modules again.
 */
const LONG =
  /\/test\/(resilience|secrets|docs|tool-folders|clients|deploy)\/|\/(keys|questions-legacy|results-between-eras|changes|package|namespace-policy|mcp-tasks-conformance|replay)\.test/;
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) =>
      project.name === 'alone' ? 0 : LONG.test(moduleId) ? 1 : 2;
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}
const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts'];
const notNow = IN_TURN.flatMap((group, i) => {
  const turn = (Number(process.env.SEED) + i) % group.length;
  return group.filter((_, j) => j !== turn).map((file) => `test/${file}.test.ts`);
});
/** Whether files were named on the command line: those are run. */
const isNamed = process.argv.some((argument) => /\.test\.ts$/.test(argument));
const narrow = isWide || isNamed ? [] : [...WIDE, ...notNow];

export default defineConfig({
  test: {
    globalSetup: 'scripts/vitest-setup.mjs',
    setupFiles: 'test/support/each-file.ts',
    runner: './test/support/turns.ts',
    watch: false,
    pool: 'forks',
    // Most tests wait most of the time. With processes everywhere they do not, and long tests measure memory and how quickly calls are answered.
    maxWorkers: soak ? 2 : isWide ? 5 : 8,
    sequence: { sequencer: LongFirst },
    // Many times what a quiet machine needs.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // The provider warns that it is not for production.
    onConsoleLog: (log) => !log.includes('oidc-provider '),
    projects: soak
      ? [{ extends: true, test: { name: 'soak', include: ['test/soak/**/*.test.ts', ...LONGER] } }]
      : [
          {
            extends: true,
            test: {
              name: 'shared',
              include: ALL,
              exclude: [...configDefaults.exclude, 'test/soak/**', ...narrow, ...ALONE],
              // Loading the SDKs and our own code again for every file took a fifth of the time.
              isolate: false,
            },
          },
          { extends: true, test: { name: 'alone', include: ALONE } },
        ],
  },
});
