import { configDefaults, defineConfig } from 'vitest/config';

const soak = process.env.SOAK === '1';

export default defineConfig({
  test: {
    include: soak ? ['test/soak/**/*.test.ts'] : ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: soak ? configDefaults.exclude : [...configDefaults.exclude, 'test/soak/**'],
    globalSetup: 'scripts/vitest-setup.mjs',
    watch: false,
    pool: 'forks',
    maxWorkers: 5,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // It warns of what it is: a test's own.
    onConsoleLog: (log) => !log.includes('oidc-provider '),
  },
});
