/** The gateway mounted in web servers of other programs, with official SDK clients of both eras. */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import { type AddressInfo, connect } from 'node:net';
import { serve } from '@hono/node-server';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttp } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  configFromValue,
  createHttpDoor,
  createVisitor,
  expressMiddleware,
  fastifyPlugin,
  fetchHandler,
  type Gateway,
  GatewayError,
  type HttpDoor,
  type HttpDoorOptions,
  honoMiddleware,
  type LocalDoor,
  openLocalDoor,
} from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { connectHttp, connectSse, overhear, type Told } from '../support/connection.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { connectModernHttp, MODERN } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { serverEntry } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { onePart } from '../support/wide.ts';

const express4 = createRequire(import.meta.url)('express4') as typeof express;

let gateway: Gateway;
let local: LocalDoor;

beforeAll(async () => {
  const config = { controls: [], mcpServers: { slow: serverEntry('hang'), basic: serverEntry('basic') } };
  gateway = createGateway(configFromValue(config, { cwd: tempFolder(), env: {} }));
  atEnd(() => gateway.close());
  await gateway.tried();
  local = openLocalDoor(gateway, 'all');
});

async function makeDoor(options?: HttpDoorOptions): Promise<HttpDoor> {
  const door = await createHttpDoor(gateway, options);
  atEnd(() => door.close());
  return door;
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const serveNode = (handle: RequestListener) => listen(createServer(handle));

/** Each starts a program with its own route `/own` and the gateway below `/gateway`, and returns its origin. */
const FRAMEWORKS: Record<string, (door: HttpDoor) => Promise<string>> = {
  'node:http': (door) =>
    serveNode((request, response) => {
      if (door.serves(request.url!)) door.handle(request, response);
      else response.end('own');
    }),
  'Express 5': (door) => serveExpress(express(), door, false),
  'Express 5 that has read the body': (door) => serveExpress(express(), door, true),
  'Express 4': (door) => serveExpress(express4(), door, false),
  'Express 4 that has read the body': (door) => serveExpress(express4(), door, true),
  Fastify: async (door) => {
    const app = fastify();
    app.get('/own', () => 'own');
    await app.register(fastifyPlugin(door));
    atEnd(() => app.close());
    return app.listen({ port: 0, host: '127.0.0.1' });
  },
  'Hono on Node': (door) => serveHono(door, false),
  'Hono on Node that has read the body': (door) => serveHono(door, true),
};

function serveExpress(app: express.Express, door: HttpDoor, reads: boolean): Promise<string> {
  if (reads) app.use(express.json());
  app.use(expressMiddleware(door));
  app.get('/own', (_request, response) => void response.send('own'));
  return serveNode(app);
}

async function serveHono(door: HttpDoor, reads: boolean): Promise<string> {
  const app = new Hono();
  if (reads)
    app.use(async (context, next) => {
      if (context.req.method === 'POST') await context.req.text();
      await next();
    });
  app.use(honoMiddleware(door));
  app.get('/own', (context) => context.text('own'));
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server;
  await once(server, 'listening');
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const SLOW = { name: 'slow_slow', arguments: { ms: 60, steps: 3 } };

/** The progress that a client received before the answer. The SDK's callbacks miss progress that arrives together with it. */
function steps({ messages }: Told): unknown[] {
  const last = messages.findLastIndex((message) => 'result' in message);
  return messages
    .slice(0, last)
    .flatMap((message) => ('method' in message && message.method === PROGRESS ? message.params?.progress : []));
}

const PROGRESS = 'notifications/progress';
const onprogress = () => {};

async function cancelled(tag: string): Promise<boolean> {
  return (await local.callTool('slow_cancelled', {})).includes(tag);
}

/** Cancels a call that the server has started, and waits until the server knows. */
async function giveUp(client: ModernClient, tag: string): Promise<void> {
  const abort = new AbortController();
  const call = { name: 'slow_slow', arguments: { ms: 60_000, steps: 6_000, tag } };
  await expect(client.callTool(call, { signal: abort.signal, onprogress: () => abort.abort() })).rejects.toThrow();
  await waitFor(() => cancelled(tag));
}

describe.each(onePart(2, Object.entries(FRAMEWORKS)))('in %s', (name, start) => {
  let at = '';
  let door: HttpDoor;
  beforeAll(async () => {
    door = await makeDoor({ basePath: '/gateway' });
    at = await start(door);
  });

  it('serves a client with a session until the client ends it', async () => {
    const { client, transport, ...told } = await connectHttp(`${at}/gateway/mcp`);
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toContain('basic_echo');
    await client.callTool(SLOW, undefined, { onprogress });
    expect(steps(told)).toEqual([1, 2, 3]);
    const before = door.sessions;
    await transport.terminateSession();
    expect(door.sessions).toBe(before - 1);
  });

  it('serves a client without a session', async () => {
    const { client, ...told } = await connectModernHttp(`${at}/gateway/mcp`);
    const result = await client.callTool({ name: 'basic_echo', arguments: { text: 'hé' } });
    expect(JSON.stringify(result.content)).toContain('hé');
    await client.callTool(SLOW, { onprogress });
    expect(steps(told)).toEqual([1, 2, 3]);
  });

  it('tells the upstream server when a client disconnects', async () => {
    const { client } = await connectModernHttp(`${at}/gateway/mcp`);
    await giveUp(client, `gone from ${name}`);
  });

  it('leaves the routes of the program alone', async () => {
    const reply = await fetch(`${at}/own`);
    expect([reply.status, await reply.text()]).toEqual([200, 'own']);
    expect((await fetch(`${at}/mcp`, { method: 'POST' })).status).not.toBe(401);
    const missing = await fetch(`${at}/gateway/nowhere`);
    expect([missing.status, await missing.text()]).toEqual([404, expect.stringContaining('/gateway/mcp')]);
    expect((await fetch(`${at}/gateway/tools`)).status).toBe(200);
  });

  it('answers an invalid message', async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const reply = await fetch(`${at}/gateway/mcp`, { method: 'POST', body: '{"jsonrpc":"2.0"}', headers });
    expect(reply.status).toBe(400);
    expect(JSON.stringify(await reply.json())).toContain('-32600');
  });
});

/** A client whose requests are answered without a socket. */
async function connectFetch(door: HttpDoor, token: string) {
  const answer = fetchHandler(door);
  const options = {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    fetch: (input: string | URL | Request, init?: RequestInit) => answer(new Request(input, init)),
  };
  const legacy = new Client({ name: 'fetch', version: '1' });
  const transport = new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), options);
  const other = new ModernHttp(new URL('http://localhost/mcp'), options);
  const heard = [overhear(transport), overhear(other)] as const;
  await legacy.connect(transport);
  const modern = new ModernClient({ name: 'fetch', version: '2' }, { versionNegotiation: { mode: { pin: MODERN } } });
  await modern.connect(other);
  atEnd(() => Promise.all([legacy.close(), modern.close()]));
  return { legacy, modern, transport, heard };
}

