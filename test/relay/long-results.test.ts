/** Long results are passed on while they come, and nothing that looks at results notices. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { toml } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';

type Send = (response: ServerResponse, id: number) => void | Promise<void>;

/** A server over HTTP whose one tool is answered by hand. */
async function startServer(send: Send) {
  const seen = { written: 0, closed: 0 };
  const web = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method } = JSON.parse(body);
    if (id === undefined) return void response.writeHead(202).end();
    response.on('close', () => seen.closed++);
    if (method === 'tools/call') return void send(response, id);
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'x', version: '1' },
      },
      'tools/list': { tools: [{ name: 'long', inputSchema: { type: 'object' } }] },
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({
        jsonrpc: '2.0',
        id,
        ...(results[method] ? { result: results[method] } : { error: { code: -32601, message: 'no' } }),
      }),
    );
  });
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    web.closeAllConnections();
    web.close();
  });
  return { url: `http://127.0.0.1:${(web.address() as AddressInfo).port}/mcp`, seen };
}

const JSON_TYPE = { 'content-type': 'application/json' };

async function openSession(origin: string) {
  const headers: Record<string, string> = { ...JSON_TYPE, accept: 'application/json, text/event-stream' };
  const post = (message: object) =>
    fetch(`${origin}/mcp`, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
  const opened = await post({ id: 0, method: 'initialize', params });
  headers['mcp-session-id'] = opened.headers.get('mcp-session-id')!;
  await opened.text();
  await post({ method: 'notifications/initialized' });
  const call = (id: number | string, name = 'up_long', args = {}) =>
    post({ id, method: 'tools/call', params: { name, arguments: args } });
  return { call, headers };
}

const read = async (response: Response) => (await response.json()) as { id: unknown; result: unknown };

const text = (size: number) => 'a"\\é{[]}\n'.repeat(size / 10);
const resultOf = (size: number, more = {}) => ({ content: [{ type: 'text', text: text(size) }], ...more });

const WAYS: readonly [string, (id: number, result: string) => string][] = [
  ['id first', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`],
  ['id last', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`],
  ['a line break at the end', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}\n`],
  ['another member behind', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result} , "x":[1,"}"] }`],
  ['spaces everywhere', (id, result) => `{ "jsonrpc": "2.0", "id": ${id}, "result": ${result} }`],
];

it.each(WAYS.flatMap(([way, write]) => [true, false].map((hasLength) => [way, hasLength, write] as const)))(
  'passes on a long result: %s, with a length %s',
  async (_, hasLength, write) => {
    const result = resultOf(700_000);
    const { url } = await startServer(async (response, id) => {
      const bytes = Buffer.from(write(id, JSON.stringify(result)));
      response.writeHead(200, hasLength ? { ...JSON_TYPE, 'content-length': bytes.length } : JSON_TYPE);
      for (let at = 0; at < bytes.length; at += 77_777) {
        response.write(bytes.subarray(at, at + 77_777));
        await turn();
      }
      response.end();
    });
    const gateway = await startHttp({ config: toml([{ namespace: 'up', url }]) });
    const { call } = await openSession(gateway.origin);
    const replies = await Promise.all(['a', 7, 'b'].map(async (id) => read(await call(id))));
    expect(replies.map(({ id }) => id)).toEqual(['a', 7, 'b']);
    for (const reply of replies) expect(reply.result).toEqual(result);
  },
);

it('passes on a result of a server on a pipe, and the small ones next to it', async () => {
  const gateway = await startHttp({ config: toml([{ namespace: 'up', command: server('flood') }]) });
  const { call } = await openSession(gateway.origin);
  const sizes = [9_000_000, 10, 5_000_000, 300_000];
  const replies = await Promise.all(sizes.map(async (bytes, id) => read(await call(id, 'up_big', { bytes }))));
  expect(replies.map(({ id }) => id)).toEqual([0, 1, 2, 3]);
  for (const [i, { result }] of replies.entries()) expect(JSON.stringify(result).length).toBeGreaterThan(sizes[i]!);
  const alone = await read(await call('x', 'up_big', { bytes: 6_000_000 }));
  expect(alone.id).toBe('x');
});

