/** Large amounts of valid input: nothing is lost, and no memory grows without bound. */
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, it } from 'vitest';
import type { Connection } from '../support/connection.ts';
import { runDoctor } from '../support/doctor.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { callText, memoryOf, received, toml, toolNames } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const flood = (...args: (string | number)[]) => ({ namespace: 'f', command: server('flood', ...args) });

describe('stderr of a server', () => {
  it('is read but not kept: 200 MB block no call and cost no memory', async () => {
    const config = toml([flood('--stderr', 100_000_000)], { start_wait: '20s' });
    const gateway = await startStdio({ config, process: true });
    expect(await toolNames(gateway.client)).toContain('f_ok');
    expect(await callText(gateway.client, 'f_stderr', { bytes: 100_000_000 })).toBe('100000000 bytes on stderr');
    expect(await callText(gateway.client, 'f_ok')).toMatch(/^\d+$/);
    expect(memoryOf(gateway.pid)).toBeLessThan(250);
    // This output belongs to the server and does not appear in the gateway's own log.
    expect(gateway.stderr()).not.toContain('eee');
  });

  it('is quoted by the doctor, last lines only, if a server failed', async () => {
    const command = 'yes noise | head -n 1000000 >&2; echo the reason >&2; exit 1';
    const { code, findings } = await runDoctor(toml([{ namespace: 'x', command }]));
    expect(code).toBe(1);
    const finding = findings.find(({ about }) => about === 'x');
    expect(finding).toMatchObject({ level: 'warning', message: 'down: exited with code 1' });
    const lines = finding!.stderr!.split('\n');
    expect(lines.length).toBeLessThanOrEqual(20);
    expect(lines.slice(-2)).toEqual(['noise', 'the reason']);
  });
});

describe('a flood of progress', () => {
  const counts = Array.from({ length: 10_000 }, (_, n) => n + 1);
  const open = async (door: string, config: string) =>
    door === 'stdio' ? startStdio({ config }) : (await startHttp({ config })).connect();

  // The SDK client forgets a call's token with its answer and so misses the last progress. `notifications` has
  // everything.
  const progressOf = (connection: Connection) => {
    const byToken = new Map<unknown, number[]>();
    for (const { method, params } of connection.notifications) {
      const { progressToken, progress } = params as { progressToken: unknown; progress: number };
      if (method !== 'notifications/progress') continue;
      if (!byToken.has(progressToken)) byToken.set(progressToken, []);
      byToken.get(progressToken)!.push(progress);
    }
    return [...byToken.values()];
  };
  const withProgress = (client: Client, name: string, args: Record<string, unknown>) =>
    client.callTool({ name, arguments: args }, undefined, { onprogress: () => {} });

  it.each(['stdio', 'http'])('arrives complete and in order, 5,000 notifications, over %s', async (door) => {
    const connection = await open(door, toml([flood()]));
    const { content } = await withProgress(connection.client, 'f_flood', { progress: 5000 });
    expect(content).toEqual([{ type: 'text', text: 'flooded' }]);
    expect(progressOf(connection)).toEqual([counts.slice(0, 5000)]);
  });

  it.each(['stdio', 'http'])('arrives if it is written together with the answer, over %s', async (door) => {
    const connection = await open(door, toml([{ namespace: 'h', command: server('hang') }]));
    const steps = [1, 2, 3, 4, 5];
    await Promise.all(steps.map((n) => withProgress(connection.client, 'h_slow', { ms: 50, steps: n })));
    const seen = progressOf(connection).sort((one, other) => one.length - other.length);
    expect(seen).toEqual(steps.map((n) => counts.slice(0, n)));
  });
});

describe('a burst of list_changed', () => {
  it('causes one or two list requests and one notification', async () => {
    const log = join(tempFolder(), 'log');
    const changing = { namespace: 'c', command: server('changing', '--log', log) };
    const gateway = await startStdio({ config: toml([changing]) });
    const listings = () => received(log).filter(({ method }) => method === 'tools/list').length;
    await toolNames(gateway.client);
    const [listed, told] = [listings(), gateway.changes('tools')];
    await callText(gateway.client, 'c_add_tool', { name: 'new', times: 1000 });
    await waitFor(() => gateway.changes('tools') > told);
    expect(await toolNames(gateway.client)).toContain('c_new');
    // Waits in case there is a second one.
    await callText(gateway.client, 'c_add_prompt', { name: 'other' });
    await waitFor(() => gateway.changes('prompts') > 0);
    expect(gateway.changes('tools') - told).toBe(1);
    expect(listings() - listed).toBeLessThanOrEqual(2);
  });

  it('that changed nothing is not forwarded', async () => {
    const gateway = await startStdio({ config: toml([flood(), { namespace: 'c', command: server('changing') }]) });
    await toolNames(gateway.client);
    await callText(gateway.client, 'f_flood', { changed: 1000 });
    await callText(gateway.client, 'c_add_prompt', { name: 'other' });
    await waitFor(() => gateway.changes('prompts') > 0);
    expect(gateway.changes('tools')).toBe(0);
  });
});
