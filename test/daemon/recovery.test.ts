/** A window goes on when its gateway ends: killed, stopped or replaced. */
import { join } from 'node:path';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, it } from 'vitest';
import { arrived } from '../support/in-flight.ts';
import { alive, running, waitFor } from '../support/processes.ts';
import { call, callText, pidOf, replaceFile, toolNames } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { openProject } from '../support/windows.ts';

useProcesses('servers');

const MARK = `recovery-${process.pid}`;
const all = (log = join(tempFolder(), 'log')) =>
  serversToml({ a: server('basic', '--name', MARK), c: server('changing'), h: server('hang', '--log', log) });
const config = (more = '', log?: string) => `active_toolsets = ["*"]\n${more}\n${all(log)}`;

describe('ten windows whose gateway is killed during calls', () => {
  it('lose only these calls, each with a clear error, and go on with one new gateway', async () => {
    const log = join(tempFolder(), 'log');
    const project = openProject(config('', log));
    const windows = await Promise.all(Array.from({ length: 10 }, () => project.window()));
    const before = await pidOf(windows[0]!.client, 'a');
    const pid = await project.pid();
    const calls = windows.map(({ client }) => call(client, 'h_hang', { tag: 'x' }));
    await arrived(log, '"name":"hang"', 10);
    process.kill(pid, 'SIGKILL');
    for (const lost of await Promise.all(calls)) {
      expect(lost.isError).toBe(true);
      expect(JSON.parse(lost.text)).toMatchObject({ code: 'source_unavailable' });
      expect(lost.text).toContain('may or may not have been carried out');
    }
    // Sent while there is no gateway yet.
    const next = windows.map(({ client }, i) => callText(client, 'a_echo', { text: `after ${i}` }));
    expect((await Promise.all(next)).map((text, i) => text.includes(`after ${i}`))).not.toContain(false);
    const servers = await Promise.all(windows.map(({ client }) => pidOf(client, 'a')));
    expect(new Set(servers).size).toBe(1);
    expect(servers[0]).not.toBe(before);
    await waitFor(() => running(MARK).length === 1 && !alive(pid));
    expect(await project.gateways()).toMatchObject([{ windows: 10 }]);
    // The lists are the same, so nobody was told otherwise.
    expect(windows.map(({ changes }) => changes('tools'))).toEqual(windows.map(() => 0));
  });
});

