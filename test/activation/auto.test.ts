/** `controls = "auto"`: few tools are shown directly, more as a catalog, and many are found by a search. */
import { describe, expect, it } from 'vitest';
import { configFromValue } from '../../src/index.ts';
import { type Client, doorsOf, enter } from '../support/doors.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';

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
