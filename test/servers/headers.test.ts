/**
 * The headers that repeat a request to a modern server over HTTP. They are built from the request that the server
 * gets.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { runDoctor } from '../support/doctor.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { enveloped, type ModernConnection, mirrored } from '../support/modern.ts';
import { stdioServer, textOf } from '../support/modern-servers.ts';
import {
  type HttpServer,
  legacyMethods,
  modernMethods,
  startServer,
  text,
  tool,
} from '../support/plain-http-server.ts';
import { callText, toml, toolNames } from '../support/running-gateway.ts';

const base64 = (value: string) => `=?base64?${Buffer.from(value).toString('base64')}?=`;
const kept = { resultType: 'complete', ttlMs: 0, cacheScope: 'public' };

const search = tool('search', {
  region: { type: 'string', 'x-mcp-header': 'Region' },
  limit: { type: 'integer', 'x-mcp-header': 'Limit' },
  dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
  filter: {
    type: 'object',
    properties: { tenant: { type: 'string', 'x-mcp-header': 'Tenant' }, other: { type: 'string' } },
  },
});

describe('the headers that a modern server receives', () => {
  let upstream: HttpServer;
  let gateway: HttpGateway;
  let legacy: HttpConnection;
  let modern: ModernConnection;

  beforeAll(async () => {
    const capabilities = { tools: {}, resources: {}, prompts: {}, completions: {} };
    const methods = {
      'tools/list': () => ({ ...kept, tools: [tool('echo'), tool('grüße/日本'), search] }),
      'resources/list': () => ({ ...kept, resources: [{ uri: 'up://größe', name: 'one' }] }),
      'resources/templates/list': () => ({
        ...kept,
        resourceTemplates: [{ uriTemplate: 'up://page/{n}', name: 'two' }],
      }),
      'resources/read': ({ uri }: { uri?: unknown }) => ({ ...kept, contents: [{ uri, text: 'a text' }] }),
      'prompts/list': () => ({ ...kept, prompts: [{ name: ' padded', arguments: [{ name: 'topic' }] }] }),
      'prompts/get': () => ({ resultType: 'complete', messages: [] }),
      'completion/complete': () => ({ resultType: 'complete', completion: { values: ['one'] } }),
    };
    upstream = await startServer(modernMethods(methods, capabilities));
    const entry = { namespace: 'ev', url: upstream.url, headers: { 'X-Tenant': 'blue' } };
    gateway = await startHttp({ config: toml([entry], { controls: [] }) });
    [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
  });

  /** The protocol headers of the last request of a method. */
  const last = (method: string) => {
    const entries = Object.entries(upstream.of(method).at(-1)!.headers).filter(([name]) => name.startsWith('mcp-'));
    return Object.fromEntries(entries);
  };
  const common = (method: string) => ({ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method });

  it.each(['legacy', 'modern'] as const)('contain the item name without the namespace (%s client)', async (era) => {
    const { client } = era === 'legacy' ? legacy : modern;
    for (const [name, header] of [
      ['echo', 'echo'],
      ['grüße/日本', base64('grüße/日本')],
    ] as const) {
      expect(textOf(await client.callTool({ name: `ev_${name}`, arguments: { n: 1 } }))).toBe('{"n":1}');
      expect(last('tools/call')).toEqual({ ...common('tools/call'), 'mcp-name': header });
    }
    for (const [uri, header] of [
      ['up://größe', base64('up://größe')],
      ['up://page/7', 'up://page/7'],
    ] as const) {
      await client.readResource({ uri: `ev_${uri}` });
      expect(last('resources/read')).toEqual({ ...common('resources/read'), 'mcp-name': header });
    }
    await client.getPrompt({ name: 'ev_ padded' });
    expect(last('prompts/get')).toEqual({ ...common('prompts/get'), 'mcp-name': base64(' padded') });
    const argument = { name: 'topic', value: 'o' };
    await client.complete({ ref: { type: 'ref/prompt', name: 'ev_ padded' }, argument });
    expect(last('completion/complete')).toEqual(common('completion/complete'));
  });

  it.each(['legacy', 'modern'] as const)(
    'repeat the arguments that the tool marks, at any depth (%s client)',
    async (era) => {
      const { client } = era === 'legacy' ? legacy : modern;
      await client.listTools();
      const call = (args: Record<string, unknown>) => client.callTool({ name: 'ev_search', arguments: args });
      await call({ region: 'eu', limit: 5, dry: false, filter: { tenant: 'Zoë', other: 'no' } });
      const named = { ...common('tools/call'), 'mcp-name': 'search' };
      expect(last('tools/call')).toEqual({
        ...named,
        'mcp-param-region': 'eu',
        'mcp-param-limit': '5',
        'mcp-param-dry': 'false',
        'mcp-param-tenant': base64('Zoë'),
      });
      await call({ region: '', filter: {} });
      expect(last('tools/call')).toEqual({ ...named, 'mcp-param-region': base64('') });
      await call({});
      expect(last('tools/call')).toEqual(named);
    },
  );

  it('are built from the body, not from the headers of the caller', async () => {
    const params = enveloped('{"name":"ev_search","arguments":{"region":"eu"}}');
    const headers = {
      ...mirrored('tools/call', params),
      'mcp-param-region': 'eu',
      'mcp-param-zone': 'smuggled',
      'mcp-session-id': 'smuggled',
      'x-tenant': 'smuggled',
      traceparent: '00-smuggled',
    };
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
    expect((await gateway.post(body, headers)).status).toBe(200);
    const seen = upstream.of('tools/call').at(-1)!.headers;
    expect(JSON.stringify(seen)).not.toContain('smuggled');
    expect(seen).toMatchObject({ 'mcp-name': 'search', 'mcp-param-region': 'eu', 'x-tenant': 'blue' });
  });

  it('contain only the method for lists, and nothing a server would not expect', () => {
    expect(last('tools/list')).toEqual(common('tools/list'));
    expect(last('server/discover')).toEqual(common('server/discover'));
    for (const { headers } of upstream.seen) expect(headers).not.toHaveProperty('mcp-session-id');
  });
});