const BROKEN: readonly [string, (id: number, result: string) => string][] = [
  ['a member that would become ours', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result},"result":{}}`],
  ['a second id', (id, result) => `{"result":${result},"id":${id},"jsonrpc":"2.0","id":${id}}`],
  ['another id', (id, result) => `{"result":${result},"jsonrpc":"2.0","id":${id + 1000}}`],
  ['no id', (_, result) => `{"result":${result},"jsonrpc":"2.0"}`],
  ['an end in the middle', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result.slice(0, -5)}`],
  ['text behind it', (id, result) => `{"jsonrpc":"2.0","id":${id},"result":${result}}x`],
];

it.each(BROKEN)('breaks the reply off if the server wrote %s', async (_, write) => {
  const { url } = await startServer((response, id) => {
    response.writeHead(200, JSON_TYPE).end(write(id, JSON.stringify(resultOf(700_000))));
  });
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url }]) });
  const { call } = await openSession(gateway.origin);
  await expect(call(1).then((response) => response.text())).rejects.toThrow();
  // The session goes on.
  await expect(call(2).then((response) => response.text())).rejects.toThrow();
  const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
  expect(metrics).not.toMatch(/toolgate_calls_total\{[^}]*outcome="ok"[^}]*\} [1-9]/);
});

it('breaks the reply off if the server goes away in the middle', async () => {
  const { url } = await startServer((response, id) => {
    const bytes = Buffer.from(WAYS[0]![1](id, JSON.stringify(resultOf(700_000))));
    response.writeHead(200, { ...JSON_TYPE, 'content-length': bytes.length });
    response.write(bytes.subarray(0, 600_000), () => response.destroy());
  });
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url }]) });
  const { call } = await openSession(gateway.origin);
  await expect(call(1).then((response) => response.text())).rejects.toThrow();
});

it('pauses the server while its client does not read, and stops it when the client is gone', async () => {
  let written = 0;
  let isClosed = false;
  const SIZE = 40_000_000;
  const { url } = await startServer(async (response, id) => {
    const closed = once(response, 'close').then(() => {
      isClosed = true;
    });
    response.writeHead(200, { ...JSON_TYPE, 'content-length': SIZE });
    response.write(`{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`);
    const part = Buffer.alloc(100_000, 'a');
    while (!isClosed && written < SIZE) {
      written += part.length;
      if (!response.write(part)) await Promise.race([once(response, 'drain'), closed]);
    }
  });
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url }], { limits: { message: '64MiB' } }) });
  const { headers } = await openSession(gateway.origin);
  const { hostname, port } = new URL(gateway.origin);
  const socket = connect(Number(port), hostname).on('error', () => {});
  atEnd(() => socket.destroy());
  socket.pause();
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 5,
    method: 'tools/call',
    params: { name: 'up_long', arguments: {} },
  });
  const lines = Object.entries({ host: hostname, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('')}content-length: ${body.length}\r\n\r\n${body}`);
  await waitFor(() => written > 1_000_000);
  let before = -1;
  // Until it stands still. What is under way is in buffers of the system, of the gateway and of the server.
  await waitFor(() => {
    const stands = written === before;
    before = written;
    return stands;
  });
  expect(written).toBeLessThan(SIZE / 2);
  socket.resume();
  await waitFor(() => written >= SIZE);
  socket.destroy();
});

it('keeps results whole where something looks at them', async () => {
  const result = resultOf(700_000, { isError: true });
  const { url } = await startServer((response, id) => {
    response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
  const gateway = await startHttp({ config: toml([{ namespace: 'up', url, max_result: '10KB' }]) });
  const { call } = await openSession(gateway.origin);
  const reply = await (await call(1)).text();
  expect(reply.length).toBeLessThan(50_000);
  const other = await startHttp({ config: toml([{ namespace: 'up', url }]) });
  const session = await openSession(other.origin);
  expect((await read(await session.call(1))).result).toEqual(result);
  const metrics = await (await fetch(`${other.origin}/metrics`)).text();
  expect(metrics).toMatch(/toolgate_calls_total\{[^}]*tool_error[^}]*\} 1/);
});
