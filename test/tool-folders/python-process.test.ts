/** The host for Python tools as a process: concurrent calls, cancelled calls, output, sizes, and how it exits. */
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { within } from '../support/child.ts';
import { patient } from '../support/patience.ts';
import { alive, waitFor } from '../support/processes.ts';
import { type Host, noPython, startHost } from '../support/python.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';

/** The longest line that the worker takes. */
const MOST = 6 * 1024 * 1024;

const tools = `
import asyncio, atexit, os, subprocess, sys, time
from fastmcp import Context
from fastmcp.tools import tool

print("noise while importing")
os.system("echo noise of a child")
os.write(1, b"noise past Python\\n")

@tool
async def echo(text: str) -> str:
    return text

@tool
def echo_in_thread(text: str) -> str:
    return text

@tool
async def waits(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "waited"

@tool
def blocks(ms: int) -> str:
    time.sleep(ms / 1000)
    return "blocked"

@tool
def blocks_until(file: str) -> str:
    open(file + ".started", "w").close()
    while not os.path.exists(file):
        time.sleep(0.01)
    return "blocked"

@tool
async def cleans_up(file: str) -> str:
    open(file + ".started", "w").close()
    try:
        await asyncio.sleep(30)
    finally:
        open(file, "w").write("cleaned")

@tool
async def stubborn() -> str:
    while True:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            pass

@tool(timeout=0.1)
async def hasty() -> str:
    await asyncio.sleep(30)

@tool(timeout=0.1)
def hasty_in_thread() -> str:
    time.sleep(3)

@tool
def noisy() -> str:
    print("noise of a tool")
    subprocess.run(["sh", "-c", "echo noise of its child; echo more >&2"])
    return sys.stdin.read() + "quiet"

@tool
def large(n: int) -> str:
    return "x" * n

@tool
async def tells_late(ctx: Context) -> str:
    try:
        await asyncio.sleep(30)
    finally:
        await ctx.info("too late")

@tool
def at_end(file: str) -> str:
    atexit.register(lambda: open(file, "w").write("ended"))
    return "registered"
`;

