/** Which files `.ci/run` runs once: scripts/same-in-wide.mjs. */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { sameInWide } from '../../scripts/same-in-wide.mjs';
import { tempFolder } from '../support/temp.ts';

it('a file is the same in a wide run only if nothing that it imports or starts can tell the difference', () => {
  const files = {
    'plain.test.ts': "import { one } from './lib/plain.ts';",
    'lib/plain.ts': "export * from './deep.ts';",
    'lib/deep.ts': "import './plain.ts';",
    'count.test.ts': "import './lib/count.ts';",
    'lib/count.ts': "import { isWide } from '../support/wide.ts';",
    'support/wide.ts': '',
    'switch.test.ts': "export { useProcesses } from './support/switch.ts';",
    'lazy.test.ts': "await import('./lib/count.ts');",
    'variable.test.ts': 'process.env.PROCESSES;',
    'program.test.ts': "new URL('lib/program.mjs', import.meta.url);",
    'lib/program.mjs': 'process.env.WIDE;',
    'computed.test.ts': 'await import(name);',
  };
  const tests = Object.keys(files).filter((name) => name.endsWith('.test.ts'));
  expect(sameInWide(tempFolder(files), [...tests, 'missing.test.ts'])).toEqual(['plain.test.ts']);
});

it('no file that starts gateways is the same, and most of those of pure code are', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const tests = (folder: string) =>
    readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `${folder}/${name}`);
  expect(sameInWide(root, tests('test/activation'))).toEqual([]);
  expect(sameInWide(root, tests('test/resilience'))).toEqual([]);
  expect(sameInWide(root, tests('src')).length).toBeGreaterThan(tests('src').length / 2);
});
