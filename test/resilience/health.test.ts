/** Health checks: a server that hangs is detected without a call and restarted. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { isServerRunning } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import {
  call,
  callError,
  callText,
  logged,
  pidOf,
  replaceFile,
  toml,
  toolNames,
  toolsToBe,
} from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { asProcess, DOWN, downs, halt, hang, methodsIn, often, other, otherTools } from './health.ts';

const hangTools = ['ok', 'hang', 'freeze', 'block', 'cancelled', 'slow'].map((name) => `h_${name}`);

describe('a server that hangs', () => {
  it.each([
    ['reads on and says nothing', 'freeze'],
    ['has stopped altogether', 'halt'],
  ])('and %s is restarted: its tools disappear with one notification and return with one', async (_, how) => {
    const entry = how === 'halt' ? asProcess(hang()) : hang();
    const gateway = await startStdio({ config: toml([entry, other], often) });
    const { client } = gateway;
    const before = Number(await callText(client, 'h_ok'));
    expect(await toolNames(client)).toEqual([...hangTools, ...otherTools]);
    const told = gateway.changes('tools');
    if (how === 'freeze') await callText(client, 'h_freeze');
    else halt(before);
    await logged(gateway, DOWN, 10_000);
    await waitFor(() => gateway.changes('tools') === told + 2);
    expect(await toolNames(client)).toEqual([...hangTools, ...otherTools]);
    // The old and the new process never run at the same time.
    expect(isServerRunning(before)).toBe(false);
    expect(Number(await callText(client, 'h_ok'))).not.toBe(before);
    expect(gateway.changes('tools')).toBe(told + 2);
    expect(downs(gateway)).toHaveLength(1);
  });

  it('is detected if it is modern', async () => {
    const command = server('modern', '--era', 'modern');
    const entry = asProcess({ namespace: 'm', command, timeout: '1s' });
    const gateway = await startStdio({ config: toml([entry], often) });
    const before = Number(await callText(gateway.client, 'm_pid'));
    // It answers the health checks for a while: several pass in this time.
    await sleep(1000);
    expect(downs(gateway)).toEqual([]);
    halt(before);
    await logged(gateway, DOWN, 10_000);
    const again = async () => Number((await call(gateway.client, 'm_pid').catch(() => null))?.text);
    await waitFor(async () => ![before, 0, Number.NaN].includes(await again()));
  });

  it('fails calls during the restart with a clear error', async () => {
    const log = join(tempFolder(), 'log');
    const { client } = await startStdio({ config: toml([{ ...hang('--log', log), timeout: '3s' }], often) });
    await callText(client, 'h_freeze');
    // The second check uses a request that the server has answered before.
    const lists = () => methodsIn(log).filter((method) => method === 'tools/list').length;
    await waitFor(() => lists() === 2);
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
    const gateway = await startStdio({ config: toml([asProcess(hang())], often) });
    const before = Number(await callText(gateway.client, 'h_ok'));
    expect(await callError(gateway.client, 'h_block', { ms: 60_000 })).toMatchObject({ code: 'source_timeout' });
    await logged(gateway, DOWN, 10_000);
    await waitFor(() => !isServerRunning(before));
    await toolsToBe(gateway.client, hangTools, 10_000);
  });

  it('is detected on a connection with share = "session"', async () => {
    const entry = { namespace: 'b', command: server('basic', '--tools', 'whoami'), share: 'session', timeout: '1s' };
    const gateway = await startHttp({ config: toml([asProcess(entry)], often), args: ['--log-level', 'info'] });
    const [{ client: one }, { client: two }] = [await gateway.connect(), await gateway.connect()];
    const [first, second] = [await pidOf(one, 'b'), await pidOf(two, 'b')];
    halt(first);
    await logged(gateway, 'the connection of one client has ended: does not answer', 10_000);
    const third = await pidOf(one, 'b');
    expect([first, second]).not.toContain(third);
    expect(await pidOf(two, 'b')).toBe(second);
    await waitFor(() => !isServerRunning(first));
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
