import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { seedOfCommit } from './scripts/seed.mjs';

const SRC = fileURLToPath(new URL('src', import.meta.url));
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
 * The usual run takes all files in `src`, these files, and every fourth one of the others in each folder: others with every
 * commit. What is not among these is tested, in its main lines, by a file that is.
 */
const EVERY_RUN: Readonly<Record<string, string>> = {
  activation: 'activation surface',
  approvals: 'approvals-calls',
  audit: 'missing records',
  cli: 'call doctor init serve',
  clients: 'conformance',
  connect: 'connect',
  daemon: 'window',
  dashboard: 'dashboard-api first-look page-sessions',
  docs: 'docs readme',
  examples: 'tools-toml',
  fleet: 'sessions takeover',
  http: 'foreign-pages guard hostile-requests http-messages',
  identity: 'claims identity-agents keys oauth principals roles several-issuers tokens trusted-entrances',
  library: 'api modes mount public-types types',
  limits: 'rates',
  logins: 'hostile-servers',
  macros: 'macros',
  manager: 'manager-door',
  matrix: 'matrix-legacy-stdio matrix-modern-http',
  'mcp-tasks': 'mcp-tasks-modern',
  metrics: 'metrics',
  'modern-clients': 'modern-http',
  names: 'flat',
  pins: 'lock',
  policy:
    'captured-uris categories decided-again doors duplicate-keys expression-cost expressions filter-file seeing spellings tables uris',
  questions: 'questions-modern',
  relay: 'results',
  resilience: 'crash reload stall-meter',
  rest: 'hostile rest-calls',
  search: 'hidden search-tools',
  secrets: 'store',
  servers: 'sandbox servers-refusals verdicts',
  stdio: 'stdio-messages',
  tasks: 'bound-tasks',
  'tool-folders': 'escapes folders install-box isolation sandbox-loopback',
  toolsets: 'closed equip',
};
/** These run with `npm run soak` too, and take longer there. */
const LONGER = [
  'src/sources/http-response.test.ts',
  'test/toolsets/walk.test.ts',
  'test/tool-folders/many-namespaces.test.ts',
  'test/clients/conformance-client.test.ts',
  'test/clients/conformance-skills.test.ts',
  'test/manager/manager-killed.test.ts',
  'test/cli/init-killed.test.ts',
];
/** These need a process of their own: they replace clocks that modules keep, or measure code that other tests have warmed up. */
const ALONE = [
  'src/calls/limits/breaker.test.ts',
  'src/calls/parked.test.ts',
  'src/base/pattern.test.ts',
  'src/base/backoff.test.ts',
  'test/http/http-streams.test.ts',
  'test/policy/seeing.test.ts',
  'test/resilience/stall-controls.test.ts',
  'test/dashboard/page-sessions.test.ts',
  'test/modern-clients/modern-streams.test.ts',
];
/**
 * Files that take long start first, so that none of them runs alone at the end. Before them those with a process of their own:
 * in the middle each of them would end a worker, and the next one would load all modules again.
 */
const LONG =
  /\/test\/(resilience|secrets|docs|tool-folders|clients|deploy|fleet|matrix|manager|dashboard|logins)\/|\/(keys|questions-legacy|results-between-eras|changes|package|namespace-policy|mcp-tasks-conformance|replay|token-meter|trusted-config|tools-toml)\.test/;
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId, project }: TestSpecification) =>
      project.name === 'alone' ? 0 : LONG.test(moduleId) ? 1 : 2;
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}
const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts'];
const folders = readdirSync('test', { withFileTypes: true }).filter((entry) => entry.isDirectory());
const notNow = folders.flatMap(({ name: folder }, i) => {
  const always = EVERY_RUN[folder]?.split(' ') ?? [];
  const inTurn = readdirSync(`test/${folder}`)
    .filter((file) => file.endsWith('.test.ts') && !always.includes(file.slice(0, -'.test.ts'.length)))
    .map((file) => `test/${folder}/${file}`)
    .filter((file) => !WIDE.includes(file));
  return inTurn.filter((_, j) => (Number(process.env.SEED) + i + j) % 4 !== 0);
});
/** Whether files were named on the command line: those are run. */
const isNamed = process.argv.some((argument) => /\.test\.ts$/.test(argument));
/** What the usual run of `.ci/run` has just proven, if its wide form is the same: scripts/same-in-wide.mjs. */
const proven: readonly string[] = JSON.parse(process.env.TEST_PROVEN ?? '[]');
const narrow = isNamed ? [] : isWide ? proven : [...WIDE, ...notNow];

/** Tests load what scripts/vitest-setup.mjs compiled in place of the files in src/. */
const compiledSources = {
  name: 'compiled-sources',
  enforce: 'pre' as const,
  resolveId(id: string, importer: string | undefined) {
    const compiled = process.env.TOOLGATE_COMPILED;
    if (compiled === undefined || importer === undefined || !/^\.\.?\/.*\.ts$/.test(id)) return null;
    const path = relative(SRC, join(dirname(importer), id));
    if (path.startsWith('..') || path.endsWith('.test.ts')) return null;
    return { id: join(compiled, `${path.slice(0, -'.ts'.length)}.mjs`), external: true };
  },
};

export default defineConfig({
  plugins: [compiledSources],
  test: {
    server: { deps: { external: [/\/\.toolgate\/sources-/] } },
    globalSetup: 'scripts/vitest-setup.mjs',
    setupFiles: 'test/support/each-file.ts',
    runner: './test/support/turns.ts',
    watch: false,
    pool: 'forks',
    // Most tests wait most of the time. With processes everywhere they do not, and long tests measure memory and how quickly calls are answered.
    maxWorkers: soak ? 2 : isWide ? 6 : 8,
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
          {
            extends: true,
            test: { name: 'alone', include: ALONE, exclude: [...configDefaults.exclude, ...narrow] },
          },
        ],
  },
});