describe('after the gateway was killed, a window', () => {
  it('has the session that it had: selection, log level, subscriptions', async () => {
    const project = openProject(`controls = ["activate"]\nactive_toolsets = ["a_*", "c_*"]\n${all()}`);
    const { client, notifications, changes } = await project.window();
    const other = await project.window();
    const off = { tools_on: ['h_hang'], tools_off: ['a_count'], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: off });
    const tools = await toolNames(client);
    const others = await toolNames(other.client);
    expect(tools).not.toEqual(others);
    await client.setLoggingLevel('error');
    const { resources } = await client.listResources();
    const uri = resources.find(({ name }) => name !== undefined)!.uri;
    await client.subscribeResource({ uri });
    const told = changes('tools');
    process.kill(await project.pid(), 'SIGKILL');
    expect(await toolNames(client)).toEqual(tools);
    expect(await toolNames(other.client)).toEqual(others);
    await callText(client, 'c_touch_resource', { uri: uri.replace(/^c_/, '') });
    await waitFor(() => notifications.some(({ method }) => method === 'notifications/resources/updated'));
    expect(changes('tools')).toBe(told);
  });

  it('is told of a list that differs now', async () => {
    const project = openProject(config('watch = false'));
    const { client, changes } = await project.window();
    expect(await toolNames(client)).toContain('a_echo');
    replaceFile(project.cwd, `active_toolsets = ["*"]\n${serversToml({ b: server('basic') })}`);
    process.kill(await project.pid(), 'SIGKILL');
    await waitFor(() => changes('tools') > 0);
    expect(await toolNames(client)).toContain('b_echo');
  });

  it('has its questions withdrawn, and answers of the client go nowhere else', async () => {
    const project = openProject(`active_toolsets = ["*"]\n${serversToml({ q: server('asking') })}`);
    const { client, notifications } = await project.window({ capabilities: { elicitation: {} } });
    let asked = 0;
    let answer = () => {};
    client.setRequestHandler(ElicitRequestSchema, async () => {
      if (asked++ > 0) return { action: 'accept', content: { word: 'second' } };
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return { action: 'accept', content: { word: 'first' } };
    });
    const lost = call(client, 'q_ask', { message: 'one' });
    await waitFor(() => asked === 1);
    process.kill(await project.pid(), 'SIGKILL');
    expect((await lost).isError).toBe(true);
    await waitFor(() => notifications.some(({ method }) => method === 'notifications/cancelled'));
    const again = call(client, 'q_ask', { message: 'two' });
    answer();
    expect((await again).text).toContain('second');
  });

  it('of a client without a session goes on listening', async () => {
    const log = join(tempFolder(), 'log');
    const project = openProject(config('watch = false', log));
    const window = await project.modernWindow();
    const lost = window.client.callTool({ name: 'h_hang', arguments: { tag: 'y' } });
    await window.client.listTools();
    await arrived(log, '"name":"hang"');
    const pid = await project.pid();
    replaceFile(project.cwd, `active_toolsets = ["*"]\n${serversToml({ b: server('basic') })}`);
    process.kill(pid, 'SIGKILL');
    expect(await lost).toMatchObject({ isError: true });
    await waitFor(() => window.changes('tools') > 0);
    const { tools } = await window.client.listTools();
    expect(tools.map(({ name }) => name)).toContain('b_echo');
    expect(window.notifications.filter(({ method }) => method.endsWith('/acknowledged')).length).toBeLessThan(2);
  });

  it('says why no gateway can be started, and goes on when one can', async () => {
    const project = openProject(config('watch = false'));
    const { client } = await project.window();
    await callText(client, 'a_echo', { text: 'x' });
    replaceFile(project.cwd, 'servers = 5');
    const pid = await project.pid();
    process.kill(pid, 'SIGKILL');
    await waitFor(() => !alive(pid));
    // A call that is written before the end is noticed fails with another message.
    const failed = await waitFor(async () => {
      const answer = await call(client, 'a_echo', { text: 'x' });
      return answer.text.includes('tools.toml') && answer;
    });
    expect(failed.isError).toBe(true);
    replaceFile(project.cwd, config());
    expect(await callText(client, 'a_echo', { text: 'again' })).toContain('again');
  });
});

describe('when the gateway is stopped, a window', () => {
  it('gets the answers of running calls, and starts another gateway when it needs one', async () => {
    const log = join(tempFolder(), 'log');
    const project = openProject(config('', log));
    const { client } = await project.window();
    await callText(client, 'a_echo', { text: 'x' });
    const slow = call(client, 'h_slow', { ms: 1_000, steps: 1 });
    await arrived(log, '"name":"slow"');
    await project.daemon('stop');
    expect((await slow).isError).toBe(false);
    expect(await project.gateways()).toEqual([]);
    expect(await callText(client, 'a_echo', { text: 'again' })).toContain('again');
    expect(await project.gateways()).toMatchObject([{ windows: 1 }]);
  });
});

describe('servers with share = "session"', () => {
  it('have a process for each window, which ends with it', async () => {
    const mark = `${MARK}-own`;
    const own = `${serversToml({ a: server('basic', '--name', mark) })}share = "session"\n`;
    const project = openProject(`active_toolsets = ["*"]\n${own}`);
    const [first, second] = [await project.window(), await project.window()];
    expect(await pidOf(first.client, 'a')).not.toBe(await pidOf(second.client, 'a'));
    expect(await project.gateways()).toMatchObject([{ windows: 2 }]);
    const pid = await pidOf(second.client, 'a');
    await second.stop();
    await waitFor(() => !alive(pid));
    expect(await callText(first.client, 'a_echo', { text: 'x' })).toContain('x');
  });
});
