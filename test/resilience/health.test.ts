/** Health checks: a server that hangs is detected without a call and restarted. A working server is left alone. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { alive, running, waitFor } from '../support/processes.ts';
import { server, serverEntry, startHttpServer } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';
import { startSdk, startWeb } from '../upstreams/sse-server.ts';
import {
  call,
  callError,
  callText,
  logged,
  logOf,
  pidOf,
  received,
  replaceFile,
  toml,
  toolNames,
  toolsToBe,
} from './use.ts';

useProcesses();

const other = { namespace: 'other', command: server('basic', '--tools', 'echo,whoami') };
const often = { health_interval: '200ms' };
const hang = (...args: (string | number)[]) => ({ namespace: 'h', command: server('hang', ...args), timeout: '1s' });
const hangTools = ['ok', 'hang', 'freeze', 'block', 'cancelled', 'slow'].map((name) => `h_${name}`);
const otherTools = ['other_echo', 'other_whoami'];
const down = 'down: does not answer';

/** Suspends a process. It is resumed at the end of the test if it still exists. */
function halt(pid: number): void {
  process.kill(pid, 'SIGSTOP');
  atEnd(() => {
    if (alive(pid)) process.kill(pid, 'SIGCONT');
  });
}

function methodsIn(file: string): string[] {
  return received(file).map(({ method }) => method);
}

const downs = (gateway: { stderr(): string }) => logOf(gateway).filter(({ message }) => message.startsWith('down'));

describe('a server that hangs', () => {
  it.each([
    ['reads on and says nothing', 'freeze'],
    ['has stopped altogether', 'halt'],
  ])('and %s is restarted: its tools disappear with one notification and return with one', async (_, how) => {
    const gateway = await startStdio({ config: toml([hang(), other], often) });
    const { client } = gateway;
    const before = Number(await callText(client, 'h_ok'));
    expect(await toolNames(client)).toEqual([...hangTools, ...otherTools]);
    const told = gateway.changes('tools');
    if (how === 'freeze') await callText(client, 'h_freeze');
    else halt(before);
    await logged(gateway, down, 10_000);
    await waitFor(() => gateway.changes('tools') === told + 2, 10_000);
    expect(await toolNames(client)).toEqual([...hangTools, ...otherTools]);
    // The old and the new process never run at the same time.
    expect(alive(before)).toBe(false);
    expect(Number(await callText(client, 'h_ok'))).not.toBe(before);
    expect(gateway.changes('tools')).toBe(told + 2);
    expect(downs(gateway)).toHaveLength(1);
  });

  it('is detected if it is modern', async () => {
    const command = server('modern', '--era', 'modern');
    const gateway = await startStdio({ config: toml([{ namespace: 'm', command, timeout: '1s' }], often) });
    const before = Number(await callText(gateway.client, 'm_pid'));
    // It answers the health checks for a while.
    await sleep(1500);
    expect(downs(gateway)).toEqual([]);
    halt(before);
    await logged(gateway, down, 10_000);
    const again = async () => Number((await call(gateway.client, 'm_pid').catch(() => null))?.text);
    await waitFor(async () => ![before, 0, Number.NaN].includes(await again()), 10_000);
  });

  it('fails calls during the restart with a clear error', async () => {
    const log = join(tempFolder(), 'log');
    const { client } = await startStdio({ config: toml([{ ...hang('--log', log), timeout: '3s' }], often) });
    await callText(client, 'h_freeze');
    // The second check uses a request that the server has answered before.
    const lists = () => methodsIn(log).filter((method) => method === 'tools/list').length;
    await waitFor(() => lists() === 2, 10_000);
    // The call has the same timeout as the check, so some of it should be left.
    await sleep(500);
    expect(await callError(client, 'h_ok')).toEqual({
      success: false,
      result: null,
      code: 'source_broken',
      message: 'Server "h" does not answer and is being restarted. Try again in a moment.',
    });
  });

  it('is restarted if a call blocks it for longer than its timeout', async () => {
    const gateway = await startStdio({ config: toml([hang()], often) });
    const before = Number(await callText(gateway.client, 'h_ok'));
    expect(await callError(gateway.client, 'h_block', { ms: 60_000 })).toMatchObject({ code: 'source_timeout' });
    await logged(gateway, down, 10_000);
    await waitFor(() => !alive(before));
    await toolsToBe(gateway.client, hangTools, 10_000);
  });

  it('is detected on a connection with share = "session"', async () => {
    const entry = { namespace: 'b', command: server('basic', '--tools', 'whoami'), share: 'session', timeout: '1s' };
    const gateway = await startHttp({ config: toml([entry], often), args: ['--log-level', 'info'] });
    const [{ client: one }, { client: two }] = [await gateway.connect(), await gateway.connect()];
    const [first, second] = [await pidOf(one, 'b'), await pidOf(two, 'b')];
    halt(first);
    await logged(gateway, 'the connection of one client has ended: does not answer', 10_000);
    const third = await pidOf(one, 'b');
    expect([first, second]).not.toContain(third);
    expect(await pidOf(two, 'b')).toBe(second);
    await waitFor(() => !alive(first));
  });
});

