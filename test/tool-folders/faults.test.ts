/** Tools that hang, exhaust memory, exit or corrupt the worker connection affect only their own namespace. */
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { isWithoutIsolation } from '../support/needs.ts';
import { running } from '../support/processes.ts';
import { noPython } from '../support/python.ts';
import { useProcesses } from '../support/switch.ts';
import { type Faulty, SLEEPS, startFaulty } from './faulty.ts';

useProcesses();

describe.skipIf(noPython !== undefined)('while other namespaces keep answering', () => {
  let dock: Faulty;
  beforeAll(async () => {
    dock = await startFaulty(
      { a: '1s', b: '1s', c: '30s', d: '30s' },
      { memory: '300MiB', settings: '[limits]\nmessage = "4MiB"\n' },
    );
  }, 90_000);

  const TIMED_OUT = /did not answer tools\/call within 1 s and was told to stop. Try again, or raise its timeout/;
  const MEMORY = /used more than its limit of 300 MiB of memory, and was ended; make its tools use less/;
  const CONTRACT = /a tool must not write to the socket of its worker. Try again/;

  // Each namespace crashes too rarely to count as a crash loop. If one language cannot have a fault, it has a different
  // one.
  it.each<[string, [namespace: string, ts: string, py: string, says: RegExp][]]>([
    [
      'loops, blocks, eats or exits',
      [
        ['a', 'loop', 'loop', TIMED_OUT],
        ['b', 'block', 'loop_async', TIMED_OUT],
        ['c', 'buffers', 'buffers', MEMORY],
        ['d', 'really', 'really', /exited with code 4 \(a tool must not end its process\) before it answered. Try/],
      ],
    ],
    [
      'waits for a program, is stopped, fills its heap or aborts',
      [
        ['a', 'program', 'block', TIMED_OUT],
        ['b', 'stop', 'stop', TIMED_OUT],
        ['c', 'heap', 'heap', MEMORY],
        ['d', 'abort', 'abort', /was ended by SIGABRT before it answered. Try again/],
      ],
    ],
    [
      'prints without end, is killed or writes to the socket of its worker',
      [
        ['a', 'flood', 'flood', TIMED_OUT],
        ['c', 'kill', 'kill', /(was ended by SIGKILL before it answered|closed its connection)\. Try again/],
        ['d', 'litter', 'litter', CONTRACT],
      ],
    ],
  ])(
    'a tool that %s is ended together with its worker, and the worker is replaced soon',
    { timeout: 60_000 },
    async (what, faults) => {
      await dock.during(what, async () => {
        await Promise.all(
          faults.flatMap(([namespace, ts, py, says]) => [
            dock.ended(namespace, `ts_${ts}`).then((text) => expect(text).toMatch(says)),
            dock.ended(namespace, `py_${py}`).then((text) => expect(text).toMatch(says)),
          ]),
        );
      });
    },
  );

  it.each(['ts', 'py'])('a %s tool cannot disturb other calls in its worker', { timeout: 60_000 }, async (language) => {
    const said: Record<string, string> = {};
    await dock.during(language, async () => {
      const tools = ['exit', 'recursion', 'huge', 'garbage', 'spoil', 'long', 'fork', 'closes', 'talks'];
      if (language === 'py') tools.push('fork_async');
      for (const tool of tools) said[tool] = await dock.survived('c', `${language}_${tool}`);
    });
    expect(said.exit).toMatch(/a tool returns or (throws|raises) instead/i);
    expect(said.recursion).toMatch(/maximum (recursion depth|call stack size) exceeded/i);
    expect(said.huge).toMatch(/The result has \d+ bytes; \d+ are allowed. Return less, or raise limits.message/);
    expect(said.garbage).toBe('written');
    expect(said.spoil).toContain('sent a broken answer: a tool wrote to the socket of its worker. Try again');
    expect(said.long).toBe('written');
    expect(said.fork).toBe('forked');
    expect(said.closes).toBe('closed');
    expect(said.talks).toMatch(/talked|Bad file descriptor/);
    const log = dock.stderr();
    expect(log).toContain('wrote a line that does not follow the worker contract');
    expect(log).toMatch(/answered with more than \d+ bytes. Raise limits.message/);
  });

  it('a call lost because another call blocked its worker gets an error with the reason', {
    timeout: 30_000,
  }, async () => {
    const loop = dock.call('a_ts_loop');
    const lost: string[] = [];
    await loop;
    do lost.push((await dock.call('a_ts_waits')).text);
    while (!lost.at(-1)!.includes('is being replaced') && lost.length < 20);
    expect(lost.at(-1)).toContain('was busy with a call that did not end in time, and is being replaced. Try again');
  });

  it('no process started by a tool outlives the gateway, except without bubblewrap one in a session of its own', async () => {
    // Not in "c", whose tools have closed the files that a new process would inherit.
    for (const tool of ['d_ts_fork', 'd_py_fork']) expect((await dock.call(tool)).text).toBe('forked');
    atEnd(() => {
      for (const pid of running(SLEEPS.detached)) process.kill(pid, 'SIGKILL');
    });
    expect(running(SLEEPS.inGroup).length).toBeGreaterThanOrEqual(2);
    expect(running(SLEEPS.detached).length).toBeGreaterThanOrEqual(2);
    await dock.stop();
    expect([SLEEPS.inGroup, dock.cwd].flatMap(running)).toEqual([]);
    expect(running(SLEEPS.detached).length > 0).toBe(await isWithoutIsolation());
  });
});
