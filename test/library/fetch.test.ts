/** A server with toolsets as a `fetch` handler, and endpoints that answer with a status of their own. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { createMcpServer, defineEndpoint, defineTool, type McpServerHandle } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { overhear } from '../support/connection.ts';
import { MODERN } from '../support/modern.ts';
import { connect, ERAS, META, type SomeClient, startServer, type TestClient, testClient, withId } from './support.ts';

const count = defineTool({
  name: 'count',
  description: 'Counts',
  inputSchema: z.object({ to: z.number() }),
  async execute({ to }, { progress }) {
    for (let n = 1; n <= to; n++) {
      progress(n, to);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return 'x'.repeat(to * 100_000);
  },
});

const options = {
  catalog: { core: { name: 'Core', description: 'D', tools: [count] } },
  http: {
    customEndpoints: [
      defineEndpoint({
        method: 'GET',
        path: '/users/:id',
        paramsSchema: z.object({ id: z.string() }),
        responseSchema: z.object({ id: z.string() }),
        handler({ params: { id } }) {
          if (id === 'none') return Response.json({ error: 'No such user' }, { status: 404 });
          if (id === 'secret') return new Response(null, { status: 403, headers: { 'x-why': 'not yours' } });
          if (id === 'stream')
            return new Response(new Blob(['a', 'b']).stream(), { headers: { 'content-type': 'text/x' } });
          return { id };
        },
      }),
    ],
  },
};

async function create(): Promise<McpServerHandle> {
  const server = await createMcpServer(options);
  atEnd(() => server.close());
  return server;
}

type Ask = (input: string | URL, init?: RequestInit) => Promise<Response>;

/** Clients of both SDKs that reach the server only by a function. */
const CLIENTS: Record<string, (ask: Ask, id: string) => Promise<TestClient & { progress(): number }>> = {
  async 'SDK v1 (sessions)'(ask, id) {
    const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), {
      requestInit: { headers: withId(id) },
      fetch: ask as never,
    });
    const client = new Client({ name: 'a', version: '1' });
    return join(client as never, transport as never, () => transport.terminateSession());
  },
  async 'SDK v2 (no sessions)'(ask, id) {
    const transport = new ModernHttp(new URL('http://localhost/mcp'), {
      requestInit: { headers: withId(id) },
      fetch: ask as never,
    });
    const client = new ModernClient({ name: 'a', version: '1' }, { versionNegotiation: { mode: { pin: MODERN } } });
    return join(client as never, transport as never, async () => {});
  },
};

async function join(
  client: SomeClient & { connect(transport: unknown): Promise<void> },
  transport: Parameters<typeof overhear>[0],
  terminate: () => Promise<void>,
) {
  const told = overhear(transport);
  await client.connect(transport);
  atEnd(() => client.close());
  const progress = () =>
    told.messages.filter((message) => 'method' in message && message.method === 'notifications/progress').length;
  const tested = testClient(client, () => 0, terminate);
  const call = (name: string, args: Record<string, unknown> = {}) =>
    (client as never as { callTool(call: object, ...more: unknown[]): Promise<never> }).callTool({
      name,
      arguments: args,
      _meta: { progressToken: 1 },
    });
  return { ...tested, call, progress };
}

describe.each(Object.keys(CLIENTS))('the fetch handler with %s', (kind) => {
  it('lists, switches, streams progress and returns long results', async () => {
    const { fetch } = await create();
    const client = await CLIENTS[kind]!((input, init) => fetch(new Request(input, init)), 'a');
    expect(await client.names()).toEqual(META);
    await client.json('enable_toolset', { name: 'core' });
    expect(await client.names()).toEqual([...META, 'core.count']);
    const result = await client.call('core.count', { to: 5 });
    expect(JSON.stringify(result).length).toBeGreaterThan(500_000);
    expect(client.progress()).toBe(5);
    await client.leave();
  });

  it('works in Hono without a Node server', async () => {
    const server = await create();
    const app = new Hono();
    app.all('/mcp', (context) => server.fetch(context.req.raw));
    const client = await CLIENTS[kind]!(async (input, init) => app.request(input.toString(), init), 'b');
    expect(await client.names()).toEqual(META);
    await client.leave();
  });
});

it.each(ERAS)('serves clients of SDK %s through Hono on Node', async (era) => {
  const server = await create();
  const app = new Hono();
  app.all('/mcp', (context) => server.fetch(context.req.raw));
  const node = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
  await once(node, 'listening');
  atEnd(() => {
    node.closeAllConnections();
    node.close();
  });
  const client = await connect(era, `http://127.0.0.1:${(node.address() as AddressInfo).port}/mcp`, withId('c'));
  await client.json('enable_toolset', { name: 'core' });
  expect((await client.text('core.count', { to: 2 })).length).toBe(200_000);
});

it('asks for the client id, checks the host, and answers 503 once it is closed', async () => {
  const server = await create();
  const post = (url: string) =>
    server.fetch(new Request(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }));
  const without = await post('http://localhost/mcp');
  expect([without.status, await without.text()]).toEqual([400, expect.stringContaining('Missing mcp-client-id')]);
  expect((await post('http://elsewhere.example/mcp')).status).toBe(403);
  expect((await server.fetch(new Request('http://localhost/healthz'))).status).toBe(200);
  await server.close();
  expect((await server.fetch(new Request('http://localhost/healthz'))).status).toBe(503);
  const other = await create();
  await other.close();
  await expect(other.fetch(new Request('http://localhost/healthz'))).rejects.toThrow('The server is closed');
});

describe.each(['fetch', 'a port'])('an endpoint answers over %s', (way) => {
  it('with its own status, headers and stream, or with a value', async () => {
    const server = way === 'fetch' ? await create() : await startServer(options);
    const ask = (id: string, method = 'GET') => {
      if (way === 'fetch') return server.fetch(new Request(`http://localhost/users/${id}`, { method }));
      return fetch(server.url!.replace('/mcp', `/users/${id}`), { method });
    };
    const none = await ask('none');
    expect([none.status, await none.json()]).toEqual([404, { error: 'No such user' }]);
    expect(none.headers.get('content-type')).toBe('application/json');
    const secret = await ask('secret');
    expect([secret.status, secret.headers.get('x-why'), await secret.text()]).toEqual([403, 'not yours', '']);
    const stream = await ask('stream');
    expect([stream.status, stream.headers.get('content-type'), await stream.text()]).toEqual([200, 'text/x', 'ab']);
    expect((await ask('none', 'HEAD')).status).toBe(404);
    expect(await (await ask('7')).json()).toEqual({ id: '7' });
  });
});