describe('as a function from Request to Response', () => {
  it('serves clients of both eras, also with streams, and notices when they disconnect', async () => {
    const door = await makeDoor({ token: 'secret' });
    const { legacy, modern, transport, heard } = await connectFetch(door, 'secret');
    expect((await legacy.listTools()).tools.length).toBeGreaterThan(5);
    await legacy.callTool(SLOW, undefined, { onprogress });
    expect(steps(heard[0])).toEqual([1, 2, 3]);
    await modern.callTool(SLOW, { onprogress });
    expect(steps(heard[1])).toEqual([1, 2, 3]);
    await giveUp(modern, 'gone from fetch');
    expect(door.sessions).toBe(1);
    await transport.terminateSession();
    expect(door.sessions).toBe(0);
  });

  it('returns long results completely', async () => {
    const door = await makeDoor({ token: 'secret' });
    const text = 'x'.repeat(3_000_000);
    const reply = await fetchHandler(door)(
      new Request('http://localhost/tools/basic_echo', {
        method: 'POST',
        body: JSON.stringify({ text }),
        headers: { authorization: 'Bearer secret', 'content-type': 'application/json' },
      }),
    );
    expect([reply.status, (await reply.text()).includes(text)]).toEqual([200, true]);
  });

  it('admits no request without a credential, because it cannot know where a request comes from', async () => {
    const reply = await fetchHandler(await makeDoor())(new Request('http://localhost/tools'));
    expect([reply.status, await reply.text()]).toEqual([401, expect.stringContaining('identify')]);
  });

  it('is what Hono uses on platforms other than Node', async () => {
    const app = new Hono();
    app.use(honoMiddleware(await makeDoor({ token: 'secret', basePath: '/gateway' })));
    app.get('/own', (context) => context.text('own'));
    const headers = { authorization: 'Bearer secret' };
    expect((await app.request('http://localhost/gateway/tools', { headers })).status).toBe(200);
    expect(await (await app.request('/own')).text()).toBe('own');
  });
});

