/** `controls = "auto"`: few tools are shown directly, more as a catalog, and many are found by a search. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { configFromValue, type Gateway } from '../../src/index.ts';
import { runCli } from '../support/cli.ts';
import { type Client, doorsOf, enter } from '../support/doors.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { connectAs } from '../support/named-client.ts';
import { basic, open } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const doors = doorsOf('auto');

const many = (count: number, name: string) =>
  server('basic', '--name', name, '--tools', Array.from({ length: count }, (_, i) => `t${i}`).join());
const config = (servers: Record<string, number>, more = '') =>
  `controls = "auto"\n${more}\n${serversToml(Object.fromEntries(Object.entries(servers).map(([name, count]) => [name, many(count, name)])))}`;
const names = async (client: Pick<Client, 'listTools'>) => (await client.listTools()).tools.map(({ name }) => name);

describe.each(doors)('controls = "auto" over %s', (door) => {
  it('shows a few tools directly, which can be called at once', async () => {
    const { client } = await enter(door, { config: config({ a: 2, b: 1 }, 'active_toolsets = ["a_t0"]') });
    expect(await names(client)).toEqual(['a_t0', 'a_t1', 'b_t0']);
    expect(JSON.stringify(await client.callTool({ name: 'b_t0', arguments: {} }))).not.toContain('isError');
  });

  it('shows a catalog of many tools, and what is active at the start', async () => {
    const { client } = await enter(door, { config: config({ a: 15, b: 6 }, 'active_toolsets = ["b_t1"]') });
    expect(await names(client)).toEqual(['toolman_activate', 'b_t1']);
    const lists = { tools_on: ['a_t3'], tools_off: [], resources_on: [], resources_off: [] };
    await client.callTool({ name: 'toolman_activate', arguments: lists });
    expect(await names(client)).toEqual(['toolman_activate', 'b_t1', 'a_t3']);
  });

  it('lets a model search very many tools, and shows what is pinned', async () => {
    const { client } = await enter(door, { config: config({ a: 50, b: 11 }, 'active_toolsets = ["b_t1"]') });
    expect(await names(client)).toEqual(['search_tools', 'describe_tools', 'call_tool', 'b_t1']);
    const found = await client.callTool({ name: 'search_tools', arguments: { queries: ['a_t7'], limit: 1 } });
    expect(JSON.stringify(found)).toContain('a_t7(');
    await client.callTool({ name: 'describe_tools', arguments: { names: ['a_t7'], activate: true } });
    expect(await names(client)).toEqual(['search_tools', 'describe_tools', 'call_tool', 'b_t1', 'a_t7']);
    expect(JSON.stringify(await client.callTool({ name: 'call_tool', arguments: { name: 'a_t9' } }))).not.toContain(
      'isError',
    );
  });
});

it('counts what a policy leaves, so that nothing hidden can be inferred, and toolsets of an address narrow as always', async () => {
  const policy = `
http.trust_agent_header = true
[toolsets.two]
tools = ["a.t1", "a.t2"]
[agent_policies.guest]
allowed_servers = ["b"]
[default_policy]
allow_unknown_tools = true
`;
  const gateway = await startHttp({ config: config({ a: 25, b: 2 }, policy) });
  const guest = { 'x-agent-id': 'guest' };
  expect(await names((await gateway.connect({ headers: guest })).client)).toEqual(['b_t0', 'b_t1']);
  expect(await names((await gateway.connectModern(guest)).client)).toEqual(['b_t0', 'b_t1']);
  expect(await names((await gateway.connect()).client)).toEqual(['toolman_activate']);
  const { client } = await gateway.connect({ path: '/mcp/t/two' });
  expect((await names(client)).filter((name) => name !== 'toolman_activate')).toEqual(['a_t1', 'a_t2']);
});

describe('where nothing is configured', () => {
  const LISTS = { tools_off: [], resources_on: [], resources_off: [] };
  const listed = async (files: Record<string, string>) => names((await startStdio({ files })).client);
  const of = (count: number, namespace = 'a') => serversToml({ [namespace]: many(count, 'a') });

  it('a tools.toml has one tool of its own while a catalog fits, and is searched above that', async () => {
    expect(await listed({ 'tools.toml': of(3) })).toEqual(['toolman_activate']);
    expect(await listed({ 'tools.toml': of(60) })).toEqual(['toolman_activate']);
    expect(await listed({ 'tools.toml': of(61) })).toEqual(['search_tools', 'describe_tools', 'call_tool']);
  });

  it('a tools.toml that chooses its tools keeps that one tool, however many there are', async () => {
    expect(await listed({ 'tools.toml': `active_toolsets = []\n${of(61)}` })).toEqual(['toolman_activate']);
    expect(await listed({ 'tools.toml': `active_toolsets = ["a_t7"]\n${of(61)}` })).toEqual([
      'toolman_activate',
      'a_t7',
    ]);
    expect(await listed({ 'tools.toml': `${of(61)}\n[toolsets.few]\ntools = ["a.t1"]\n` })).toEqual([
      'toolman_activate',
    ]);
  });

  it('other files keep their defaults', async () => {
    expect(await listed({ 'toolgate.toml': of(61) })).toHaveLength(61);
    expect(await listed({ '.mcp.json': JSON.stringify({ mcpServers: { a: serverEntry('basic') } }) })).toContain(
      'equip-toolset',
    );
  });

  it('a server without a namespace may have the names of tools that search, if nothing is searched', async () => {
    const own = serversToml({ '': server('basic', '--tools', 'search_tools,call_tool') });
    const { client } = await startStdio({ files: { 'tools.toml': own } });
    await client.callTool({ name: 'toolman_activate', arguments: { ...LISTS, tools_on: ['search_tools'] } });
    expect(await names(client)).toEqual(['toolman_activate', 'search_tools']);
  });

  it('the first server that a command adds is shown by its size', async () => {
    const cwd = tempFolder();
    const { command, args } = serverEntry('basic', '--tools', 'x,y');
    const added = await runCli(['add', 'a', '--', command, ...args], { cwd });
    expect(added.code).toBe(0);
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8')).toContain('controls = "auto"');
    await runCli(['add', 'b', '--', command, ...args], { cwd });
    expect(readFileSync(join(cwd, 'tools.toml'), 'utf8').match(/controls/g)).toHaveLength(1);
    expect(await names((await startStdio({ cwd })).client)).toEqual(['a_x', 'a_y', 'b_x', 'b_y']);
  });
});

describe('while servers offer more and more tools', () => {
  const grow = async (gateway: Gateway, client: Client, count: number) => {
    const { tools } = gateway.firstList();
    for (let i = 0; i < count; i++) await client.callTool({ name: 'c_add_tool', arguments: { name: `more${i}` } });
    await waitFor(() => gateway.firstList().tools >= tools + count);
  };
  const text = async (client: Client, name: string, args: object) =>
    JSON.stringify(await client.callTool({ name, arguments: args as Record<string, unknown> }));
  const openWith = async (tools: number) => {
    const servers = { c: serverEntry('changing'), ...(tools > 0 && { b: basic('--tools', list(tools)) }) };
    return (await open(servers, { controls: 'auto' })).gateway;
  };
  const list = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`).join();

  it('a client that never lists again goes on with what it has listed', async () => {
    const gateway = await openWith(0);
    const codex = (await connectAs(gateway, 'codex-mcp-client')) as Client;
    const first = await names(codex);
    expect(first).toContain('c_first');
    await grow(gateway, codex, 20);
    expect(await text(codex, 'c_first', {})).not.toContain('isError');
    const another = (await connectAs(gateway, 'codex-mcp-client')) as Client;
    expect(await names(another)).toContain('toolman_call');
  });

  it('what an unknown client has seen stays active, and the list that it had is the beginning of the new one', async () => {
    const gateway = await openWith(0);
    const client = (await connectAs(gateway, 'any')) as Client;
    const before = await names(client);
    await grow(gateway, client, 20);
    expect(await text(client, 'c_first', {})).not.toContain('isError');
    const after = await names(client);
    expect(after).toContain('toolman_activate');
    expect(after.slice(0, before.length)).toEqual(before);
    expect(await text(client, 'c_more3', {})).toContain('toolman_activate');
  });

  it('the tools of the catalog still work for a client that shows them, when others search', async () => {
    const gateway = await openWith(40);
    const client = (await connectAs(gateway, 'any')) as Client;
    expect(await names(client)).toEqual(['toolman_activate']);
    const on = { tools_off: [], resources_on: [], resources_off: [] };
    await text(client, 'toolman_activate', { ...on, tools_on: ['c_add_tool'] });
    await grow(gateway, client, 70);
    expect(await text(client, 'toolman_activate', { ...on, tools_on: ['b_t3'] })).toContain('Activated 1 item');
    expect(await names(client)).toEqual(expect.arrayContaining(['search_tools', 'c_add_tool', 'b_t3']));
    expect(await names(client)).not.toContain('toolman_activate');
    expect(await text(client, 'toolman_call', { name: 'b_t4', arguments: {} })).not.toContain('isError');
  });
});

it('follows a new configuration with one notification', async () => {
  const { client, cwd, changes } = await startStdio({ config: config({ a: 3 }) });
  expect(await names(client)).toEqual(['a_t0', 'a_t1', 'a_t2']);
  replaceFile(cwd, config({ a: 3, b: 40 }));
  await waitFor(async () => (await names(client)).includes('toolman_activate'));
  expect(await names(client)).toEqual(['toolman_activate']);
  const before = changes('tools');
  expect(before).toBeGreaterThan(0);
  replaceFile(cwd, config({ a: 3 }));
  await waitFor(async () => (await names(client)).length === 3);
  await waitFor(() => changes('tools') === before + 1);
});

it('can be listed with the controls of approvals, but not with another way to show tools', () => {
  const read = (controls: unknown) => configFromValue({ controls }, { cwd: '/', env: {} }).controls;
  expect(read('auto')).toEqual(['auto']);
  expect(read(['auto', 'request'])).toEqual(['auto', 'request']);
  expect(() => read(['auto', 'equip'])).toThrow(
    /"auto" chooses what to show by itself\. Leave it out, or leave "equip"/,
  );
});
