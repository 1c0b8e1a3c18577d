/** HTTP+SSE of the first revision: `/sse` and `/messages`. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { openEvents } from '../support/http-events.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, PING, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const SERVERS = serversToml({ up: server('changing'), slow: server('hang'), asking: server('asking') });
let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: `controls = []\n${SERVERS}` });
});

/** Progress that any client received. The SDK drops progress that arrives together with the answer. */
const steps: unknown[] = [];

async function connect(headers: Record<string, string> = {}, at = gateway): Promise<Client> {
  const client = new Client({ name: 'old', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
    action: 'accept',
    content: { word: `about ${params.message}` },
  }));
  const init = { headers };
  const transport = new SSEClientTransport(new URL(`${at.origin}/sse`), {
    requestInit: init,
    eventSourceInit: { fetch: (url, more) => fetch(url, { ...more, headers: { ...more.headers, ...headers } }) },
  });
  transport.onmessage = (message) => {
    if ('method' in message && message.method === 'notifications/progress') steps.push(message.params?.progress);
  };
  atEnd(() => client.close());
  await client.connect(transport);
  return client;
}

describe('a client of revision 2024-11-05', () => {
  it('lists, calls, receives progress and list changes, and answers a question', async () => {
    const client = await connect();
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes++;
    });
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('slow_slow');
    const args = { ms: 40, steps: 4, tag: 'x' };
    const options = { onprogress: () => {} };
    const result = await client.callTool({ name: 'slow_slow', arguments: args }, undefined, options);
    expect(textOf(result)).toBe('slow x');
    expect(steps).toEqual([1, 2, 3, 4]);
    await client.callTool({ name: 'up_add_tool', arguments: { name: 'one_more' } });
    await waitFor(() => changes > 0);
    expect(textOf(await client.callTool({ name: 'asking_ask', arguments: { word: 'w' } }))).toContain(
      'about Server \\"asking\\" asks: w#1',
    );
  });

  it('loses its session and its running calls when its stream closes', async () => {
    const client = await connect();
    client.callTool({ name: 'slow_hang', arguments: { tag: 'left' } }).catch(() => {});
    await callsInFlight(gateway);
    await client.close();
    const other = await connect();
    await waitFor(async () => textOf(await other.callTool({ name: 'slow_cancelled' })).includes('left'));
  });

  it('is isolated from another client that uses the same request ids', async () => {
    const [one, two] = [await connect(), await connect()];
    const slow = one.callTool({ name: 'slow_slow', arguments: { ms: 200, tag: 'one' } });
    const quick = two.callTool({ name: 'slow_slow', arguments: { ms: 10, tag: 'two' } });
    expect([textOf(await slow), textOf(await quick)]).toEqual(['slow one', 'slow two']);
  });
});

async function open(): Promise<{ messages: string; events: Awaited<ReturnType<typeof openEvents>> }> {
  const events = await openEvents(gateway, '/sse', {});
  const first = await events.next();
  expect(first?.name).toBe('endpoint');
  return { events, messages: first!.data };
}

describe('/messages', () => {
  it('accepts a message and answers it on the stream', async () => {
    const { events, messages } = await open();
    const reply = await gateway.post(initialize('2024-11-05'), {}, messages);
    expect([reply.status, await reply.text()]).toEqual([202, 'Accepted']);
    expect((await events.next())?.message).toMatchObject({ id: 0, result: { protocolVersion: '2024-11-05' } });
    await gateway.post(`[${PING},${PING.replace('1', '2')}]`, {}, messages);
    expect([(await events.next())?.message, (await events.next())?.message]).toMatchObject([
      { result: {} },
      { result: {} },
    ]);
  });

  it.each([
    ['no session', '/messages', PING, 400, 'session_missing'],
    ['an unknown session', '/messages?session_id=x', PING, 404, 'session_unknown'],
  ])('refuses %s', async (_, path, body, status, code) => {
    const reply = await gateway.post(body, {}, path);
    expect(reply.status).toBe(status);
    expect(await reply.json()).toMatchObject({ error: { data: { code } } });
  });

  it.each([
    ['what is not JSON', '{', {}, 400],
    ['another type of content', PING, { 'content-type': 'text/plain' }, 415],
    ['a batch before a revision is agreed on', `[${PING}]`, {}, 400],
  ])('refuses %s, and the session stays usable', async (_, body, headers, status) => {
    const { events, messages } = await open();
    expect((await gateway.post(body, headers, messages)).status).toBe(status);
    await gateway.post(PING, {}, messages);
    expect((await events.next())?.message).toMatchObject({ id: 1, result: {} });
  });

  it('refuses a request of the stateless revision', async () => {
    const { messages } = await open();
    const meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}';
    const reply = await gateway.post(
      `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":${meta}}}`,
      {},
      messages,
    );
    expect(reply.status).toBe(400);
    expect(await reply.text()).toContain('send the message to /mcp');
  });

  it('does not accept a session id from /mcp, and /mcp does not accept one from /sse', async () => {
    const session = await startSession(gateway);
    expect((await gateway.post(PING, {}, `/messages?session_id=${session.id}`)).status).toBe(404);
    const { messages } = await open();
    const id = new URL(messages, gateway.origin).searchParams.get('session_id')!;
    expect((await gateway.post(PING, { 'mcp-session-id': id })).status).toBe(404);
  });

  it.each([
    ['POST', '/sse', 'GET'],
    ['GET', '/messages?session_id=x', 'POST'],
  ])('%s %s is answered with 405', async (method, path, allow) => {
    const reply = await fetch(gateway.origin + path, { method });
    expect([reply.status, reply.headers.get('allow')]).toEqual([405, allow]);
  });

  it('GET /sse that accepts only JSON is answered with 406', async () => {
    expect((await fetch(`${gateway.origin}/sse`, { headers: { accept: 'application/json' } })).status).toBe(406);
  });
});

describe('the HTTP+SSE door', () => {
  it('requires the bearer token', async () => {
    const guarded = await startHttp({ config: `controls = []\n${SERVERS}`, env: { BEARER_TOKEN: 's3cret' } });
    const refused = await fetch(`${guarded.origin}/sse`, { headers: { accept: 'text/event-stream' } });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="toolgate"']);
    const client = await connect({ authorization: 'Bearer s3cret' }, guarded);
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  it('shares the session limit with /mcp', async () => {
    const small = await startHttp({ config: 'controls = []\n[http]\nmax_sessions = 1\n' });
    const session = await startSession(small);
    const stream = await openEvents(small, '/sse', {});
    expect(stream.status).toBe(200);
    // The session without a stream was evicted to make room. A session with a stream counts as in use.
    expect((await session.post(PING)).status).toBe(404);
    expect((await small.post(initialize())).status).toBe(503);
    stream.drop();
    await waitFor(async () => (await small.post(initialize())).status === 200);
  });

  it.each([
    ['http.sse = false', { config: `controls = []\n[http]\nsse = false\n` }],
    ['ENABLE_LEGACY_MCP=false', { config: 'controls = []\n', env: { ENABLE_LEGACY_MCP: 'false' } }],
  ])('is switched off by %s', async (_, options) => {
    const off = await startHttp(options);
    const statuses = [
      (await fetch(`${off.origin}/sse`, { headers: { accept: 'text/event-stream' } })).status,
      (await off.post(PING, {}, '/messages?session_id=x')).status,
      (await off.post(initialize())).status,
    ];
    expect(statuses).toEqual([404, 404, 200]);
  });
});
