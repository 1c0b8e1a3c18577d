/** GET /metrics: it can be parsed, says what happened, and says it to nobody else. */
import { describe, expect, it } from 'vitest';
import { exchange } from '../http/raw.ts';
import { connectHttp } from '../support/connection.ts';
import { waitFor } from '../support/processes.ts';
import { readExposition } from './exposition.ts';
import { basic, open } from './use.ts';

describe('GET /metrics', () => {
  it('is the text format, with every figure', async () => {
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
    expect(value('toolgate_sessions')).toBe(1);
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

  it('escapes names, and never has what was in a call', async () => {
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
      calls: JSON.parse(JSON.stringify(gateway.figures.entries())) as unknown,
    });
    for (const said of [text, json]) expect(said).not.toMatch(/hunter2|password/);
  });

  it('tells that a server was started again', async () => {
    const { origin, gateway } = await open({ a: basic() });
    const read = async () => {
      const families = readExposition(await (await fetch(`${origin}/metrics`)).text());
      const [up, restarts] = ['toolgate_server_up', 'toolgate_server_restarts_total'].map(
        (name) => families.get(name)!.samples[0]!.value,
      );
      return { up, restarts };
    };
    process.kill(gateway.statuses()[0]!.pid!, 'SIGKILL');
    await waitFor(async () => (await read()).up === 0);
    await waitFor(async () => (await read()).up === 1, 10_000);
    expect(await read()).toEqual({ up: 1, restarts: 1 });
  });

  it('is read, and nothing else', async () => {
    const { origin } = await open({});
    const response = await fetch(`${origin}/metrics`, { method: 'POST', body: '{}' });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET']);
  });

  it('wants the token where there is one', async () => {
    const { origin } = await open({ a: basic() }, {}, 'a-token');
    const ask = (authorization: string) => fetch(`${origin}/metrics`, { headers: { authorization } });
    const refused = await fetch(`${origin}/metrics`);
    expect(refused.status).toBe(401);
    expect(await refused.text()).not.toContain('toolgate_server_up');
    expect((await ask('Bearer another')).status).toBe(401);
    expect((await ask('Bearer a-token')).status).toBe(200);
  });

  it('is for hosts and origins that are known', async () => {
    const { origin } = await open({});
    const get = (...lines: string[]) =>
      exchange(origin, ['GET /metrics HTTP/1.1', ...lines, 'Connection: close', '', ''].join('\r\n'));
    expect((await get('Host: localhost')).status).toBe(200);
    expect((await get('Host: evil.example')).status).toBe(403);
    expect((await get('Host: localhost', 'Origin: http://evil.example')).status).toBe(403);
  });
});

describe('the reader itself', () => {
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
