/** `scripts/test.mjs` with small projects: what its last lines say, and its exit code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Child, childEnv, startChild } from '../support/child.ts';
import { alive, descendants, waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';

const runner = fileURLToPath(new URL('../../scripts/test.mjs', import.meta.url));

/** One file after the other, in the order of their names. */
const CONFIG = `
class ByName {
  sort(files) { return files.sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1)); }
}
export default { test: { globals: true, pool: 'forks', maxWorkers: 1, sequence: { sequencer: ByName } } };
`;
const PASSES = `it('one', () => {}); it('two', () => {});`;
const FAILS = `it('breaks', () => { throw new Error('this one is broken'); }); it('works', () => {});`;
/** Fails in its first run only. */
const UNSTEADY = `
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
const STARTS = `import { writeFileSync } from 'node:fs'; writeFileSync('started', '');`;

interface Project {
  readonly child: Child;
  readonly folder: string;
  /** The last lines, from the first heading on. */
  ended(): Promise<{ code: number | null; lines: string[] }>;
}

function start(tests: Record<string, string>, ...args: string[]): Project {
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
      return { code, lines: shown.filter((line) => line !== '' && !line.startsWith('Results: ')) };
    },
  };
}

describe('the test runner', { timeout: 60_000 }, () => {
  // Both at once, because they mostly wait: the deadlines are long enough to start vitest on a busy machine.
  let late: Project;
  let blocked: Project;
  beforeAll(() => {
    const slow = `it('slow', () => new Promise((done) => setTimeout(done, 12_000)), 60_000); it('next', () => {});`;
    late = start({ a: PASSES, b: slow, c: PASSES }, '--deadlines=0.16,10');
    const blocks = `${STARTS} it('blocks', () => { for (;;); });`;
    blocked = start({ a: PASSES, b: blocks, c: PASSES }, '--deadlines=0.16,0.2');
  });

  it('counts and names what failed, was skipped or is unsteady', async () => {
    const skips = `it.skip('later', () => {}); it('now', (context) => context.skip('it rains'));`;
    const { ended, folder } = start({
      a: PASSES,
      b: FAILS,
      c: UNSTEADY,
      d: skips,
      e: `throw new Error('cannot load');`,
    });
    expect(await ended()).toEqual({
      code: 1,
      lines: [
        'Skipped:',
        '  d.test.js: later',
        '  d.test.js: now (it rains)',
        'Unsteady, passed only when run again alone:',
        '  c.test.js: depends on the weather',
        'Failed:',
        '  b.test.js: breaks',
        '    this one is broken',
        '  e.test.js: loading the file',
        '    cannot load',
        '4 passed, 2 failed, 2 skipped, 1 unsteady',
      ],
    });
    const [first, ...more] = readdirSync(join(folder, 'results')).sort();
    expect(more).toHaveLength(1);
    expect(readFileSync(join(folder, 'results', first!), 'utf8')).toContain(
      '{"unsteady":"c.test.js","tests":["depends on the weather"]}',
    );
  });

  it('passes with two unsteady files, and fails with three', async () => {
    const two = start({ a: UNSTEADY, b: UNSTEADY });
    expect(await two.ended()).toMatchObject({
      code: 0,
      lines: expect.arrayContaining(['2 passed, 0 failed, 2 unsteady']),
    });
    const three = start({ a: UNSTEADY, b: UNSTEADY, c: UNSTEADY });
    const { code, lines } = await three.ended();
    expect(code).toBe(1);
    expect(lines.slice(-2)).toEqual(['  test: 3 files are unsteady, 2 may be.', '3 passed, 1 failed, 3 unsteady']);
  });

  it('starts no files after the soft deadline, and names those that were not run', async () => {
    expect(await late.ended()).toEqual({
      code: 1,
      lines: [
        'Not run:',
        '  b.test.js (in part)',
        '  c.test.js',
        'Failed:',
        '  test: the time was up before all files were run.',
        '2 passed, 1 failed, 2 not run',
      ],
    });
  });

  it('kills a test that blocks its process at the hard deadline, and keeps the other results', async () => {
    await waitFor(() => existsSync(join(blocked.folder, 'started')));
    const processes = descendants(blocked.child.pid);
    expect(await blocked.ended()).toEqual({
      code: 1,
      lines: [
        'Not run:',
        '  c.test.js',
        'Failed:',
        '  b.test.js: did not end',
        '  test: the tests did not end in time, and were killed.',
        '2 passed, 2 failed, 1 not run',
      ],
    });
    await waitFor(() => !processes.some(alive));
  });

  describe('with a test that never ends', () => {
    const tests = { a: PASSES, b: FAILS, c: `${STARTS} it('waits', () => new Promise(() => {}), 60_000);`, d: PASSES };
    const counted = ['  b.test.js: breaks', '    this one is broken'];

    it('keeps the results when vitest is killed', async () => {
      const { ended, child, folder } = start(tests);
      await waitFor(() => existsSync(join(folder, 'started')), 20_000);
      process.kill(vitestOf(child.pid), 'SIGKILL');
      expect(await ended()).toEqual({
        code: 1,
        lines: [
          'Not run:',
          '  d.test.js',
          'Failed:',
          ...counted,
          '  c.test.js: did not end',
          '  test: vitest ended in the middle of the run.',
          '3 passed, 3 failed, 1 not run',
        ],
      });
    });

    it('keeps the results when it is stopped', async () => {
      const { ended, child, folder } = start(tests);
      await waitFor(() => existsSync(join(folder, 'started')), 20_000);
      process.kill(child.pid, 'SIGTERM');
      expect(await ended()).toEqual({
        code: 143,
        lines: [
          'Not run:',
          '  c.test.js (in part)',
          '  d.test.js',
          'Failed:',
          ...counted,
          '  Stopped by SIGTERM.',
          '3 passed, 2 failed, 2 not run',
        ],
      });
    });
  });
});

function vitestOf(runner: number): number {
  const found = descendants(runner).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('vitest.mjs'));
  if (found === undefined) throw new Error('vitest does not run');
  return found;
}
