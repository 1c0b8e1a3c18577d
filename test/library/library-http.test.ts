/** The paths of a server with toolsets, and the endpoints of the program next to them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { beforeAll, describe, expect, it } from 'vitest';
import * as z from 'zod';
import * as z3 from 'zod/v3';
import {
  createMcpServer,
  createPermissionBasedMcpServer,
  defineEndpoint,
  definePermissionAwareEndpoint,
  type McpServerHandle,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { waitFor } from '../support/processes.ts';
import { connect, ERAS, META, startServer, withId } from './support.ts';

const catalog = {
  core: {
    name: 'Core',
    description: 'D',
    tools: [{ name: 'ping', description: 'x', inputSchema: {}, handler: () => 'pong' }],
  },
};

const customEndpoints = [
  defineEndpoint({
    method: 'GET',
    path: '/api/users',
    querySchema: z.object({ limit: z.coerce.number().int().positive().default(10) }),
    responseSchema: z.object({ limit: z.number(), clientId: z.string() }),
    handler: ({ query, clientId }) => ({ limit: query.limit, clientId, extra: 'not sent' }),
  }),
  defineEndpoint({
    method: 'POST',
    path: '/api/users/:id',
    paramsSchema: z3.object({ id: z3.string().min(2) }),
    bodySchema: z.object({ name: z.string() }),
    handler: async ({ params, body }) => ({ id: params.id, name: body.name }),
  }),
  defineEndpoint({ method: 'GET', path: '/api/broken', handler: () => Promise.reject(new Error('secret detail')) }),
  defineEndpoint({
    method: 'GET',
    path: '/api/wrong',
    responseSchema: z.object({ n: z.number() }),
    handler: () => ({ n: 'x' }) as never,
  }),
  defineEndpoint({ method: 'DELETE', path: '/api/nothing', handler: () => undefined as never }),
];

describe('a server with a base path', () => {
  let server: McpServerHandle & { url: string };
  let base: string;
  beforeAll(async () => {
    server = await startServer({
      catalog,
      configSchema: { type: 'object', properties: { KEY: { type: 'string' } } },
      http: { basePath: '/deep/api/', customEndpoints, cors: ['https://app.example'] },
    });
    base = server.url.replace('/mcp', '');
  });
  const get = (path: string, init?: RequestInit) => fetch(`${base}${path}`, init);
  const json = async (path: string, init?: RequestInit) => {
    const response = await get(path, init);
    return [response.status, await response.json()] as const;
  };
  const send = (body: unknown): RequestInit => ({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });

  it('serves MCP, health, tools and its schema below the base path', async () => {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/deep\/api\/mcp$/);
    expect(await json('/healthz')).toEqual([200, { ok: true }]);
    const schema = await get('/.well-known/mcp-config');
    expect(schema.headers.get('content-type')).toBe('application/schema+json; charset=utf-8');
    expect(await schema.json()).toEqual({ type: 'object', properties: { KEY: { type: 'string' } } });
    expect((await json('/tools'))[1]).toMatchObject({ availableToolsets: ['core'], activeToolsets: [] });
    const client = await connect(ERAS[0]!, server.url, withId('a'));
    await client.json('enable_toolset', { name: 'core' });
    expect((await json('/tools', { headers: withId('a') }))[1]).toMatchObject({ tools: ['core.ping'] });
    expect((await json('/nowhere'))[0]).toBe(404);
    expect((await json('/healthz', { method: 'POST' }))[0]).toBe(405);
    expect((await fetch(new URL('/healthz', server.url))).status).toBe(404);
  });

  it('requires a client id for every method', async () => {
    for (const method of ['POST', 'GET', 'DELETE']) {
      const response = await fetch(server.url, { method, headers: { 'mcp-session-id': 'x' } });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain('Missing mcp-client-id');
      const odd = await fetch(server.url, { method, headers: withId('two words') });
      expect(odd.status).toBe(400);
    }
    // One client cannot use the session of another.
    const opened = await post({ 'mcp-client-id': 'a' }, INITIALIZE);
    const id = opened.headers.get('mcp-session-id')!;
    expect(id).toMatch(/\S{8,}/);
    const stolen = await post({ 'mcp-client-id': 'b', 'mcp-session-id': id }, PING);
    expect(stolen.status).toBe(404);
    expect((await post({ 'mcp-client-id': 'a', 'mcp-session-id': id }, PING)).status).toBe(200);
    const ended = await fetch(server.url, { method: 'DELETE', headers: { ...withId('a'), 'mcp-session-id': id } });
    expect(ended.ok).toBe(true);
  });

  const INITIALIZE = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  };
  const PING = { jsonrpc: '2.0', id: 2, method: 'ping' };
  const post = (headers: Record<string, string>, body: object) =>
    fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify(body),
    });

  it('validates requests to the endpoints of the program, and their responses', async () => {
    expect(await json('/api/users?limit=3', { headers: withId('me') })).toEqual([200, { limit: 3, clientId: 'me' }]);
    expect((await json('/api/users'))[1]).toEqual({ limit: 10, clientId: expect.stringMatching(/^anon-/) });
    expect(await json('/api/users?limit=x')).toEqual([
      400,
      {
        error: {
          code: 'VALIDATION_ERROR',
          message: 'Validation failed for query',
          details: [expect.objectContaining({ path: ['limit'] })],
        },
      },
    ]);
    expect(await json('/api/users/42', send({ name: 'Ada' }))).toEqual([200, { id: '42', name: 'Ada' }]);
    expect(await json('/api/users/4', send({ name: 'Ada' }))).toMatchObject([
      400,
      { error: { message: 'Validation failed for params' } },
    ]);
    expect(await json('/api/users/42', { method: 'POST', body: '{' })).toMatchObject([
      400,
      { error: { code: 'VALIDATION_ERROR', message: 'Validation failed for body' } },
    ]);
    expect(await json('/api/broken')).toEqual([
      500,
      { error: { code: 'INTERNAL_ERROR', message: 'Internal server error' } },
    ]);
    expect(await json('/api/wrong')).toEqual([
      500,
      { error: { code: 'RESPONSE_VALIDATION_ERROR', message: 'Internal server error: invalid response format' } },
    ]);
    expect((await get('/api/nothing', { method: 'DELETE' })).status).toBe(204);
    const put = await get('/api/users', { method: 'PUT' });
    expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('refuses a body that is too long, with a reason', async () => {
    const small = await startServer({ catalog, settings: { limits: { body: '1KB' } }, http: { customEndpoints } });
    const [fitting, long] = ['x', 'x'.repeat(5_000_000)].map((name) => JSON.stringify({ name }));
    const put = (body: string) =>
      fetch(small.url.replace('/mcp', '/api/users/42'), { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect((await put(fitting!)).status).toBe(200);
    const refused = await put(long!);
    expect([refused.status, await refused.json()]).toMatchObject([413, { code: 'too_large' }]);
  });

  it('admits web pages of listed origins, and no others', async () => {
    const from = (origin: string) => get('/healthz', { headers: { origin } });
    expect((await from('https://app.example')).headers.get('access-control-allow-origin')).toBe('https://app.example');
    expect((await from('https://evil.example')).status).toBe(403);
    const asked = await fetch(server.url, {
      method: 'OPTIONS',
      headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
    });
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-headers')).toContain('mcp-client-id');
  });
});

it('passes every request to `authenticate` with its original URL', async () => {
  const seen: string[] = [];
  const server = await startServer({
    catalog,
    authenticate: ({ method, url }) => {
      seen.push(`${method} ${url}`);
      return null;
    },
    http: { basePath: '/deep', customEndpoints },
  });
  const base = server.url.replace('/mcp', '');
  const paths = ['/mcp', '/mcp?config=e30', '/tools', '/api/users?limit=1', '/mcp?access_token=x&toolset=y'];
  for (const path of paths) expect((await fetch(base + path)).status).toBe(401);
  expect(seen).toEqual(paths.map((path) => `GET /deep${path}`));
});

it('answers 503 once it is closed', async () => {
  const server = await createMcpServer({ catalog });
  const own = createServer(await server.handler()).listen(0, '127.0.0.1');
  atEnd(() => own.close());
  await once(own, 'listening');
  const origin = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
  expect((await fetch(`${origin}/healthz`)).status).toBe(200);
  await server.close();
  for (const path of ['/healthz', '/mcp']) expect((await fetch(origin + path)).status).toBe(503);
});

it('tells permission-aware endpoints which toolsets their client has', async () => {
  const server = await createPermissionBasedMcpServer({
    catalog: { ...catalog, broken: { name: 'B', description: 'D', modules: ['broken'] } },
    moduleLoaders: { broken: () => Promise.reject(new Error('no connection')) },
    logger: false,
    permissions: { source: 'config', staticMap: { me: ['core', 'broken'] } },
    http: {
      port: 0,
      customEndpoints: [
        definePermissionAwareEndpoint({
          method: 'GET',
          path: '/me',
          handler: ({ clientId, allowedToolsets, failedToolsets }) => ({ clientId, allowedToolsets, failedToolsets }),
        }),
      ],
    },
  });
  atEnd(() => server.close());
  await server.start();
  const me = async (headers = {}) => (await fetch(server.url!.replace('/mcp', '/me'), { headers })).json();
  expect(await me(withId('me'))).toEqual({ clientId: 'me', allowedToolsets: ['core'], failedToolsets: ['broken'] });
  expect(await me()).toMatchObject({ allowedToolsets: [], failedToolsets: [] });
});

it('is one handler for any server, and lets the program switch toolsets', async () => {
  const server = await createMcpServer({ catalog, registerMetaTools: false, http: { customEndpoints } });
  atEnd(() => server.close());
  const own = createServer(await server.handler()).listen(0, '127.0.0.1');
  atEnd(() => own.close());
  await once(own, 'listening');
  const url = `http://127.0.0.1:${(own.address() as AddressInfo).port}/mcp`;
  const client = await connect(ERAS[0]!, url, withId('a'));
  expect(await client.names()).toEqual([]);
  expect(await server.enableToolset('a', 'core')).toMatchObject({ activeToolsets: ['core'] });
  expect(await client.names()).toEqual(['core.ping']);
  await waitFor(() => client.changes() === 1);
  expect(await server.disableToolset('a', 'core')).toMatchObject({ activeCount: 0 });
  await expect(server.enableToolset('a', 'cor')).rejects.toMatchObject({ reason: 'E_VALIDATION' });
  const fixed = await createMcpServer({ catalog, startup: { toolsets: 'ALL' } });
  atEnd(() => fixed.close());
  await expect(fixed.disableToolset('a', 'core')).rejects.toThrow('Toolsets cannot be switched here');
});

it('adds its routes to a Fastify app that has its own', async () => {
  const app = Fastify();
  app.post('/own', async (request) => ({ got: request.body }));
  const server = await createMcpServer({ catalog, http: { app, basePath: '/tools-api', customEndpoints } });
  atEnd(() => server.close());
  atEnd(() => app.close());
  await server.start();
  expect(server.url).toBeNull();
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  const client = await connect(ERAS[1]!, `${origin}/tools-api/mcp`, withId('a'));
  await client.json('enable_toolset', { name: 'core' });
  expect(await client.names()).toEqual([...META, 'core.ping']);
  expect(await client.text('core.ping')).toBe('pong');
  expect(await (await fetch(`${origin}/tools-api/healthz`)).json()).toEqual({ ok: true });
  const made = await fetch(`${origin}/tools-api/api/users/42`, { method: 'POST', body: '{"name":"Ada"}' });
  expect(await made.json()).toEqual({ id: '42', name: 'Ada' });
  const own = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":1}' };
  expect(await (await fetch(`${origin}/own`, own)).json()).toEqual({ got: { a: 1 } });
});
