/** Audit records: every call, denial and administrative action, at every door and in both eras. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { auditOf, isAdmin, isCall, isDenial, pure, readLines, waitForLines } from '../support/audit-records.ts';
import { runCli } from '../support/cli.ts';
import { connectSse } from '../support/connection.ts';
import { type HttpGateway, startHttp, startModernStdio, startStdio } from '../support/gateway.ts';
import { arrived } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const ON = '[audit]\nenabled = true\n';
const items = server('basic', '--resources', 'doc://a', '--templates', 'doc://by/{id}', '--prompts', 'p');
const config = `active_toolsets = ["*"]\n${serversToml({ a: items })}`;

describe('the audit record of a call', () => {
  it('is one line with the same keys in the same order, over HTTP', async () => {
    const gateway = await startHttp({ config });
    const { client } = await gateway.connect();
    await client.callTool({ name: 'a_echo', arguments: { secret: 'not written' } });
    const [line] = await waitForLines(gateway.cwd, 1, isCall);
    expect(pure(line!)).toEqual({
      request: expect.any(Number),
      kind: 'call',
      agent: 'anonymous',
      door: 'http',
      protocol: '2025-11-25',
      method: 'tools/call',
      server: 'a',
      namespace: 'a',
      tool: 'echo',
      name: 'a_echo',
      status: 'ok',
      bytes_in: expect.any(Number),
      bytes_out: expect.any(Number),
    });
    const order =
      'time id request kind agent door protocol method server namespace tool name status ms bytes_in bytes_out';
    expect(Object.keys(line!).slice(0, 16).join(' ')).toBe(order);
    expect(line!.time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(line!.ms).toBeGreaterThan(0);
    expect(JSON.stringify(readLines(auditOf(gateway.cwd)))).not.toContain('not written');
  });

  it('is written for every method', async () => {
    const { client, cwd } = await startStdio({ config: `${config}${ON}` });
    await client.callTool({ name: 'a_echo', arguments: {} });
    await client.readResource({ uri: 'a_doc://a' });
    await client.readResource({ uri: 'a_doc://by/7' });
    await client.getPrompt({ name: 'a_p' });
    await client.complete({ ref: { type: 'ref/prompt', name: 'a_p' }, argument: { name: 'x', value: '' } });
    await client.callTool({
      name: 'toolman_activate',
      arguments: { tools_on: [], tools_off: ['a_raw'], resources_on: [], resources_off: [] },
    });
    const lines = await waitForLines(cwd, 6, isCall);
    expect(lines.map(({ method, server: key, tool, name, status }) => [method, key, tool, name, status])).toEqual([
      ['tools/call', 'a', 'echo', 'a_echo', 'ok'],
      ['resources/read', 'a', 'doc://a', 'a_doc://a', 'ok'],
      ['resources/read', 'a', 'doc://by/7', 'a_doc://by/7', 'ok'],
      ['prompts/get', 'a', 'p', 'a_p', 'ok'],
      ['completion/complete', 'a', 'p', 'a_p', 'ok'],
      ['tools/call', 'toolgate', 'toolman_activate', 'toolman_activate', 'ok'],
    ]);
    expect(new Set(lines.map(({ id }) => id)).size).toBe(6);
  });

  it('contains the outcome', async () => {
    const log = join(tempFolder(), 'log');
    const slow = server('hang');
    const cancelled = server('hang', '--log', log);
    const toml = `${config}${serversToml({ c: server('crash'), h: slow, w: cancelled }).replace(JSON.stringify(slow), `${JSON.stringify(slow)}\ntimeout = "300ms"`)}${ON}`;
    const { client, cwd } = await startStdio({ config: toml });
    const call = (name: string, args = {}) => client.callTool({ name, arguments: args }).catch(() => {});
    await call('a_raw', { json: '{"content":[],"isError":true}' });
    await call('a_raw', {});
    await call('c_crash');
    await call('h_hang');
    const given = new AbortController();
    const taken = client.callTool({ name: 'w_slow', arguments: { ms: 60_000 } }, undefined, { signal: given.signal });
    await arrived(log, '"slow"');
    given.abort();
    await taken.catch(() => {});
    await call('toolman_activate', { tools_on: ['nothing'] });
    const lines = await waitForLines(cwd, 6, isCall);
    expect(lines.map(({ status, error }) => [status, error])).toEqual([
      ['tool_error', undefined],
      ['error', expect.any(Number)],
      ['failed', 'source_broken'],
      ['timeout', 'source_timeout'],
      ['cancelled', undefined],
      ['failed', expect.any(String)],
    ]);
  });

  it('contains arguments and results if enabled, shortened and without known secrets', async () => {
    const known = 'hunter2-hunter2-hunter2';
    const toml = `${config}\n[audit]\nenabled = true\narguments = true\nresults = true\nmax_value = 200\n`;
    const { client, cwd } = await startStdio({ config: toml, env: { SOME_TOKEN: known } });
    await client.callTool({ name: 'a_echo', arguments: { text: `a ${known} b`, 'ü\u202e': 1 } });
    await client.callTool({ name: 'a_echo', arguments: { long: `${known} ${'x'.repeat(400)}` } });
    const [first, second] = await waitForLines(cwd, 2, isCall);
    expect(JSON.parse(first!.arguments as string)).toEqual({ text: 'a [redacted] b', 'ü\u202e': 1 });
    expect(first!.result).toContain('a [redacted] b');
    expect((second!.arguments as string).length).toBe(201);
    expect(second!.arguments).toMatch(/^\{"long":"\[redacted\] x+…$/);
    const bytes = JSON.stringify([first, second]);
    expect(bytes).not.toContain('hunter2');
  });

  it('shortens results without splitting a secret', async () => {
    const known = 'S'.repeat(40);
    const toml = `${config}\n[audit]\nenabled = true\nresults = true\nmax_value = 300\n`;
    const { client, cwd } = await startStdio({ config: toml, env: { SOME_TOKEN: known } });
    await client.callTool({ name: 'a_echo', arguments: { long: `${known} `.repeat(500) } });
    const [line] = await waitForLines(cwd, 1, isCall);
    expect((line!.result as string).length).toBeLessThanOrEqual(301);
    expect(line!.result).not.toContain('SSS');
  });
});

describe('the audit at every door', () => {
  it('records the door, the revision and the agent', async () => {
    const token = { authorization: 'Bearer a-token' };
    const http = await startHttp({ config, env: { BEARER_TOKEN: 'a-token' } });
    const old = await http.connect({ headers: token });
    await old.client.callTool({ name: 'a_echo', arguments: {} });
    const modern = await http.connectModern(token);
    await modern.client.callTool({ name: 'a_echo', arguments: {} });
    const open = await startHttp({ config });
    const sse = await connectSse(`${open.origin}/sse`);
    await sse.client.callTool({ name: 'a_echo', arguments: {} });
    const stdio = await startStdio({ config: `${config}${ON}` });
    await stdio.client.callTool({ name: 'a_echo', arguments: {} });
    const pipe = await startModernStdio({ config: `${config}${ON}` });
    await pipe.client.callTool({ name: 'a_echo', arguments: {} });
    const seen = async (cwd: string, count: number) =>
      (await waitForLines(cwd, count, isCall)).map(({ agent, door, protocol }) => [agent, door, protocol]);
    expect(await seen(http.cwd, 2)).toEqual([
      ['default', 'http', '2025-11-25'],
      ['default', 'http', '2026-07-28'],
    ]);
    expect(await seen(open.cwd, 1)).toEqual([['anonymous', 'sse', '2025-11-25']]);
    expect(await seen(stdio.cwd, 1)).toEqual([['default', 'stdio', '2025-11-25']]);
    expect(await seen(pipe.cwd, 1)).toEqual([['default', 'stdio', '2026-07-28']]);
  });

  it('is off on stdio, and if the configuration disables it', async () => {
    const stdio = await startStdio({ config });
    await stdio.client.callTool({ name: 'a_echo', arguments: {} });
    await stdio.stop();
    const http = await startHttp({ config: `${config}\n[audit]\nenabled = false\n` });
    await (await http.connect()).client.callTool({ name: 'a_echo', arguments: {} });
    await http.stop();
    expect([readLines(auditOf(stdio.cwd)), readLines(auditOf(http.cwd))]).toEqual([[], []]);
  });
});

describe('the audit record of a denial', () => {
  let gateway: HttpGateway;
  const token = { authorization: 'Bearer a-token' };

  beforeAll(async () => {
    const toml = `active_toolsets = ["a_echo", "a_count"]\ndenied_tools = { a = ["count"] }\n${serversToml({ a: items })}`;
    gateway = await startHttp({ config: toml, env: { BEARER_TOKEN: 'a-token' } });
  });

  const last = async (count: number) => (await waitForLines(gateway.cwd, count, isDenial)).at(-1)!;

  it('is written for unknown, hidden and inactive items, and for invalid arguments', async () => {
    const { client } = await gateway.connect({ headers: token });
    const call = (name: string) => client.callTool({ name, arguments: {} });
    await call(`no\u001b[31m_such_${'x'.repeat(400)}`);
    expect(pure(await last(1))).toEqual({
      request: expect.any(Number),
      kind: 'denial',
      agent: 'default',
      door: 'http',
      protocol: '2025-11-25',
      method: 'tools/call',
      tool: `no\u001b[31m_such_${'x'.repeat(400)}`.slice(0, 256).concat('…'),
      status: 'item_unknown',
      error: 'item_unknown',
      bytes_in: expect.any(Number),
    });
    await call('a_count');
    expect(await last(2)).toMatchObject({ tool: 'a_count', status: 'item_unknown' });
    await call('a_raw');
    expect(await last(3)).toMatchObject({ tool: 'a_raw', status: 'item_inactive' });
    await client.readResource({ uri: 'nowhere://x' }).catch(() => {});
    expect(await last(4)).toMatchObject({ method: 'resources/read', tool: 'nowhere://x', status: 'resource_unknown' });
    await client
      .request({ method: 'tools/call', params: {} }, { parse: (value: unknown) => value } as never)
      .catch(() => {});
    expect(await last(5)).toMatchObject({ status: 'params_invalid' });
  });

  it('is written for requests of a stateless client', async () => {
    const { client } = await gateway.connectModern(token);
    const before = readLines(auditOf(gateway.cwd)).filter(isDenial).length;
    await client.callTool({ name: 'a_nothing', arguments: {} });
    expect(await last(before + 1)).toMatchObject({ tool: 'a_nothing', protocol: '2026-07-28', status: 'item_unknown' });
  });

  it('is written for missing or wrong credentials, without their values', async () => {
    const before = readLines(auditOf(gateway.cwd)).filter(isDenial).length;
    await gateway.post('{}');
    await gateway.post('{}', { authorization: 'Bearer wrong-wrong-wrong' });
    const lines = (await waitForLines(gateway.cwd, before + 2, isDenial)).slice(before);
    expect(lines.map(({ status, door, remote }) => [status, door, remote])).toEqual([
      ['unauthorized', 'http', '127.0.0.1'],
      ['unauthorized', 'http', '127.0.0.1'],
    ]);
    expect(lines[0]!.detail).toBe('no token');
    expect(JSON.stringify(lines)).not.toContain('wrong-wrong');
  });
});

describe('the audit record of an administrative action', () => {
  it('is written for changes to agents, without their tokens', async () => {
    const gateway = await startHttp({ config, env: { BEARER_TOKEN: 'a-token' } });
    const agents = (...args: string[]) => runCli(['agents', ...args], { cwd: gateway.cwd });
    const act = (name: string) => waitForLines(gateway.cwd, 1, (line) => line.act === name && line.detail === 'ci');
    const { stdout } = await agents('add', 'ci');
    await act('agent_added');
    const token = /tg_[\w-]+/.exec(stdout)![0];
    const { client } = await gateway.connect({ headers: { authorization: `Bearer ${token}` } });
    await client.callTool({ name: 'a_echo', arguments: { token } });
    const [call] = await waitForLines(gateway.cwd, 1, isCall);
    expect(call).toMatchObject({ agent: 'ci', door: 'http', status: 'ok' });
    await agents('rotate', 'ci');
    await act('agent_rotated');
    await agents('revoke', 'ci');
    await act('agent_revoked');
    await gateway.stop();
    expect(JSON.stringify(readLines(auditOf(gateway.cwd))) + gateway.stderr()).not.toContain(token);
  });

  it('is written for the start, each configuration and the stop', async () => {
    const gateway = await startHttp({ config });
    const file = join(gateway.cwd, 'tools.toml');
    writeFileSync(file, 'nonsense = 1\n');
    await waitForLines(gateway.cwd, 1, ({ act }) => act === 'config_refused');
    writeFileSync(file, config.replace('"*"', '"a_echo"'));
    await waitForLines(gateway.cwd, 1, ({ act }) => act === 'config_applied');
    await gateway.stop();
    const lines = readLines(auditOf(gateway.cwd)).filter(isAdmin);
    expect(lines.map(({ act }) => act)).toEqual(['start', 'config_refused', 'config_applied', 'stop']);
    expect(lines[1]!.detail).toContain('nonsense: unknown key');
  });

  it('is written for changes to toolsets, with the agent that made them', async () => {
    const toml = `controls = ["equip"]\nselection = "shared"\n${serversToml({ a: items })}${ON}`;
    const { client, cwd } = await startStdio({ config: toml });
    const call = (name: string, args: object) => client.callTool({ name, arguments: { ...args } });
    await call('build-toolset', { name: 'mine', tools: [{ namespacedName: 'a.echo' }] });
    await call('equip-toolset', { name: 'mine' });
    await call('unequip-toolset', {});
    await call('delete-toolset', { name: 'mine', confirm: true });
    const lines = await waitForLines(cwd, 5, isAdmin);
    expect(lines.slice(1).map(({ act, agent, detail }) => [act, agent, detail])).toEqual([
      ['toolset_saved', 'default', 'mine'],
      ['toolset_equipped', 'default', 'mine'],
      ['toolset_unequipped', 'default', undefined],
      ['toolset_deleted', 'default', 'mine'],
    ]);
  });

  it('goes to the new folder after a change, and stops when the audit is disabled', async () => {
    const gateway = await startHttp({ config });
    const { client } = await gateway.connect();
    const file = join(gateway.cwd, 'tools.toml');
    const other = join(gateway.cwd, 'other');
    writeFileSync(file, `${config}\n[audit]\ndir = "other"\n`);
    await waitFor(() => readLines(other).length > 0);
    await client.callTool({ name: 'a_echo', arguments: {} });
    await waitFor(() => readLines(other).some(isCall));
    writeFileSync(file, `${config}\n[audit]\nenabled = false\n`);
    await waitFor(() => readLines(other).some(({ act }) => act === 'stop'));
    await client.callTool({ name: 'a_echo', arguments: {} });
    await gateway.stop();
    expect(readLines(other).filter(isCall)).toHaveLength(1);
    expect(readLines(auditOf(gateway.cwd)).map(({ act }) => act)).toEqual(['start', 'stop']);
  });
});