describe('admission', () => {
  const status = async (url: string, headers: Record<string, string>) => (await fetch(url, { headers })).status;

  it('needs no credential on loopback, under a loopback name', async () => {
    const at = await serveNode((await makeDoor()).handle);
    expect(await status(`${at}/tools`, {})).toBe(200);
    expect(await status(`${at}/tools`, { 'x-forwarded-for': '192.0.2.1' })).toBe(401);
    expect(await statusAs(at, ['Host: evil.example'])).toBe(403);
    expect(await statusAs(at, ['Host: localhost', 'Origin: http://evil.example'])).toBe(403);
    expect(await statusAs(at, ['Host: localhost', 'Host: evil.example'])).toBe(403);
    expect(await statusAs(at, ['Host: localhost', 'Authorization: a', 'Authorization: b'])).toBe(403);
  });

  it('is refused from other addresses', async () => {
    const { handle } = await makeDoor({ allowedHosts: 'any' });
    const at = await serveNode((request, response) => {
      Object.defineProperty(request.socket, 'localAddress', { value: '192.0.2.1' });
      handle(request, response);
    });
    expect(await status(`${at}/tools`, {})).toBe(401);
  });

  it('is possible under the host names that the program allows', async () => {
    const at = await serveNode((await makeDoor({ allowedHosts: ['Tools.Example.com'] })).handle);
    expect(await statusAs(at, ['Host: tools.example.com'])).toBe(200);
    expect(await statusAs(at, ['Host: evil.example'])).toBe(403);
  });

  it('is decided by the program, which names the agent and can revoke it', async () => {
    const users = new Map([['alice', createVisitor('alice', { principal: 'alice@example.com' })]]);
    const door = await makeDoor({
      async identify({ headers }) {
        const visitor = users.get(String(headers['x-user']));
        if (visitor === undefined) throw new GatewayError('unauthorized', 'Log in first.');
        return visitor;
      },
    });
    const at = await serveNode(door.handle);
    expect(await status(`${at}/tools`, {})).toBe(401);
    expect(await status(`${at}/metrics`, { 'x-user': 'alice' })).toBe(403);
    const asked: string[] = [];
    const forget = gateway.use((call, next) => {
      asked.push(call.agent);
      return next();
    });
    atEnd(forget);
    const { client } = await connectHttp(`${at}/mcp`, { 'x-user': 'alice' });
    await client.callTool({ name: 'basic_whoami' });
    expect(asked).toEqual(['alice']);
    door.turnOut(users.get('alice')!);
    expect(door.sessions).toBe(0);
    expect(await status(`${at}/tools`, { 'x-user': 'alice' })).toBe(401);
  });

  it('lasts as long as the program says', async () => {
    const visitor = createVisitor('alice', { expires: Date.now() + 3_600_000 });
    const over = createVisitor('bob', { expires: Date.now() - 1 });
    const door = await makeDoor({ identify: ({ headers }) => (headers['x-user'] === 'bob' ? over : visitor) });
    const at = await serveNode(door.handle);
    expect(await status(`${at}/tools`, {})).toBe(200);
    expect(await status(`${at}/tools`, { 'x-user': 'bob' })).toBe(401);
  });

  it('requires a valid agent name', () => {
    expect(() => createVisitor('no name')).toThrow('"no name" is not a valid agent name');
  });
});

