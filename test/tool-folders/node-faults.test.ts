/** Misbehaving tools, and a worker that must exit in all circumstances. */
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { within } from '../support/child.ts';
import { waitFor } from '../support/processes.ts';
import { type Files, tempFolder } from '../support/temp.ts';
import { attach, describeOnNodes, startWorker, type TestWorker, textOf, type WorkerOptions } from './worker.ts';

const tool = (name: string, body: string) =>
  `export const ${name} = { description: 'x', inputSchema: { type: 'object' }, async execute(input, ctx) { ${body} } };\n`;

/** Declares `started()`, which tells the test that a call has begun. */
const STARTED = `import { writeFileSync } from 'node:fs';\nconst started = () => writeFileSync(import.meta.dirname + '/started', '');\n`;

/** Connects when the worker has noticed that the connection before is closed. */
const attachAgain = ({ child, folder, path }: TestWorker) =>
  waitFor(() => attach(child, folder, path).catch(() => null));

describeOnNodes((node) => {
  const start = (files: Files, options: WorkerOptions = {}) => startWorker(files, { node, ...options });
  /** For tests after which a worker works as before. */
  let worker: TestWorker;
  const slowly = `await new Promise((resolve) => setTimeout(resolve, 5000)); return 'late';`;
  beforeAll(async () => {
    worker = await start({
      'echo.ts': tool('echo', 'return input.text;'),
      'cancelled.ts': `let last = 'nothing';
        ${tool('wait', `await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)); last = ctx.signal.reason.name; return 'late';`)}
        ${tool('deaf', 'await new Promise((resolve) => setTimeout(resolve, 200)); last = String(ctx.signal.aborted); return "late";')}
        ${tool('seen', 'return last;')}`,
      'slow.ts': tool('slow', slowly) + tool('own', slowly).replace('async execute', 'timeoutMs: 50, async execute'),
      'exit.ts': tool('exit', 'process.exit(3);') + tool('fine', `return 'fine';`),
      'exits.ts': `export {};\nprocess.exit(0);`,
      'throws.ts':
        tool('later', `return new Promise(() => setTimeout(() => { throw new Error('in a timer'); }, 10));`) +
        tool(
          'lost',
          `Promise.reject(new Error('lost')); await new Promise((resolve) => setTimeout(resolve, 30)); return 'x';`,
        ) +
        tool('short', `await new Promise((resolve) => setTimeout(resolve, 100)); return 'fine';`) +
        tool('left', `setTimeout(() => { throw new Error('after the answer'); }, 20); return 'x';`),
      'lacks.ts': tool('lacks', `const name = 'not-' + 'there'; return import(name);`),
    });
  });

  describe('the worker contract', () => {
    it('answers unknown requests with an error and keeps working', async () => {
      expect(await worker.error('nope')).toMatchObject({ code: 'tool_not_found' });
      expect(await worker.error('__proto__')).toMatchObject({ code: 'tool_not_found' });
      expect(await worker.ask('no.op')).toMatchObject({ ok: false, error: { code: 'invalid_arguments' } });
      worker.socket.write('this is no JSON\n[1]\n\n');
      expect(await worker.ask('ping')).toMatchObject({ ok: true, result: {} });
      expect(worker.lines.filter((line) => line.includes('has to be a JSON object'))).toHaveLength(2);
    });

    it('accepts requests in arbitrary chunks, and many at once', async () => {
      const text = 'ü€😀'.repeat(50_000);
      const request = Buffer.from(
        `${JSON.stringify({ id: 'long', op: 'tools.call', tool: 'echo', arguments: { text } })}\n`,
      );
      const answers = Promise.all(Array.from({ length: 200 }, (_, n) => worker.result('echo', { text: `${n}` })));
      expect((await answers).map(textOf)).toEqual(Array.from({ length: 200 }, (_, n) => `${n}`));
      const found = new Promise<string>((resolve) => {
        worker.socket.on('data', () => {
          const line = worker.lines.find((one) => one.startsWith('{"id":"long"'));
          if (line !== undefined) resolve(line);
        });
      });
      for (let at = 0; at < request.length; at += 9_999) {
        worker.socket.write(request.subarray(at, at + 9_999));
        await sleep(1);
      }
      expect(JSON.parse(await found).result.content[0].text).toBe(text);
    });

    it('skips a request that is too long and answers it with an error', async () => {
      const worker = await start({ 'a.ts': tool('echo', 'return input.text;') }, { args: ['--max-line', '100000'] });
      const long = await worker.call('echo', { text: 'x'.repeat(3_000_000) }, { id: 'a "long" one' });
      expect(long).toMatchObject({ id: 'a "long" one', ok: false, error: { code: 'too_large' } });
      expect(textOf(await worker.result('echo', { text: 'short' }))).toBe('short');
      expect(await worker.error('echo', { text: 'ü'.repeat(49_970) })).toMatchObject({ code: 'too_large' });
    });

    it('stops taking requests while its answers are not being read', async () => {
      const worker = await start({
        'a.ts': `import { appendFileSync } from 'node:fs';
          ${tool('big', `appendFileSync(import.meta.dirname + '/done', '.'); return 'x'.repeat(1_000_000);`)}`,
      });
      const done = () => readFileSync(join(worker.folder, 'done')).length;
      worker.socket.pause();
      const calls = Array.from({ length: 200 }, () => worker.call('big', { pad: 'x'.repeat(10_000) }));
      await sleep(1_500);
      expect(done()).toBeLessThan(100);
      worker.socket.resume();
      expect((await Promise.all(calls)).every(({ ok }) => ok)).toBe(true);
      expect(done()).toBe(200);
    });

    it('allows one connection at a time, and when that one closes, cancels its calls and accepts another', async () => {
      const worker = await start({
        'a.ts': `let last = 'nothing';
        ${tool('wait', `await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)); last = 'aborted';`)}
        ${tool('seen', 'return last;')}`,
      });
      const second = connect(worker.path);
      await new Promise((resolve) => second.on('close', resolve));
      expect(textOf(await worker.result('seen'))).toBe('nothing');
      worker.call('wait').catch(() => {});
      await worker.ask('ping');
      worker.socket.destroy();
      const next = await attachAgain(worker);
      expect(textOf(await next.result('seen'))).toBe('aborted');
    });

    it('exits on a shutdown request', async () => {
      const worker = await start({ 'a.ts': tool('f', `return 'x';`) });
      expect(await worker.ask('shutdown')).toMatchObject({ ok: true });
      expect(await within(3_000, worker.child.exited)).toEqual({ code: 0, signal: null });
    });
  });

  describe('a call', () => {
    it('is cancelled, and its tool gets the abort signal', async () => {
      const waiting = worker.call('wait', {}, { id: 'w' });
      await worker.ask('ping');
      worker.send({ op: 'cancel', id: 'w' });
      expect(await waiting).toMatchObject({ id: 'w', ok: false, error: { code: 'cancelled' } });
      expect(textOf(await worker.result('seen'))).toBe('AbortError');
      const deaf = worker.call('deaf', {}, { id: 'd' });
      worker.send({ op: 'cancel', id: 'd' });
      worker.send({ op: 'cancel', id: 'unknown' });
      expect(await deaf).toMatchObject({ error: { code: 'cancelled' } });
      await waitFor(async () => textOf(await worker.result('seen')) === 'true');
      expect(worker.lines.filter((line) => line.startsWith('{"id":"d"'))).toHaveLength(1);
    });

    it('ends at the shorter of its two timeouts', async () => {
      const slow = await worker.call('slow', {}, { timeout_ms: 60 });
      expect(slow.error).toMatchObject({ code: 'execution_timeout', message: 'The tool did not finish within 60 ms.' });
      const own = await worker.call('own', {}, { timeout_ms: 4000 });
      expect(own.error).toMatchObject({ code: 'execution_timeout', details: { timeout_ms: 50 } });
    });
  });

  describe('tool code', () => {
    it('may print anything, and so may its child processes', async () => {
      const worker = await start({
        'a.ts': `import { execSync, spawnSync } from 'node:child_process';
        console.log('{"op":"ready","tools":[]}');
        ${tool(
          'noisy',
          `console.log('{"id":"1","ok":true}'); process.stdout.write('{"id":"1"}\\n'); console.error('x');
          spawnSync('echo', ['from a child'], { stdio: 'inherit' }); return execSync('echo kept').toString();`,
        )}`,
      });
      expect(textOf(await worker.result('noisy'))).toBe('kept\n');
      expect(worker.lines).toHaveLength(2);
      // The worker is idle now, and ends when its standard input is closed.
      expect(await worker.child.stop('stdin')).toEqual({ code: 0, signal: null });
      expect(worker.child.stdout()).toContain('from a child');
    });

    it('cannot exit the worker process', async () => {
      expect(worker.failed).toEqual([
        { file: 'exits.ts', line: 2, message: expect.stringContaining('process.exit(0)') },
      ]);
      expect((await worker.error('exit')).message).toContain('process.exit(3) was called');
      expect(textOf(await worker.result('fine'))).toBe('fine');
    });

    it('may throw an uncaught error: that call fails and the worker keeps running', async () => {
      expect(await worker.error('later')).toMatchObject({
        code: 'internal_error',
        message: 'in a timer',
        details: { file: 'throws.ts', line: 1 },
      });
      expect(await worker.error('lost')).toMatchObject({ message: 'lost' });
      // With many calls running, each error is assigned to its own call.
      const calls = await Promise.all([worker.call('lost'), worker.call('later'), worker.call('short')]);
      expect(calls.map(({ ok, error }) => (ok ? 'fine' : (error as { message: string }).message))).toEqual([
        'lost',
        'in a timer',
        'fine',
      ]);
      expect(textOf(await worker.result('left'))).toBe('x');
      const slow = worker.call('short');
      const event = await waitFor(() => worker.events.find(({ data }) => data === 'Uncaught error: after the answer'));
      expect(event).toMatchObject({ op: 'log', id: null, level: 'error', logger: 'demo' });
      expect((await slow).ok).toBe(true);
      expect(textOf(await worker.result('fine'))).toBe('fine');
    });

    it('that lacks a package at run time gets an error that says so', async () => {
      expect((await worker.error('lacks')).code).toBe('dependency_error');
    });

    it('that uses too much memory ends the worker', async () => {
      const worker = await start(
        { 'a.ts': tool('f', 'const all = []; for (;;) all.push(new Array(1000).fill({}));') },
        { options: { memoryMb: 40 } },
      );
      worker.call('f').catch(() => {});
      // V8 says why it gives up, and aborts.
      expect(await within(20_000, worker.child.exited)).toEqual({ code: null, signal: 'SIGABRT' });
      expect(worker.child.stderr()).toContain('heap out of memory');
    });
  });

  describe('closing the standard input of a worker', () => {
    it('ends a worker in an infinite loop', async () => {
      const worker = await start({ 'a.ts': STARTED + tool('f', 'started(); for (;;);') });
      worker.call('f').catch(() => {});
      await waitFor(() => existsSync(join(worker.folder, 'started')));
      worker.child.process.stdin.end();
      expect(await within(15_000, worker.child.exited)).toEqual({ code: null, signal: 'SIGKILL' });
    });

    it('ends a worker that waits for a child process', async () => {
      const worker = await start({
        'a.ts': `import { execSync } from 'node:child_process';\n${STARTED}${tool('f', `started(); execSync('sleep 60', { stdio: 'ignore' });`)}`,
      });
      worker.call('f').catch(() => {});
      await waitFor(() => existsSync(join(worker.folder, 'started')));
      worker.child.process.stdin.end();
      expect(await within(15_000, worker.child.exited)).toEqual({ code: null, signal: 'SIGKILL' });
    });

    it('ends a worker that is still loading', async () => {
      const mark = join(tempFolder(), 'loading');
      const loading = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');\nfor (;;);`;
      let isReady = false;
      start({ 'a.ts': loading }).then(
        () => {
          isReady = true;
        },
        () => {},
      );
      await waitFor(() => existsSync(mark));
      // The test's cleanup closes the standard input and checks that the worker exits.
      expect(isReady).toBe(false);
    });
  });
});
