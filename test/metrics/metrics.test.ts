/** GET /metrics: valid format, correct values, and access control. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { openLocalDoor } from '../../src/index.ts';
import type { MetricsRegistry } from '../../src/observe/metrics.ts';
import { clientOf } from '../support/client.ts';
import { connectHttp, connectSse } from '../support/connection.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { connectModernHttp } from '../support/modern.ts';
import { isMissing } from '../support/needs.ts';
import { basic, hanging, open, openPipes } from '../support/open-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { exchange } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { writeFiles } from '../support/temp.ts';
import { packageVersion } from '../support/version.ts';

describe('GET /metrics', () => {
  it('returns the text format with every metric', async () => {
    const { origin, url } = await open({ a: basic(), gone: { command: process.execPath, args: ['-e', ''] } });
    const { client } = await connectHttp(url);
    for (let i = 0; i < 3; i++) await client.callTool({ name: 'a_echo', arguments: {} });
    await client.callTool({ name: 'a_raw', arguments: { json: '{"content":[],"isError":true}' } });
    const response = await fetch(`${origin}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const families = readExposition(await response.text());
    const value = (family: string, labels: object = {}, name = family) => {
      const found = families.get(family)?.samples.filter((sample) => {
        return sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text);
      });
      expect(found, `${name} ${JSON.stringify(labels)}`).toHaveLength(1);
      return found![0]!.value;
    };
    const echo = { server: 'a', kind: 'tool', tool: 'echo' };
    expect(value('toolgate_calls_total', { ...echo, outcome: 'ok' })).toBe(3);
    expect(value('toolgate_calls_total', { ...echo, outcome: 'timeout' })).toBe(0);
    expect(value('toolgate_calls_total', { server: 'a', tool: 'raw', outcome: 'tool_error' })).toBe(1);
    const duration = 'toolgate_call_duration_seconds';
    expect(value(duration, echo, `${duration}_count`)).toBe(3);
    expect(value(duration, echo, `${duration}_sum`)).toBeGreaterThan(0);
    expect(value(duration, { ...echo, le: '8.192' }, `${duration}_bucket`)).toBe(3);
    expect(value('toolgate_sessions', { transport: 'http', era: 'legacy' })).toBe(1);
    expect(value('toolgate_sessions', { transport: 'http', era: 'modern' })).toBe(0);
    expect(value('toolgate_calls_in_flight')).toBe(0);
    expect(value('toolgate_server_up', { server: 'a' })).toBe(1);
    expect(value('toolgate_server_up', { server: 'gone' })).toBe(0);
    expect(value('toolgate_server_restarts_total', { server: 'a' })).toBe(0);
    expect(value('toolgate_clients_cut_total')).toBe(0);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e6);
    expect(value('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(value('process_start_time_seconds')).toBeGreaterThan(1.7e9);
    expect(value('nodejs_eventloop_active_seconds_total')).toBeGreaterThanOrEqual(0);
  });

  // Prometheus' own checker. It also knows the naming conventions.
  it.skipIf(isMissing('promtool'))('passes promtool', async () => {
    const { origin, url } = await open({ a: basic() });
    const { client } = await connectHttp(url);
    await client.callTool({ name: 'a_echo', arguments: {} });
    const text = await (await fetch(`${origin}/metrics`)).text();
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });

  it('escapes names, and never contains arguments or results', async () => {
    const name = 'x://"quoted"\\back\nline';
    const { origin, url, gateway } = await open({ a: basic('--resources', name, '--tools', 'echo') });
    const { client } = await connectHttp(url);
    await client.readResource({ uri: name });
    await client.callTool({ name: 'a_echo', arguments: { password: 'hunter2-secret' } });
    const text = await (await fetch(`${origin}/metrics`)).text();
    const calls = readExposition(text).get('toolgate_calls_total')!.samples;
    expect(calls.map(({ labels }) => labels.tool)).toContain(name);
    const json = await (await fetch(`${origin}/metrics`, { headers: { accept: 'application/json' } })).text();
    expect(JSON.parse(json)).toEqual({
      version: expect.any(String),
      calls: JSON.parse(JSON.stringify(gateway.metrics.entries())) as unknown,
      agents: JSON.parse(JSON.stringify(gateway.metrics.agents())) as unknown,
    });
    for (const said of [text, json]) expect(said).not.toMatch(/hunter2|password/);
  });

  it('counts restarts of a server', async () => {
    const { origin, gateway } = await open({ a: basic() });
    const read = async () => {
      const families = readExposition(await (await fetch(`${origin}/metrics`)).text());
      const [up, restarts] = ['toolgate_server_up', 'toolgate_server_restarts_total'].map(
        (name) => families.get(name)!.samples[0]!.value,
      );
      return { up, restarts };
    };
    killServer(gateway.statuses()[0]!.pid!);
    await waitFor(async () => (await read()).up === 0);
    await waitFor(async () => (await read()).up === 1);
    expect(await read()).toEqual({ up: 1, restarts: 1 });
  });

  it('accepts no other method', async () => {
    const { origin } = await open({});
    const response = await fetch(`${origin}/metrics`, { method: 'POST', body: '{}' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
  });

  it('requires the token if one is configured', async () => {
    const { origin } = await open({ a: basic() }, {}, 'a-token');
    const ask = (authorization: string) => fetch(`${origin}/metrics`, { headers: { authorization } });
    const refused = await fetch(`${origin}/metrics`);
    expect(refused.status).toBe(401);
    expect(await refused.text()).not.toContain('toolgate_server_up');
    expect((await ask('Bearer another')).status).toBe(401);
    expect((await ask('Bearer a-token')).status).toBe(200);
  });

  it('refuses unknown hosts and origins', async () => {
    const { origin } = await open({});
    const get = (...lines: string[]) =>
      exchange(origin, ['GET /metrics HTTP/1.1', ...lines, 'Connection: close', '', ''].join('\r\n'));
    expect((await get('Host: localhost')).status).toBe(200);
    expect((await get('Host: evil.example')).status).toBe(403);
    expect((await get('Host: localhost', 'Origin: http://evil.example')).status).toBe(403);
  });
});

describe('metrics that are not per item', () => {
  const series = async (origin: string, family: string, token?: string) => {
    const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
    const text = await (await fetch(`${origin}/metrics`, { headers })).text();
    const { samples } = readExposition(text).get(family)!;
    return samples.map(({ labels, value }) => [...Object.values(labels), value].join(' '));
  };
  const counted = (all: readonly string[]) => all.filter((one) => !one.endsWith(' 0'));

  it('count calls per agent', async () => {
    const { origin, url, gateway } = await open({ a: basic(), slow: hanging });
    const { client } = await connectHttp(url);
    const door = openLocalDoor(gateway);
    await client.callTool({ name: 'a_echo', arguments: {} });
    await client.callTool({ name: 'a_nowhere', arguments: {} });
    for (let i = 0; i < 2; i++) await door.callTool('a_echo', { i });
    await door.callTool('a_raw', { json: '{"content":[],"isError":true}' });
    const abort = new AbortController();
    const hung = door.callTool('slow_hang', {}, { signal: abort.signal }).catch(() => {});
    const rows = ['anonymous ok 1', 'local ok 2', 'local tool_error 1'];
    expect(counted(await series(origin, 'toolgate_agent_calls_total'))).toEqual(rows);
    expect(counted(await series(origin, 'toolgate_agent_calls_refused_total'))).toEqual(['anonymous 1']);
    expect(counted(await series(origin, 'toolgate_agent_calls_in_flight'))).toEqual(['local 1']);
    abort.abort();
    await hung;
    expect(gateway.metrics.agents().map(({ agent, calls, refused }) => [agent, calls, refused])).toEqual([
      ['anonymous', 1, 1],
      ['local', 4, 0],
    ]);
    const sizes = await series(origin, 'toolgate_response_bytes_total');
    expect(sizes).toContain('a tool raw 29');
    expect(await series(origin, 'toolgate_agent_response_bytes_total')).toHaveLength(2);
  });

  it('are bounded: beyond two hundred agents, calls are counted together', async () => {
    const { gateway } = await open({ a: basic() });
    const join = (agent: string) => gateway.join(clientOf(agent));
    const callers = Array.from({ length: 203 }, (_, i) => join(`agent-${i}`));
    const registry = gateway.metrics as MetricsRegistry;
    for (const { counter } of [...callers, join('agent-7')]) registry.refuse(counter, 'internal');
    const agents = gateway.metrics.agents();
    expect(agents).toHaveLength(201);
    expect(agents.at(-1)).toMatchObject({ agent: '', refused: 3 });
    expect(agents[7]).toMatchObject({ agent: 'agent-7', refused: 2 });
  });

  it('count refused calls by reason', async () => {
    const { origin, url } = await open({ a: basic() }, { controls: ['activate'], active_toolsets: ['a_echo'] });
    const { client } = await connectHttp(url);
    await client.callTool({ name: 'a_nowhere', arguments: {} });
    for (let i = 0; i < 2; i++) await client.callTool({ name: 'a_raw', arguments: {} });
    const refused = (await series(origin, 'toolgate_calls_refused_total')).sort();
    expect(refused).toEqual(['item_inactive 2', 'item_unknown 1']);
  });

  it('count the tools of Toolgate itself', async () => {
    const { origin, url } = await open({ a: basic() }, { controls: ['activate'], active_toolsets: ['a_echo'] });
    const { client } = await connectHttp(url);
    await client.callTool({
      name: 'toolman_activate',
      arguments: { tools_on: ['a_raw'], tools_off: [], resources_on: [], resources_off: [] },
    });
    await client.callTool({ name: 'toolman_activate', arguments: { names: 7 } }).catch(() => {});
    const own = counted(await series(origin, 'toolgate_calls_total')).filter((one) => one.startsWith('toolgate '));
    expect(own).toEqual(['toolgate tool toolman_activate ok 1', 'toolgate tool toolman_activate failed 1']);
    expect(await series(origin, 'toolgate_calls_in_flight')).toEqual(['0']);
  });

  it('count refused HTTP requests by reason', async () => {
    const { origin } = await open({ a: basic() }, {}, 'a-token');
    const tokens = ['wrong', 'wrong again', ''];
    for (const token of tokens) await fetch(`${origin}/mcp`, { headers: { authorization: `Bearer ${token}` } });
    await exchange(origin, 'GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n');
    const away = await series(origin, 'toolgate_http_refused_total', 'a-token');
    expect(away).toEqual(['unauthorized 3', 'forbidden 1']);
    expect(JSON.stringify(away)).not.toContain('wrong');
  });

  it('show sessions and open HTTP streams', async () => {
    const { origin, url, gateway } = await open({ a: basic() });
    const clients = [await connectHttp(url), await connectHttp(url)];
    await connectModernHttp(url);
    await connectSse(`${origin}/sse`);
    await openPipes(gateway, 'legacy');
    openLocalDoor(gateway);
    const now = async () => [
      ...counted(await series(origin, 'toolgate_sessions')),
      ...(await series(origin, 'toolgate_http_streams')),
    ];
    expect(await now()).toEqual(['http legacy 2', 'http modern 1', 'sse legacy 1', 'stdio legacy 1', '4']);
    await clients[0]!.transport.terminateSession();
    await clients[0]!.client.close();
    await waitFor(async () => (await now()).at(-1) === '3');
    expect((await now())[0]).toBe('http legacy 1');
  });

  it('show the catalog items, its version and configuration reloads', async () => {
    const gateway = await startHttp({ config: `controls = []\n${serversToml({ a: server('basic') })}` });
    const { origin, cwd } = gateway;
    expect(await series(origin, 'toolgate_catalog_items')).toEqual(['tool 4', 'resource 0', 'template 0', 'prompt 0']);
    const [before] = await series(origin, 'toolgate_catalog_version');
    writeFiles(cwd, { 'tools.toml': 'controls = [' });
    await waitFor(async () => (await series(origin, 'toolgate_config_reloads_total'))[1] === 'refused 1');
    writeFiles(cwd, { 'tools.toml': `controls = []\n${serversToml({ b: server('basic', '--tools', 'x') })}` });
    await waitFor(async () => (await series(origin, 'toolgate_config_reloads_total'))[0] === 'ok 1');
    await waitFor(async () => (await series(origin, 'toolgate_catalog_items'))[0] === 'tool 1');
    expect(Number((await series(origin, 'toolgate_catalog_version'))[0])).toBeGreaterThan(Number(before));
    expect(await series(origin, 'toolgate_build_info')).toEqual([`${packageVersion} ${process.version} 1`]);
  });

  it('show the states of servers and the outcomes of health checks', async () => {
    const watched = { ...basic(), health_interval: '100ms' };
    const { origin } = await open({ a: watched, gone: { command: process.execPath, args: ['-e', ''] } });
    expect(counted(await series(origin, 'toolgate_server_state'))).toEqual(['a up 1', 'gone down 1']);
    await waitFor(async () => counted(await series(origin, 'toolgate_server_health_checks_total')).length > 0);
    expect(await series(origin, 'toolgate_server_health_checks_total')).toEqual([
      expect.stringMatching(/^a ok [1-9]/),
      'a missed 0',
      'gone ok 0',
      'gone missed 0',
    ]);
  });
});

describe('the test parser for the exposition format', () => {
  it.each([
    ['no end', '# HELP a b\n# TYPE a counter\na 1'],
    ['no help', '# TYPE a counter\na 1\n'],
    ['no type', 'a 1\n'],
    ['a stranger', '# HELP a b\n# TYPE a counter\nb 1\n'],
    ['a quote', '# HELP a b\n# TYPE a counter\na{b="""} 1\n'],
    ['a bad escape', '# HELP a b\n# TYPE a counter\na{b="\\t"} 1\n'],
    ['no number', '# HELP a b\n# TYPE a counter\na x\n'],
    ['the same twice', '# HELP a b\n# TYPE a counter\na 1\na 1\n'],
    ['no +Inf', '# HELP a b\n# TYPE a histogram\na_bucket{le="1"} 1\na_sum 1\na_count 1\n'],
  ])('refuses %s', (_, text) => {
    expect(() => readExposition(text)).toThrow();
  });
});