describe.skipIf(noPython)('the Python worker process', () => {
  const start = (args: string[] = []) => startHost({ 'all.py': tools }, { args });
  let host: Host;
  beforeAll(async () => {
    host = await start(['--max-line', String(MOST)]);
  }, 180_000);

  it('runs a thousand calls concurrently', async () => {
    const started = performance.now();
    const calls = Array.from({ length: 1000 }, (_, index) =>
      index % 2 === 0
        ? host.call('waits', { ms: 200 })
        : host.call(index % 4 === 1 ? 'echo' : 'echo_in_thread', { text: `${index}` }),
    );
    const answers = await Promise.all(calls);
    expect(answers.every(({ ok }) => ok)).toBe(true);
    expect(answers[5]?.result).toMatchObject({ structuredContent: { result: '5' } });
    // Run one after the other, they would take 100 s.
    expect(performance.now() - started).toBeLessThan(patient(10_000));
    const answer = await host.call('echo', { text: 'still there' });
    expect(answer.ok).toBe(true);
  });

  it('is not blocked by a tool that blocks its thread', async () => {
    const file = join(tempFolder(), 'go-on');
    const blocking = host.call('blocks_until', { file });
    await waitFor(() => existsSync(`${file}.started`));
    expect((await host.call('echo', { text: 'x' })).ok).toBe(true);
    writeFileSync(file, '');
    expect((await blocking).result).toMatchObject({ structuredContent: { result: 'blocked' } });
  });

  it('answers a cancelled call at once, no matter how its tool reacts', async () => {
    const file = join(tempFolder(), 'cleaned');
    const calls = [
      host.call('cleans_up', { file }, { id: 'a' }),
      host.call('blocks', { ms: 20_000 }, { id: 'b' }),
      host.call('stubborn', {}, { id: 'c' }),
      host.call('tells_late', {}, { id: 'd' }),
    ];
    await waitFor(() => existsSync(`${file}.started`));
    await host.ask({ op: 'ping' });
    for (const id of ['a', 'b', 'c', 'd', 'unknown']) host.write(`${JSON.stringify({ op: 'cancel', id })}\n`);
    for (const answer of await Promise.all(calls))
      expect(answer.error).toEqual({ code: 'cancelled', message: 'The call was cancelled.' });
    await waitFor(() => existsSync(file));
    expect(host.events).toEqual([]);
    // The id of a finished call may be reused.
    expect((await host.call('echo', { text: 'x' }, { id: 'a' })).ok).toBe(true);
  });

  it('reports that a cancelled call still occupies a thread, and when the thread is free again', async () => {
    const file = join(tempFolder(), 'free');
    const call = host.call('blocks_until', { file }, { id: 'held' });
    await waitFor(() => existsSync(`${file}.started`));
    host.write(`${JSON.stringify({ op: 'cancel', id: 'held' })}\n`);
    expect(await call).toMatchObject({ ok: false, busy: true });
    writeFileSync(file, '');
    await waitFor(() => host.events.some(({ op, id }) => op === 'free' && id === 'held'));
    host.events.length = 0;
  });

  it('applies the timeout of the tool or that of the caller, whichever is shorter', async () => {
    const timeout = (name: string) => ({
      code: 'execution_timeout',
      message: `The tool "${name}" did not finish within 0.1 s.`,
    });
    expect((await host.call('hasty')).error).toEqual(timeout('hasty'));
    expect((await host.call('hasty_in_thread')).error).toEqual(timeout('hasty_in_thread'));
    expect((await host.call('waits', { ms: 30_000 }, { timeout_ms: 100 })).error).toEqual(timeout('waits'));
    expect((await host.call('hasty', {}, { timeout_ms: 20_000 })).error).toEqual(timeout('hasty'));
    expect((await host.call('waits', { ms: 10 }, { timeout_ms: 5000 })).ok).toBe(true);
  });

  it('keeps printed output out of the socket', async () => {
    expect((await host.call('noisy')).result).toMatchObject({ structuredContent: { result: 'quiet' } });
    await waitFor(() => host.child.stderr().includes('noise of its child'));
    const stderr = host.child.stderr();
    for (const noise of ['while importing', 'of a child', 'past Python', 'of a tool', 'of its child'])
      expect(stderr).toContain(`noise ${noise}`);
    expect(host.lines.join('\n')).not.toContain('noise');
    expect(host.child.stdout()).toBe('');
  });

  it('writes nothing into the tool folder', async () => {
    await host.call('echo', { text: 'x' });
    expect(readdirSync(host.folder)).toEqual(['all.py']);
  });

  it('accepts and returns megabytes, up to a limit', async () => {
    const text = 'ü'.repeat(1024 * 1024);
    const answer = await host.call('echo', { text });
    expect(answer.result?.structuredContent).toEqual({ result: text });
    expect((await host.call('large', { n: MOST / 2 - 1024 })).ok).toBe(true);
    expect((await host.call('large', { n: MOST / 2 + 1024 })).error).toMatchObject({ code: 'too_large' });
    const tooLong = await host.call('echo', { text: 'x'.repeat(MOST) }, { id: 'long "one"' });
    expect(tooLong.error).toEqual({
      code: 'too_large',
      message: expect.stringMatching(/^The request has 629\d+ bytes; 6291456 are allowed\.$/),
    });
    expect((await host.call('echo', { text: 'x' })).ok).toBe(true);
  });

  it('answers unreadable requests with an error and keeps working', async () => {
    const refused = async (text: string, id: string | null) => {
      host.write(`${text}\n`);
      return (await host.answerTo(id)).error;
    };
    expect(await refused('no json', null)).toMatchObject({ code: 'invalid_arguments' });
    expect(await refused('[1]', null)).toMatchObject({ message: 'A request is a JSON object.' });
    expect(await refused('{"id":"q","op":"tools.call", x}', 'q')).toMatchObject({ code: 'invalid_arguments' });
    expect(await refused(`{"id":"deep","op":${'['.repeat(200_000)}`, 'deep')).toMatchObject({
      code: 'invalid_arguments',
    });
    expect(await refused('{"id":"o","op":"other"}', 'o')).toMatchObject({ message: 'There is no op "other".' });
    expect(await refused('{"id":"p","op":["x"]}', 'p')).toMatchObject({ code: 'internal_error' });
    expect(await refused('{"op":"tools.call","tool":"echo"}', null)).toMatchObject({ code: 'invalid_arguments' });
    const first = host.call('waits', { ms: 300 }, { id: 'twice' });
    host.write('{"id":"twice","op":"tools.call","tool":"echo","arguments":{"text":"x"}}\n');
    expect((await first).error).toMatchObject({ code: 'invalid_arguments' });
    // In chunks, several at once, with an empty line.
    host.write('\n{"id":"1x","op":"pi');
    await sleep(20);
    host.write('ng"}\n{"id":"2x","op":"ping"}\r\n');
    expect([(await host.answerTo('1x')).ok, (await host.answerTo('2x')).ok]).toEqual([true, true]);
  });

  it('allows one connection at a time, from its owner only, a new one when that one closes, and exits with its standard input', async () => {
    const host = await start();
    expect(statSync(host.socket).mode & 0o777).toBe(0o600);
    const second = connect(host.socket);
    second.on('error', () => {});
    expect(await within(5000, new Promise((resolve) => second.once('close', () => resolve('closed'))))).toBe('closed');
    expect((await host.call('echo', { text: 'x' })).ok).toBe(true);

    const file = join(tempFolder(), 'cleaned');
    host.write(`${JSON.stringify({ id: 'x', op: 'tools.call', tool: 'cleans_up', arguments: { file } })}\n`);
    await host.ask({ op: 'ping' });
    host.connection.destroy();
    // The calls of a closed connection are cancelled.
    await waitFor(() => existsSync(file));
    const third = connect(host.socket);
    const first = await new Promise<string>((resolve) => third.once('data', (data) => resolve(data.toString())));
    expect(first).toMatch(/^\{"op":"ready","namespace":"tests","tools":\[/);

    // It exits when its standard input is closed, even while a tool blocks.
    const started = join(tempFolder(), 'blocked');
    const blocks = { id: '1', op: 'tools.call', tool: 'blocks_until', arguments: { file: started } };
    third.write(`${JSON.stringify(blocks)}\n`);
    await waitFor(() => existsSync(`${started}.started`));
    host.child.process.stdin.end();
    expect(await within(10_000, host.child.exited)).toEqual({ code: 0, signal: null });
    expect(alive(host.child.pid)).toBe(false);
  });

  it('exits on a shutdown request or SIGTERM, and runs the atexit handlers of its tools first', async () => {
    // The next test ends another one by a shutdown request.
    for (const how of some(['shutdown', 'SIGTERM'], ['SIGTERM'])) {
      const host = await start();
      const file = `${host.folder}/ended`;
      await host.call('at_end', { file });
      if (how === 'shutdown') expect((await host.ask({ op: 'shutdown' })).ok).toBe(true);
      else host.child.process.kill('SIGTERM');
      expect(await within(4000, host.child.exited)).toEqual({ code: 0, signal: null });
      expect(existsSync(file)).toBe(true);
    }
  });

  it('exits within seconds of a shutdown request, even if tools do not return', async () => {
    // The last test of the host that the others share.
    host.write('{"id":"1","op":"tools.call","tool":"stubborn"}\n');
    host.write('{"id":"2","op":"tools.call","tool":"blocks","arguments":{"ms":60000}}\n');
    expect((await host.ask({ op: 'shutdown' })).ok).toBe(true);
    expect((await within(5000, host.child.exited))?.code).toBe(0);
  });
});
