/** An HTTP server that goes away, comes back, or forgets its sessions. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { killServer } from '../support/in-process-server.ts';
import { patient } from '../support/patience.ts';
import { freePort } from '../support/ports.ts';
import { waitFor } from '../support/processes.ts';
import {
  call,
  callError,
  callText,
  logged,
  pidOf,
  timed,
  toml,
  toolNames,
  toolsToBe,
} from '../support/running-gateway.ts';
import { server, startHttpServer } from '../support/server.ts';

/** A web server with custom answers. */
async function startFake(handle: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const fake = createServer(async (request, response) => {
    handle(request, response, Buffer.concat(await request.toArray()).toString());
  });
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    fake.closeAllConnections();
    fake.close();
  });
  return { origin: `http://127.0.0.1:${(fake.address() as AddressInfo).port}` };
}

const other = { namespace: 'other', command: server('basic', '--tools', 'echo') };

it('removes the items of an HTTP server that stops, and restores them when it listens again', async () => {
  const port = await freePort();
  const first = await startHttpServer('--tools', 'echo,whoami', '--port', port);
  const config = toml([{ namespace: 'up', url: first.url }, other]);
  const gateway = await startStdio({ config });
  const { client } = gateway;
  expect(await toolNames(client)).toEqual(['up_echo', 'up_whoami', 'other_echo']);
  await first.stop();
  // No call is needed: the GET stream of the server has ended.
  await toolsToBe(client, ['other_echo']);
  await logged(gateway, 'down: refused the connection; is it running?');
  expect(await callText(client, 'other_echo')).toBe('{}');
  const second = await startHttpServer('--tools', 'echo,whoami', '--port', port);
  await toolsToBe(client, ['up_echo', 'up_whoami', 'other_echo'], 10_000);
  expect(await pidOf(client, 'up')).toBe(second.pid);
});

it('notices a restart that was too quick to observe, and opens a new session', async () => {
  const port = await freePort();
  const first = await startHttpServer('--tools', 'echo,whoami', '--port', port);
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: first.url }]) });
  await callText(client, 'up_echo');
  await first.stop();
  const second = await startHttpServer('--tools', 'echo,whoami', '--port', port);
  await waitFor(async () => (await pidOf(client, 'up').catch(() => 0)) === second.pid);
  expect((await second.log()).sessions).toHaveLength(1);
});

it('fails the running calls at once when an HTTP server stops', async () => {
  const upstream = await startHttpServer('--delay', 60_000);
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: upstream.url }, other]) });
  const failing = timed(Promise.all([callError(client, 'up_echo'), callError(client, 'up_count')]));
  await waitFor(
    async () => (await upstream.log()).requests.filter(({ body }) => body.includes('tools/call')).length === 2,
  );
  const stopped = performance.now();
  killServer(upstream.pid);
  for (const error of (await failing).value) {
    expect(error.code).toBe('source_broken');
    expect(error.message).toMatch(/^Server "up" broke the connection \(.+\)\.$/);
  }
  // The server would answer after 60 s.
  expect(performance.now() - stopped).toBeLessThan(patient(10_000));
  expect(await callText(client, 'other_echo')).toBe('{}');
});

it.each(['--json', '--sse'])(
  'opens a new session when the server forgets one, without a failed call (%s)',
  async (mode) => {
    // Each session lasts for the handshake, the list and two calls.
    const upstream = await startHttpServer(mode, '--tools', 'echo', '--forget-after', 4);
    const gateway = await startHttp({ config: toml([{ namespace: 'up', url: upstream.url }]) });
    const { client, changes } = await gateway.connect();
    expect(await toolNames(client)).toEqual(['up_echo']);
    for (let n = 0; n < 9; n++) expect(await callText(client, 'up_echo', { n })).toBe(`{"n":${n}}`);
    const { sessions, requests } = await upstream.log();
    expect(requests.filter(({ status }) => status === 404).length).toBeGreaterThanOrEqual(3);
    expect(sessions).toHaveLength(1);
    // The items were never removed.
    expect(changes('tools')).toBe(0);
  },
);

