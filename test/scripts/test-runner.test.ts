/** What the last lines of `scripts/test.mjs` say, and its exit code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { descendants, waitFor } from '../support/processes.ts';
import { FAILS, NEVER_ENDING, PASSES, start, UNSTEADY } from './projects.ts';

describe('the test runner', { timeout: 60_000 }, () => {
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
        '    rain',
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

  it('keeps the results when vitest is killed', async () => {
    const { ended, child, folder } = start(NEVER_ENDING);
    await waitFor(() => existsSync(join(folder, 'started')));
    process.kill(vitestOf(child.pid), 'SIGKILL');
    expect(await ended()).toEqual({
      code: 1,
      lines: [
        'Not run:',
        '  d.test.js',
        'Failed:',
        '  b.test.js: breaks',
        '    this one is broken',
        '  c.test.js: did not end',
        '  test: vitest ended in the middle of the run.',
        '3 passed, 3 failed, 1 not run',
      ],
    });
  });
});

function vitestOf(runner: number): number {
  const found = descendants(runner).find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('vitest.mjs'));
  if (found === undefined) throw new Error('vitest does not run');
  return found;
}
