/** Health checks do not disturb a server that works: it is not restarted, and it is stopped when idle. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { isServerRunning, runningServers } from '../support/in-process-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';
import { some } from '../support/wide.ts';
import { downs, hang, methodsIn, often } from './health.ts';

describe('a working server is not restarted by health checks', () => {
  const working: [string, object, string, string][] = [
    ['reports progress', { ms: 2500, steps: 25 }, '1s', 'h_slow'],
    ['takes long over a call', { ms: 2000 }, '10s', 'h_slow'],
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
    // The question after a ping that was left alone must be answered in this time, on a busy machine too.
    const entry = { ...hang(flag, 'ping', '--log', log), timeout: '2s' };
    const gateway = await startStdio({ config: toml([entry], often) });
    const pid = await callText(gateway.client, 'h_ok');
    await waitFor(() => methodsIn(log).filter((method) => method === 'ping').length > 2);
    expect(await callText(gateway.client, 'h_ok')).toBe(pid);
    expect(downs(gateway)).toEqual([]);
  });

  it('and is not checked while it answers calls', async () => {
    const log = join(tempFolder(), 'log');
    const { client } = await startStdio({ config: toml([hang('--log', log)], often) });
    for (const end = performance.now() + 2000; performance.now() < end; ) await callText(client, 'h_slow', { ms: 20 });
    // Occasionally a check falls into a pause of the machine. Without calls there would be ten.
    expect(methodsIn(log).filter((method) => method === 'ping').length).toBeLessThan(5);
  });

  it('and is stopped when idle: checks do not count as use and do not start it', async () => {
    const log = join(tempFolder(), 'log');
    const name = `idle-${process.pid}`;
    // It never answers a ping, so that one is nearly always open.
    const entry = { ...hang('--name', name, '--on', 'ping', '--log', log), idle_stop: '500ms' };
    const { client } = await startStdio({ config: toml([entry], { health_interval: '50ms' }) });
    const pid = Number(await callText(client, 'h_ok'));
    // If the checks counted as use, it would never be stopped.
    await waitFor(() => !isServerRunning(pid));
    expect(methodsIn(log)).toContain('ping');
    // The time of several checks.
    await sleep(300);
    expect(runningServers(name)).toEqual([]);
  });
});
