/** Small projects whose tests are run by `scripts/test.mjs`. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Child, childEnv, startChild } from '../support/child.ts';
import { tempFolder } from '../support/temp.ts';

const runner = fileURLToPath(new URL('../../scripts/test.mjs', import.meta.url));

/** One file after the other, in the order of their names. */
const CONFIG = `
class ByName {
  sort(files) { return files.sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1)); }
}
const exclude = ['**/node_modules/**', ...JSON.parse(process.env.TEST_PROVEN ?? '[]')];
export default { test: { exclude, globals: true, pool: 'forks', maxWorkers: 1, sequence: { sequencer: ByName } } };
`;
export const PASSES = `it('one', () => {}); it('two', () => {});`;
export const FAILS = `it('breaks', () => { throw new Error('this one is broken'); }); it('works', () => {});`;
/** Fails in its first run only. */
export const UNSTEADY = `
import { existsSync, writeFileSync } from 'node:fs';
const ran = import.meta.filename + '.ran';
it('is steady', () => {});
it('depends on the weather', () => {
  if (existsSync(ran)) return;
  writeFileSync(ran, '');
  throw new Error('rain');
});
`;
/** Says when it runs, in a file. */
export const STARTS = `import { writeFileSync } from 'node:fs'; writeFileSync('started', '');`;

/** The third of its files never ends. */
export const NEVER_ENDING = {
  a: PASSES,
  b: FAILS,
  c: `${STARTS} it('waits', () => new Promise(() => {}), 60_000);`,
  d: PASSES,
};

export interface Project {
  readonly child: Child;
  readonly folder: string;
  /** The last lines, from the first heading on. */
  ended(): Promise<{ code: number | null; lines: string[] }>;
}

export function start(tests: Record<string, string>, ...args: string[]): Project {
  const files = Object.fromEntries(Object.entries(tests).map(([name, text]) => [`${name}.test.js`, text]));
  const folder = tempFolder({ 'vitest.config.mjs': CONFIG, 'package.json': '{ "type": "module" }', ...files });
  const own = ['--only-tests', `--root=${folder}`, `--results=${join(folder, 'results')}`, ...args];
  const child = startChild(process.execPath, [runner, ...own], { cwd: folder, env: childEnv({ HOME: folder }) });
  return {
    child,
    folder,
    async ended() {
      const { code } = await child.exited;
      const lines = child.stdout().trimEnd().split('\n');
      const first = lines.findIndex((line) => /^(Skipped|Not run|Unsteady.*|Failed):$/.test(line));
      const shown = lines.slice(first === -1 ? -1 : first);
      return { code, lines: shown.filter((line) => line !== '' && !/^(Results: |Took )/.test(line)) };
    },
  };
}
