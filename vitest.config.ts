import { configDefaults, defineConfig } from 'vitest/config';

const soak = process.env.SOAK === '1';
/** Long ones about what others test too, or that only go through more of the same: for `npm run test:wide`. */
const WIDE = [
  'test/conformance/direct.test.ts',
  'test/conformance/crossing.test.ts',
  'test/programs/mcporter.test.ts',
  'test/activation/inspector.test.ts',
  'test/activation/real-servers.test.ts',
  'test/telemetry/starting.test.ts',
];
/** What they do to clocks would stay with modules that others use after them; what they measure depends on who used those before. */
const ALONE = [
  'src/calls/limits/breaker.test.ts',
  'src/calls/parked.test.ts',
  'src/base/pattern.test.ts',
  'src/sources/backoff.test.ts',
  'test/http/streams.test.ts',
  'test/policy/seeing.test.ts',
  'test/stateless/streams.test.ts',
];
const ALL = ['src/**/*.test.ts', 'test/**/*.test.ts'];
const narrow = process.env.WIDE === '1' ? [] : WIDE;

export default defineConfig({
  test: {
    globalSetup: 'scripts/vitest-setup.mjs',
    setupFiles: 'test/support/each-file.ts',
    watch: false,
    pool: 'forks',
    maxWorkers: 5,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // It warns of what it is: a test's own.
    onConsoleLog: (log) => !log.includes('oidc-provider '),
    projects: soak
      ? [{ extends: true, test: { name: 'soak', include: ['test/soak/**/*.test.ts'] } }]
      : [
          {
            extends: true,
            test: {
              name: 'shared',
              include: ALL,
              exclude: [...configDefaults.exclude, 'test/soak/**', ...narrow, ...ALONE],
              // Loading the SDKs and our own code anew for every file took a fifth of the time.
              isolate: false,
            },
          },
          { extends: true, test: { name: 'alone', include: ALONE } },
        ],
  },
});