describe('health checks of a server over HTTP', () => {
  it('remove a hanging server, and restore it when it answers', async () => {
    const upstream = await startHttpServer('--tools', 'echo,whoami');
    const config = toml([{ namespace: 'up', url: upstream.url, timeout: '1s' }, other], often);
    const gateway = await startStdio({ config });
    expect(await pidOf(gateway.client, 'up')).toBe(upstream.pid);
    halt(upstream.pid);
    await logged(gateway, down, 10_000);
    await toolsToBe(gateway.client, otherTools);
    process.kill(upstream.pid, 'SIGCONT');
    await toolsToBe(gateway.client, ['up_echo', 'up_whoami', ...otherTools], 20_000);
    expect(await pidOf(gateway.client, 'up')).toBe(upstream.pid);
  });

  /**
   * A server without a stream, so that only a health check can notice. It can be made to answer everything with a
   * status.
   */
  async function startPlain() {
    const web = await startWeb(async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString();
      if (request.method !== 'POST') return response.writeHead(405).end();
      if (plain.status !== 200) return response.writeHead(plain.status).end('Nobody is there');
      const { id, method } = JSON.parse(body);
      if (method === 'ping') plain.pings.push({ path: request.url ?? '', time: performance.now() });
      if (id === undefined) return response.writeHead(202).end();
      const results: Record<string, unknown> = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'plain', version: '1' },
        },
        ping: {},
        'tools/list': { tools: [{ name: 'only', inputSchema: { type: 'object' } }] },
      };
      const result = results[method];
      const error = { code: -32_601, message: 'Method not found' };
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
    });
    const plain = { ...web, status: 200, pings: [] as { path: string; time: number }[] };
    return plain;
  }

  it('notice an unreachable server before a call fails, and restore it when it answers', async () => {
    const plain = await startPlain();
    const gateway = await startStdio({ config: toml([{ namespace: 'up', url: plain.origin }, other], often) });
    expect(await toolNames(gateway.client)).toEqual(['up_only', ...otherTools]);
    await plain.stop();
    await logged(gateway, 'down: refused the connection; is it running?');
    await toolsToBe(gateway.client, otherTools);
    await plain.start();
    await toolsToBe(gateway.client, ['up_only', ...otherTools], 20_000);
  });

  it('notice a server that is down behind a proxy', async () => {
    const plain = await startPlain();
    const gateway = await startStdio({ config: toml([{ namespace: 'up', url: plain.origin }, other], often) });
    expect(await toolNames(gateway.client)).toEqual(['up_only', ...otherTools]);
    plain.status = 503;
    await toolsToBe(gateway.client, otherTools);
    await logged(gateway, 'HTTP status 503');
    plain.status = 200;
    await toolsToBe(gateway.client, ['up_only', ...otherTools], 20_000);
  });

  it('use the HTTP+SSE transport for a server of the first revision', async () => {
    const sdk = await startSdk();
    const gateway = await startStdio({ config: toml([{ namespace: 's', url: sdk.url, transport: 'sse' }], often) });
    await toolNames(gateway.client);
    const posts = () => sdk.seen.filter(({ verb }) => verb === 'POST').length;
    const before = posts();
    await waitFor(() => posts() > before + 3);
    expect(downs(gateway)).toEqual([]);
  });

  it('are spread out over twenty servers and cost little CPU', async () => {
    const plain = await startPlain();
    const servers = Array.from({ length: 20 }, (_, n) => ({ namespace: `s${n}`, url: `${plain.origin}/${n}` }));
    const gateway = await startStdio({ config: toml(servers, { health_interval: '1s' }) });
    expect(await toolNames(gateway.client)).toHaveLength(20);
    const start = cpuOf(gateway.pid);
    const began = performance.now();
    await waitFor(() => plain.pings.length >= 100, 15_000);
    const share = (cpuOf(gateway.pid) - start) / (performance.now() - began);
    // At the default interval this is thirty times less.
    expect(share).toBeLessThan(0.15);
    // In each tenth of a second of the third round, only a part of the servers is checked.
    const third = servers.map((_, n) => plain.pings.filter(({ path }) => path === `/${n}`)[2]!.time);
    const tenths = third.map((time) => Math.floor(time / 100));
    const most = Math.max(...tenths.map((tenth) => tenths.filter((other) => other === tenth).length));
    expect(new Set(tenths).size).toBeGreaterThan(4);
    expect(most).toBeLessThan(14);
    expect(Math.max(...third) - Math.min(...third)).toBeGreaterThan(250);
  });
});