describe('a base path', () => {
  it('applies to all other paths too: HTTP+SSE and documents', async () => {
    const at = await serveNode((await makeDoor({ basePath: '/a/b/' })).handle);
    const { client } = await connectSse(`${at}/a/b/sse`);
    expect((await client.listTools()).tools.length).toBeGreaterThan(5);
    const document = (await (await fetch(`${at}/a/b/openapi.json`)).json()) as { servers: { url: string }[] };
    expect(document.servers[0]!.url).toBe('/a/b');
    expect((await fetch(`${at}/tools`)).status).toBe(404);
    expect((await fetch(`${at}/a/bc`)).status).toBe(404);
  });

  it('must be a path', async () => {
    await expect(createHttpDoor(gateway, { basePath: 'gateway' })).rejects.toThrow('basePath must be a path');
  });

  it('is where Express must mount the gateway', async () => {
    const app = express();
    app.use('/here', expressMiddleware(await makeDoor({ basePath: '/here/it/is' })));
    app.use('/there', expressMiddleware(await makeDoor()));
    app.use((error: Error, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
      response.status(500).send(error.message);
    });
    const at = await serveNode(app);
    expect((await fetch(`${at}/here/it/is/tools`)).status).toBe(200);
    expect((await fetch(`${at}/here/tools`)).status).toBe(404);
    expect(await (await fetch(`${at}/there/tools`)).text()).toContain('basePath: "/there"');
  });

  it('cannot be a prefix of Fastify', async () => {
    const app = fastify();
    const plugin = fastifyPlugin(await makeDoor());
    await expect(app.register(plugin, { prefix: '/gateway' })).rejects.toThrow('basePath: "/gateway"');
  });
});

describe('tokens of an authorization server', () => {
  const jwt = { issuer: 'https://issuer.example.com' };
  const open = (http: object) => {
    const made = createGateway(configFromValue({ http }, { cwd: tempFolder(), env: {} }));
    atEnd(() => made.close());
    return made;
  };

  it('require the public URL in the configuration', async () => {
    await expect(createHttpDoor(open({ jwt }))).rejects.toThrow('http.public_url');
  });

  it('are described at the root', async () => {
    const resource = 'https://tools.example.com/gateway/mcp';
    const door = await createHttpDoor(open({ jwt, public_url: resource }), { basePath: '/gateway' });
    atEnd(() => door.close());
    const at = await listen(createServer(express().use(expressMiddleware(door))));
    const reply = await fetch(`${at}/gateway/mcp`, { method: 'POST' });
    const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(reply.headers.get('www-authenticate')!) ?? [];
    expect(metadata).toBe('https://tools.example.com/.well-known/oauth-protected-resource/gateway/mcp');
    const told = await fetch(at + new URL(metadata).pathname);
    expect(await told.json()).toMatchObject({ resource });
  });
});

it('closes with the Fastify app, even if streams are open', async () => {
  const door = await makeDoor();
  const app = fastify();
  await app.register(fastifyPlugin(door));
  const { client } = await connectHttp(`${await app.listen({ port: 0, host: '127.0.0.1' })}/mcp`);
  expect(door.sessions).toBe(1);
  await app.close();
  expect(door.sessions).toBe(0);
  await client.close();
});

it('reports a body that was already read and not kept', async () => {
  const door = await makeDoor();
  const at = await serveNode((request, response) => {
    request.resume().on('end', () => door.handle(request, response));
  });
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(`${at}/mcp`, { method: 'POST', body: '{}', headers });
  expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining('not in request.body')]);
});

/** The status of a request with only these headers. */
async function statusAs(at: string, lines: readonly string[]): Promise<number> {
  const { hostname, port } = new URL(at);
  const socket = connect(Number(port), hostname);
  socket.write(`GET /tools HTTP/1.1\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const chunk of socket) text += chunk;
  return Number(text.split(' ')[1]);
}
