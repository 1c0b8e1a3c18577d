/** How `scripts/test.mjs` deals with deadlines, crashes, unsteady files and CI. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { alive, descendants, waitFor } from '../support/processes.ts';
import { FAILS, NEVER_ENDING, PASSES, type Project, STARTS, start, UNSTEADY } from './projects.ts';

describe('the test runner', { timeout: 60_000 }, () => {
  // At once, because they mostly wait: the deadlines are long enough to start vitest on a busy machine.
  let late: Project;
  let blocked: Project;
  let lateWide: Project;
  let lateUnsteady: Project;
  beforeAll(() => {
    const slow = `it('slow', () => new Promise((done) => setTimeout(done, 12_000)), 60_000); it('next', () => {});`;
    late = start({ a: PASSES, b: slow, c: PASSES }, '--deadlines=0.16,10');
    const blocks = `${STARTS} it('blocks', () => { for (;;); });`;
    blocked = start({ a: PASSES, b: blocks, c: PASSES }, '--deadlines=0.16,0.2');
    const slowInWide = `it('one', () => new Promise((done) => setTimeout(done, process.env.WIDE ? 12_000 : 0)), 60_000);`;
    lateWide = start({ b: slowInWide, c: PASSES }, '--ci', '--deadlines=0.16,10');
    const onlyWide = UNSTEADY.replace('if (existsSync', 'if (!process.env.WIDE || existsSync');
    lateUnsteady = start({ a: onlyWide, b: slowInWide, c: PASSES }, '--ci', '--deadlines=0.16,10');
  });

  it('counts files whose process crashes, and errors outside of tests', async () => {
    const leaks = `it('leaks', async () => {
      setTimeout(() => { throw new Error('late'); }, 10);
      await new Promise((done) => setTimeout(done, 100));
    });`;
    const crashes = `it('crashes', () => { process.kill(process.pid, 'SIGKILL'); return new Promise(() => {}); });`;
    const { ended } = start({ a: PASSES, b: leaks, c: crashes, d: PASSES });
    expect(await ended()).toEqual({
      code: 1,
      lines: [
        'Failed:',
        '  b.test.js: an error outside of any test',
        '    late',
        '  c.test.js: did not end',
        '5 passed, 2 failed',
      ],
    });
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
    expect(lines.slice(-2)).toEqual(['  3 files are unsteady; at most 2 may be.', '3 passed, 1 failed, 3 unsteady']);
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

  it('runs the wide tests in CI after the usual ones, and counts both', async () => {
    const more = `it('two', () => {}); if (process.env.WIDE && process.env.PROCESSES) it('three', () => {});`;
    expect(await start({ a: more }, '--ci').ended()).toEqual({ code: 0, lines: ['3 passed, 0 failed'] });
  });

  it('runs no file a second time in CI that passed whole and is the same in the wide run', async () => {
    const whole = `afterAll(({}, file) => { file.meta.isWhole = true; });`;
    const tests = { a: whole + PASSES, b: `${whole} ${PASSES} // WIDE`, c: PASSES, d: whole + UNSTEADY };
    const { ended, child } = start(tests, '--ci');
    expect((await ended()).lines.at(-1)).toBe('13 passed, 0 failed, 1 unsteady');
    expect(child.stdout()).toContain('\n1 files were run once: nothing in them differs in the wide run');
  });

  it('does not run the wide tests in CI if the usual ones fail', async () => {
    const { ended, child } = start({ b: FAILS }, '--ci');
    expect((await ended()).lines.at(-1)).toBe('1 passed, 1 failed');
    expect(child.stdout()).toContain('The wide tests were not run, because the usual ones failed.');
  });

  it('names the wide tests that there was no time for in CI, and passes without them', async () => {
    const { code, lines } = await lateWide.ended();
    expect([code, lines.at(-1)]).toEqual([0, '3 passed, 0 failed, 2 not run']);
    expect(lines).toEqual(expect.arrayContaining(['Not run:', '  wide: c.test.js']));
  });

  it('runs a file that failed again after the soft deadline, too', async () => {
    const { code, lines } = await lateUnsteady.ended();
    expect([code, lines.at(-1)]).toEqual([0, expect.stringMatching(/ passed, 0 failed, 1 unsteady, \d+ not run$/)]);
    expect(lines).toContain('  wide: a.test.js: depends on the weather');
  });

  it('keeps the results when it is stopped', async () => {
    const { ended, child, folder } = start(NEVER_ENDING);
    await waitFor(() => existsSync(join(folder, 'started')));
    process.kill(child.pid, 'SIGTERM');
    expect(await ended()).toEqual({
      code: 143,
      lines: [
        'Not run:',
        '  c.test.js (in part)',
        '  d.test.js',
        'Failed:',
        '  b.test.js: breaks',
        '    this one is broken',
        '  Stopped by SIGTERM.',
        '3 passed, 2 failed, 2 not run',
      ],
    });
  });
});