it('are not sent to a legacy server', async () => {
  const upstream = await startServer(legacyMethods({ 'tools/list': () => ({ tools: [search] }) }));
  const gateway = await startHttp({ config: toml([{ namespace: 'ev', url: upstream.url }], { controls: [] }) });
  const { client } = await gateway.connectModern();
  await client.listTools();
  await client.callTool({ name: 'ev_search', arguments: { region: 'eu' } });
  const names = Object.keys(upstream.of('tools/call')[0]!.headers).filter((name) => name.startsWith('mcp-'));
  expect(names).toEqual(['mcp-protocol-version']);
  expect(upstream.of('tools/call')[0]!.headers['mcp-protocol-version']).toBe('2025-11-25');
});

describe('a tool whose header annotation is invalid', () => {
  const wrong = {
    spaced: { at: { type: 'string', 'x-mcp-header': 'not a name' } },
    empty: { at: { type: 'string', 'x-mcp-header': '' } },
    shaped: { at: { type: 'object', 'x-mcp-header': 'At' } },
    twice: { one: { type: 'string', 'x-mcp-header': 'At' }, two: { type: 'string', 'x-mcp-header': 'at' } },
    listed: { list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'At' } } },
  };
  const tools = [...Object.entries(wrong).map(([name, properties]) => tool(name, properties)), tool('right')];

  it('is left out and reported on a modern HTTP server, and listed on other servers', async () => {
    const modern = await startServer(
      modernMethods({ 'tools/list': () => ({ ...kept, tools }), 'tools/call': () => text('fine') }),
    );
    const legacy = await startServer(legacyMethods({ 'tools/list': () => ({ tools }) }));
    const config = toml(
      [
        { namespace: 'modern', url: modern.url },
        { namespace: 'legacy', url: legacy.url },
        { namespace: 'stdio', command: stdioServer('--marked') },
      ],
      { controls: [] },
    );
    const [gateway, { findings }] = await Promise.all([startHttp({ config }), runDoctor(config)]);
    const { client } = await gateway.connect();
    expect(await toolNames(client)).toEqual([
      'modern_right',
      ...tools.map(({ name }) => `legacy_${name}`),
      'stdio_pid',
      'stdio_hang',
      'stdio_marked',
      'stdio_tell',
    ]);
    expect(await callText(client, 'stdio_marked', { at: {} })).toBe('fine');
    const problems = findings.filter(({ level }) => level === 'warning');
    expect(problems.map(({ about, message }) => `${about} ${message.split(':', 2).join(':')}`)).toEqual(
      Object.keys(wrong).map((name) => `modern tools/list: "${name}" was left out`),
    );
    expect(problems[0]!.message).toBe(
      'tools/list: "spaced" was left out: "x-mcp-header" of at is not a valid header name',
    );
    expect(gateway.stderr()).toContain('tools/list: \\"twice\\" was left out');
  });
});
