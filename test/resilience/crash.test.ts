/**
 * A server that dies: its calls fail at once, its items disappear, it is restarted, and other servers are not
 * affected.
 */
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { killServer, runningServers } from '../support/in-process-server.ts';
import { alive, waitFor } from '../support/processes.ts';
import {
  call,
  callError,
  callText,
  logged,
  logOf,
  pidOf,
  timed,
  toml,
  toolNames,
  toolsToBe,
} from '../support/running-gateway.ts';
import { fixture, server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

const crash = { namespace: 'crash', command: server('crash') };
const other = { namespace: 'other', command: server('basic', '--tools', 'echo,whoami') };
const crashTools = ['crash_ok', 'crash_crash', 'crash_half'];
const otherTools = ['other_echo', 'other_whoami'];
const odd = (...args: string[]) => [process.execPath, join(import.meta.dirname, 'odd.mjs'), ...args].join(' ');

const ends: [string, string, Record<string, unknown>, string][] = [
  ['exits', 'crash_crash', { code: 3 }, 'exited with code 3'],
  ['exits without an error', 'crash_crash', { code: 0 }, 'exited with code 0'],
  ['is killed', 'crash_crash', { signal: 'SIGKILL' }, 'was ended by SIGKILL'],
  ['breaks down', 'crash_crash', { signal: 'SIGSEGV' }, 'was ended by SIGSEGV'],
  ['writes half of its answer and ends', 'crash_half', {}, 'exited with code 1'],
];

it.each(onePart(2, ends))(
  'fails the call at once when the server %s, and restarts the server',
  async (_, name, args, why) => {
    const { client } = await startStdio({ config: toml([crash, other]) });
    const before = Number(await callText(client, 'crash_ok'));
    const otherPid = await pidOf(client, 'other');
    const { value, ms } = await timed(callError(client, name, args));
    expect(value).toEqual({
      success: false,
      result: null,
      code: 'source_broken',
      message: `Server "crash" ${why} before it answered. Try again.`,
    });
    // A call that is not failed at once would end with its timeout of five minutes.
    expect(ms).toBeLessThan(10_000);
    await waitFor(async () => Number(await callText(client, 'crash_ok').catch(() => before)) !== before);
    expect(alive(before)).toBe(false);
    expect(await pidOf(client, 'other')).toBe(otherPid);
  },
);

it('removes the items of a dead server from list and catalog with one notification, and restores them with one', async () => {
  const gateway = await startStdio({ config: toml([crash, other], { active_toolsets: ['other_*', 'crash_crash'] }) });
  const { client } = gateway;
  await client.callTool({
    name: 'toolman_activate',
    arguments: { tools_on: ['crash_ok'], tools_off: ['other_echo'], resources_on: [], resources_off: [] },
  });
  const active = ['crash_ok', 'crash_crash', 'other_whoami'];
  expect(await toolNames(client)).toEqual(active);
  const told = gateway.changes('tools');
  await callError(client, 'crash_crash');
  await waitFor(() => gateway.changes('tools') === told + 1);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['toolman_activate', 'other_whoami']);
  expect(tools[0]!.description).not.toContain('crash_ok');
  expect(tools[0]!.description).toContain(
    'Missing for now, because the server is not up: crash_* (down: exited with code 1).',
  );
  expect(await callError(client, 'crash_ok')).toMatchObject({ code: 'source_unavailable' });
  await waitFor(() => gateway.changes('tools') === told + 2);
  expect(await toolNames(client)).toEqual(active);
  expect((await client.listTools()).tools[0]!.description).toContain('*crash_ok');
  expect(gateway.changes('tools')).toBe(told + 2);
});

it('sends one notification for each list that a dead server contributed to', async () => {
  const name = `parts-${process.pid}`;
  const command = server(
    'basic',
    '--name',
    name,
    '--resources',
    'note://1',
    '--templates',
    'note://{id}',
    '--prompts',
    'p',
  );
  const gateway = await startStdio({ config: toml([{ namespace: 'b', command }, other]) });
  const lists = async () => [
    await toolNames(gateway.client),
    (await gateway.client.listResources()).resources.map(({ uri }) => uri),
    (await gateway.client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate),
    (await gateway.client.listPrompts()).prompts.map((prompt) => prompt.name),
  ];
  const changes = () => (['tools', 'resources', 'prompts'] as const).map((kind) => gateway.changes(kind));
  const before = await lists();
  for (const pid of runningServers(name)) killServer(pid);
  await waitFor(() => changes().join() === '1,1,1');
  expect(await lists()).toEqual([otherTools, [], [], []]);
  await waitFor(() => changes().join() === '2,2,2');
  expect(await lists()).toEqual(before);
});