describe('a working server is not restarted by health checks', () => {
  const working: [string, object, string, string][] = [
    ['reports progress', { ms: 4000, steps: 20 }, '1s', 'h_slow'],
    ['takes long over a call', { ms: 3000 }, '10s', 'h_slow'],
    // Longer than two health checks would wait.
    ['does nothing else meanwhile', { ms: 23_000 }, '40s', 'h_block'],
  ];
  it.each(some(working, working.slice(0, 2)))('when it %s', { timeout: 60_000 }, async (_, args, timeout, name) => {
    const gateway = await startStdio({ config: toml([{ ...hang(), timeout }], often) });
    const { client } = gateway;
    const pid = await callText(client, 'h_ok');
    const onprogress = () => {};
    const result = await client.callTool({ name, arguments: { ...args } }, undefined, { onprogress });
    expect(result.isError ?? false).toBe(false);
    expect(await callText(client, 'h_ok')).toBe(pid);
    expect(downs(gateway)).toEqual([]);
  });

  it.each([
    ['does not know ping', '--without'],
    ['leaves a ping alone', '--on'],
  ])('when it %s', async (_, flag) => {
    const log = join(tempFolder(), 'log');
    const entry = { ...hang(flag, 'ping', '--log', log), timeout: '500ms' };
    const gateway = await startStdio({ config: toml([entry], often) });
    const pid = await callText(gateway.client, 'h_ok');
    await waitFor(() => methodsIn(log).filter((method) => method === 'ping').length > 3, 15_000);
    expect(await callText(gateway.client, 'h_ok')).toBe(pid);
    expect(downs(gateway)).toEqual([]);
  });

  it('and is not checked while it answers calls', async () => {
    const log = join(tempFolder(), 'log');
    const { client } = await startStdio({ config: toml([hang('--log', log)], often) });
    for (const end = performance.now() + 2000; performance.now() < end; ) await callText(client, 'h_slow', { ms: 20 });
    // Occasionally a check falls into a pause of the machine.
    expect(methodsIn(log).filter((method) => method === 'ping').length).toBeLessThan(2);
  });

  it('and is stopped when idle: checks do not count as use and do not start it', async () => {
    const log = join(tempFolder(), 'log');
    const name = `idle-${process.pid}`;
    // It never answers a ping, so that one is nearly always open.
    const entry = { ...hang('--name', name, '--on', 'ping', '--log', log), idle_stop: '1500ms' };
    const { client } = await startStdio({ config: toml([entry], { health_interval: '50ms' }) });
    const pid = Number(await callText(client, 'h_ok'));
    const used = performance.now();
    await waitFor(() => !alive(pid));
    expect(performance.now() - used).toBeLessThan(2900);
    expect(methodsIn(log)).toContain('ping');
    await sleep(500);
    expect(running(name)).toEqual([]);
  });
});

it('health_interval is switched off by 0, for all servers or one, and can be changed by a reload', async () => {
  const folder = tempFolder();
  const logs = ['a', 'b'].map((name) => join(folder, name));
  const entries = logs.map((log, n) => ({ namespace: `s${n}`, command: server('basic', '--log', log) }));
  const pings = () => logs.map((log) => methodsIn(log).filter((method) => method === 'ping').length);
  const gateway = await startStdio({
    config: toml([entries[0]!, { ...entries[1]!, health_interval: '100ms' }], { health_interval: 0 }),
  });
  await toolNames(gateway.client);
  await waitFor(() => pings()[1]! > 2);
  expect(pings()[0]).toBe(0);
  replaceFile(gateway.cwd, toml([entries[0]!, { ...entries[1]!, health_interval: 0 }], { health_interval: '100ms' }));
  await waitFor(() => pings()[0]! > 0);
  const before = pings();
  await waitFor(() => pings()[0]! > before[0]! + 2);
  expect(pings()[1]).toBeLessThan(before[1]! + 2);
});

it('the status of a server has a history of its states, with times and reasons', async () => {
  const data = tempFolder();
  const servers = { c: serverEntry('crash'), gone: { command: 'no-such-program-anywhere' } };
  const config = configFromValue({ mcpServers: servers, data_dir: data }, { cwd: data, env: process.env });
  const gateway = createGateway(config);
  atEnd(() => gateway.close());
  await gateway.tried();
  const status = (key: string) => gateway.statuses().find((one) => one.key === key)!;
  expect(status('c').history.map(({ state }) => state)).toEqual(['starting', 'up']);
  process.kill(status('c').pid!, 'SIGKILL');
  await waitFor(() => status('c').history.length === 4);
  const { history, since, restarts, state } = status('c');
  expect(history.map((one) => `${one.state}: ${one.detail}`)).toEqual([
    'starting: ',
    'up: crash 1.0.0',
    'down: was ended by SIGKILL',
    'up: crash 1.0.0',
  ]);
  expect([state, restarts, since]).toEqual(['up', 1, history[3]!.time]);
  const times = history.map(({ time }) => Date.parse(time));
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(Math.abs(Date.now() - times[3]!)).toBeLessThan(5000);
  // A server that keeps failing the same way has been down since the first failure, which is recorded once.
  const failed = status('gone');
  expect(failed.history.map(({ state: one }) => one)).toEqual(['starting', 'down']);
  expect(failed.since).toBe(failed.history[1]!.time);
});

/** Milliseconds of CPU that a process has used. */
function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