it('retries every call that a forgotten session refused, and only those, once', async () => {
  const upstream = await startHttpServer('--tools', 'echo,count', '--forget-after', 6);
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: upstream.url }]) });
  await toolNames(client);
  const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => call(client, 'up_echo', { n })));
  expect(answers).toEqual(answers.map((_, n) => ({ text: `{"n":${n}}`, isError: false })));
  expect(await callText(client, 'up_count')).toBe('9');
});

it('fails calls one by one on a server that forgets every session at once', async () => {
  // The handshake and the list, and no call.
  const upstream = await startHttpServer('--tools', 'echo', '--forget-after', 2);
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: upstream.url }]) });
  await toolNames(client);
  expect(await callError(client, 'up_echo')).toMatchObject({
    code: 'source_broken',
    message: 'Server "up" has forgotten the session again. Try again later.',
  });
});

it('cancels a call that was moved to a new session', async () => {
  const upstream = await startHttpServer('--tools', 'echo', '--forget-after', 3, '--delay', 400);
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: upstream.url }]) });
  expect(await callText(client, 'up_echo')).toBe('{}');
  const controller = new AbortController();
  const moved = client.callTool({ name: 'up_echo' }, undefined, { signal: controller.signal }).catch(() => 'cancelled');
  const bodies = async (text: string) => (await upstream.log()).requests.filter(({ body }) => body.includes(text));
  // The first call, the refused one, and its retry.
  await waitFor(async () => (await bodies('tools/call')).length === 3);
  controller.abort();
  expect(await moved).toBe('cancelled');
  await waitFor(async () => (await bodies('notifications/cancelled')).length === 1);
});

it('does not require a GET stream: a 404 there does not mean a forgotten session', async () => {
  const { origin } = await startFake((request, response, body) => {
    if (request.method !== 'POST') return void response.writeHead(404).end('Cannot GET /mcp');
    const { id, method } = JSON.parse(body);
    if (id === undefined) return void response.writeHead(202).end();
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 'x', version: '1' },
      },
      'tools/list': { tools: [{ name: 'only', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'fine' }] },
    };
    const headers = { 'content-type': 'application/json', 'mcp-session-id': 'the-only-one' };
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
  });
  const { client } = await startStdio({ config: toml([{ namespace: 'up', url: `${origin}/mcp` }]) });
  expect(await toolNames(client)).toEqual(['up_only']);
  for (let n = 0; n < 5; n++) expect(await callText(client, 'up_only')).toBe('fine');
});

it('survives a web server that only resembles an MCP server', async () => {
  const replies = [
    [200, 'text/html', '<h1>Welcome</h1>'],
    [200, 'application/json', '{"jsonrpc":"2.0","id":1}'],
    [200, 'text/event-stream', 'data: {"jsonrpc":"2.0"\n\ndata: nothing\n\n'],
    [200, 'text/event-stream', ''],
    [302, 'text/plain', ''],
    [401, 'application/json', '{"error":"unauthorized"}'],
    [500, 'text/plain', 'oops'],
    [204, 'text/plain', ''],
  ] as const;
  const { origin } = await startFake((request, response) => {
    const [status, type, body] = replies[Number(request.url!.slice(1))]!;
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  const servers = replies.map((_, n) => ({ namespace: `fake${n}`, url: `${origin}/${n}` }));
  const gateway = await startStdio({ config: toml([...servers, other]) });
  expect(await toolNames(gateway.client)).toEqual(['other_echo']);
  await logged(gateway, 'answered with HTTP status 401; check the headers in its configuration');
  await logged(gateway, 'answered with HTTP status 302; redirects are not followed, use the final url');
  await logged(gateway, 'answered with HTTP status 500');
  expect(await callText(gateway.client, 'other_echo')).toBe('{}');
});