it('notifies HTTP clients, and keeps their sessions and activations', async () => {
  const gateway = await startHttp({ config: toml([crash, other], { active_toolsets: [] }) });
  const [one, two] = [await gateway.connect(), await gateway.connect()];
  const activate = (tools_on: string[]) => ({
    name: 'toolman_activate',
    arguments: { tools_on, tools_off: [], resources_on: [], resources_off: [] },
  });
  await one.client.callTool(activate(['crash_*']));
  await two.client.callTool(activate(['other_*']));
  expect(await toolNames(one.client)).toEqual(crashTools);
  const told = [one.changes('tools'), two.changes('tools')];
  await callError(one.client, 'crash_crash');
  await waitFor(() => one.changes('tools') === told[0]! + 1);
  await waitFor(() => one.changes('tools') === told[0]! + 2);
  expect(await toolNames(one.client)).toEqual(crashTools);
  expect(await toolNames(two.client)).toEqual(otherTools);
  // The tool list of every client contains the catalog, in the description of the control.
  await waitFor(() => two.changes('tools') === told[1]! + 2);
});

it('fails every running call of the dead server, and no call to another server', async () => {
  const slow = { namespace: 'slow', command: server('basic', '--tools', 'echo', '--delay', 300) };
  const hang = { namespace: 'hang', command: server('hang') };
  const { client } = await startStdio({ config: toml([slow, hang]) });
  const pid = Number(await callText(client, 'hang_ok'));
  const ours = Array.from({ length: 20 }, () => callError(client, 'hang_hang'));
  const others = Array.from({ length: 20 }, (_, n) => callText(client, 'slow_echo', { n }));
  // This is answered after the twenty calls, so they have all arrived.
  await callText(client, 'hang_cancelled');
  killServer(pid);
  const { value, ms } = await timed(Promise.all(ours));
  // A call that is not failed at once would end with its timeout of five minutes.
  expect(ms).toBeLessThan(10_000);
  for (const error of value) expect(error).toMatchObject({ code: 'source_broken' });
  expect(await Promise.all(others)).toHaveLength(20);
});

it('retries a server that fails to start, with growing pauses, until it works', async () => {
  const counter = join(tempFolder(), 'starts');
  const command = `${process.execPath} ${fixture('crash')} --crash-times ${counter} 4`;
  const config = toml([{ ...crash, command }, other]);
  const gateway = await startStdio({ config, args: ['--log-level', 'debug'] });
  await toolsToBe(gateway.client, otherTools);
  await waitFor(() => gateway.changes('tools') > 0);
  // What a client has not seen before comes last.
  expect(await toolNames(gateway.client)).toEqual([...otherTools, ...crashTools]);
  const failures = logOf(gateway).filter(({ source, message }) => source === 'crash' && message.startsWith('down'));
  expect(failures).toHaveLength(4);
  expect(failures[0]!.message).toBe('down: exited with code 1 (it said: crash: as told, at the start)');
  const times = failures.map(({ time }) => Date.parse(time));
  const pauses = times.slice(1).map((time, i) => time - times[i]!);
  // 250, 500 and 1000 ms, plus or minus a quarter, plus the time of the start itself.
  expect(pauses[0]).toBeGreaterThan(180);
  expect(pauses[1]).toBeGreaterThan(370);
  expect(pauses[2]).toBeGreaterThan(740);
  expect(pauses[2]).toBeLessThan(5000);
});

it('keeps running with a server that never comes back', async () => {
  const dead = [
    { namespace: 'dead', command: server('dead') },
    { namespace: 'missing', command: '/nowhere/at-all --flag' },
    { namespace: 'folder', command: server('basic'), cwd: 'no-such-folder' },
  ];
  const gateway = await startStdio({ config: toml([...dead, other]) });
  expect(await toolNames(gateway.client)).toEqual(otherTools);
  await logged(gateway, 'exited with code 3 (it said: dead: cannot find the configuration file dead.conf)');
  await logged(gateway, '"/nowhere/at-all" was not found; install it or give its full path');
  await logged(gateway, 'no-such-folder does not exist');
  expect(await callText(gateway.client, 'other_echo', { still: 'here' })).toBe('{"still":"here"}');
});

it.each(['deaf', 'mute'])('treats a server that runs on %s as dead', async (name) => {
  const { client } = await startStdio({ config: toml([{ namespace: 'odd', command: odd() }, other]) });
  const before = Number(await callText(client, 'odd_ok'));
  const failing = timed(callError(client, `odd_${name}`));
  // A closed pipe is only noticed when something is written to it.
  if (name === 'deaf') await waitFor(async () => (await call(client, 'odd_ok')).isError);
  const { value, ms } = await failing;
  expect(value.code).toBe('source_broken');
  // A call that is not failed at once would end with its timeout of five minutes.
  expect(ms).toBeLessThan(10_000);
  await waitFor(async () => Number(await callText(client, 'odd_ok').catch(() => before)) !== before);
  expect(alive(before)).toBe(false);
});
