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
const narrow = process.env.WIDE === '1' ? [] : WIDE;

export default defineConfig({
  test: {
    include: soak ? ['test/soak/**/*.test.ts'] : ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: soak ? configDefaults.exclude : [...configDefaults.exclude, 'test/soak/**', ...narrow],
    globalSetup: 'scripts/vitest-setup.mjs',
    setupFiles: 'test/support/each-file.ts',
    // Loading the SDKs and our own code anew for every file took a fifth of the time.
    isolate: false,
    watch: false,
    pool: 'forks',
    maxWorkers: 5,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // It warns of what it is: a test's own.
    onConsoleLog: (log) => !log.includes('oidc-provider '),
  },
});
