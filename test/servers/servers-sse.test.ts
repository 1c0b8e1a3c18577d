/** Servers over HTTP+SSE behind the gateway. */
import type { ServerResponse } from 'node:http';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import type { HttpConnection } from '../support/connection.ts';
import { runDoctor } from '../support/doctor.ts';
import { type HttpGateway, startHttp, startStdio } from '../support/gateway.ts';
import type { ModernConnection } from '../support/modern.ts';
import { textOf } from '../support/modern-servers.ts';
import { waitFor } from '../support/processes.ts';
import { call, callError, callText, logged, timed, toml, toolNames, toolsToBe } from '../support/running-gateway.ts';
import { startRaw, startSdk, startWeb } from '../support/sse-server.ts';
import { tempFolder } from '../support/temp.ts';

const HOME = tempFolder();
const TOOLS = ['up_echo', 'up_steps', 'up_wait', 'up_toggle'];

describe('the HTTP+SSE server of the SDK', () => {
  let upstream: Awaited<ReturnType<typeof startSdk>>;
  let gateway: HttpGateway;
  let legacy: HttpConnection;
  let modern: ModernConnection;
  beforeAll(async () => {
    upstream = await startSdk();
    const headers = { Authorization: 'Bearer its-own', 'X-Tenant': 'blue' };
    const config = toml([{ namespace: 'up', url: upstream.url, headers }], { controls: [] });
    gateway = await startHttp({ config, env: { HOME } });
    [legacy, modern] = [await gateway.connect(), await gateway.connectModern()];
  });

  it('serves clients of both eras', async () => {
    expect(await toolNames(legacy.client)).toEqual(TOOLS);
    for (const { client } of [legacy, modern]) {
      expect(textOf(await client.callTool({ name: 'up_echo', arguments: { n: 'ö' } }))).toBe('{"n":"ö"}');
      const { contents } = await client.readResource({ uri: 'up_sse://first' });
      expect(contents).toMatchObject([{ uri: 'sse://first', text: 'a text' }]);
      const { messages } = await client.getPrompt({ name: 'up_first' });
      expect(messages).toMatchObject([{ content: { text: 'a prompt' } }]);
    }
  });

  it('is listed as an SSE server, although nobody declared that', async () => {
    const { stdout } = await runCli(['list', 'servers'], { cwd: gateway.cwd, env: { HOME } });
    expect(stdout).toMatch(/^up +sse +up /);
    const status = await runCli(['status', '--json'], { cwd: gateway.cwd, env: { HOME } });
    expect(JSON.parse(status.stdout).gateways[0].servers).toMatchObject([{ key: 'up', kind: 'sse' }]);
  });

  it('receives the configured headers with the stream and with every message', () => {
    const paths = upstream.seen.map(({ verb, path }) => `${verb} ${path.split('?')[0]}`);
    expect(new Set(paths)).toEqual(new Set(['POST /sse', 'GET /sse', 'POST /messages']));
    for (const { headers } of upstream.seen)
      expect(headers).toMatchObject({ authorization: 'Bearer its-own', 'x-tenant': 'blue' });
  });

  it('reports progress before the answer, and answers calls concurrently', async () => {
    for (const { client, notifications } of [legacy, modern]) {
      notifications.length = 0;
      const asked = { name: 'up_steps', arguments: {}, _meta: { progressToken: 'mine' } };
      expect(textOf(await client.callTool(asked))).toBe('"done"');
      const progress = notifications.filter(({ method }) => method === 'notifications/progress');
      expect(progress.map(({ params }) => params)).toEqual(
        [1, 2, 3].map((n) => ({ progressToken: 'mine', progress: n })),
      );
    }
    const numbers = Array.from({ length: 30 }, (_, n) => n);
    const answers = await Promise.all(numbers.map((n) => callText(legacy.client, 'up_echo', { n })));
    expect(answers).toEqual(numbers.map((n) => `{"n":${n}}`));
  });

  it('is notified when a call is cancelled or times out', async () => {
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const cancelled = legacy.client.callTool({ name: 'up_wait' }, undefined, options).catch(() => 'cancelled');
    await waitFor(() => upstream.counts.waiting === 1);
    controller.abort();
    expect(await cancelled).toBe('cancelled');
    await waitFor(() => upstream.counts.cancelled === 1);
    const config = toml([{ namespace: 'up', url: upstream.url, timeout: '1s' }], { controls: [] });
    const hasty = await (await startHttp({ config, env: { HOME } })).connect();
    expect(await callError(hasty.client, 'up_wait')).toMatchObject({ code: 'source_timeout' });
    await waitFor(() => upstream.counts.cancelled === 2);
  });

  it('is listed again when its tools change', async () => {
    await callText(legacy.client, 'up_toggle');
    await toolsToBe(legacy.client, ['up_echo', 'up_steps', 'up_wait', 'up_extra', 'up_toggle']);
    await waitFor(() => modern.changes('tools') === 1);
    await callText(legacy.client, 'up_toggle');
    await toolsToBe(legacy.client, TOOLS);
  });

  it('fails running calls at once when it goes away, and its items return with it', async () => {
    const before = upstream.counts.waiting;
    const lost = callError(legacy.client, 'up_wait');
    await waitFor(() => upstream.counts.waiting === before + 1);
    await upstream.stop();
    // A call that is not failed at once ends with its timeout.
    expect((await lost).code).toBe('source_broken');
    await toolsToBe(legacy.client, []);
    await upstream.start();
    await toolsToBe(legacy.client, TOOLS, 10_000);
    expect(await callText(legacy.client, 'up_echo', { n: 2 })).toBe('{"n":2}');
  });
});

describe('an HTTP+SSE server is detected', () => {
  it('by its url alone, after a POST is refused there', async () => {
    const statuses = [400, 404, 405];
    const upstreams = await Promise.all(statuses.map(startSdk));
    const entries = upstreams.map(({ url }, n) => ({ namespace: `up${statuses[n]}`, url }));
    const { findings } = await runDoctor(toml(entries));
    for (const [n, { seen }] of upstreams.entries()) {
      expect(findings[n + 1]!.message).toBe('up, 4 tools, protocol 2025-11-25 sse 1.0.0');
      const asked = seen.map(({ verb, path }) => `${verb} ${path}`);
      expect(asked.slice(0, 3)).toEqual(['POST /sse', 'POST /sse', 'GET /sse']);
    }
  });

  it('without a POST if the configuration names the transport, in tools.toml or .mcp.json', async () => {
    const [ours, theirs] = [await startSdk(), await startSdk()];
    const config = toml([{ namespace: 'up', url: ours.url, transport: 'sse' }]);
    const foreign = JSON.stringify({ controls: [], mcpServers: { up: { type: 'sse', url: theirs.url } } });
    const gateways = [await startStdio({ config }), await startStdio({ files: { '.mcp.json': foreign } })];
    for (const { client } of gateways) expect(await callText(client, 'up_echo', { n: 1 })).toBe('{"n":1}');
    for (const { seen } of [ours, theirs]) {
      expect(seen[0]).toMatchObject({ verb: 'GET', path: '/sse' });
      expect(seen.filter(({ verb, path }) => verb === 'POST' && path === '/sse')).toEqual([]);
    }
  });

  it('only if it exists: otherwise the error of the first request is reported', async () => {
    const nothing = await startWeb((request, response) =>
      response.writeHead(request.method === 'GET' ? 410 : 404).end(),
    );
    const { findings } = await runDoctor(toml([{ namespace: 'up', url: nothing.url }]));
    expect(findings[1]!.message).toContain('answered with HTTP status 404; check the path of its url');
  });
});

describe('the message address that an HTTP+SSE server announces', () => {
  /** A server at /deep/sse that announces an address, and answers every call with the path it was posted to. */
  const startNaming = async (address: (origin: string) => string) => {
    let stream: ServerResponse | null = null;
    const web = await startWeb(async (request, response, path) => {
      if (path === '/deep/sse') {
        stream = response;
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`event: endpoint\ndata: ${address(web.origin)}\n\n`);
        return;
      }
      const { id, method } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      response.writeHead(202).end();
      const results: Record<string, unknown> = {
        initialize: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'x' } },
        'tools/list': { tools: [{ name: 'where', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: path }] },
      };
      if (id !== undefined)
        stream!.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: results[method] })}\n\n`);
    });
    return web;
  };

  it('can be absolute, relative, a path or only a query', async () => {
    const addresses: [(origin: string) => string, string][] = [
      [() => '/elsewhere?session=1', '/elsewhere?session=1'],
      [() => 'messages?session=2', '/deep/messages?session=2'],
      [() => '?session=3', '/deep/sse?session=3'],
      [(origin) => `${origin}/whole?session=4`, '/whole?session=4'],
    ];
    const upstreams = await Promise.all(addresses.map(([address]) => startNaming(address)));
    const entries = upstreams.map(({ origin }, n) => ({
      namespace: `up${n}`,
      url: `${origin}/deep/sse`,
      transport: 'sse',
    }));
    const { client } = await startStdio({ config: toml(entries) });
    const paths = addresses.map((_, n) => callText(client, `up${n}_where`));
    expect(await Promise.all(paths)).toEqual(addresses.map(([, path]) => path));
  });

  it('is refused on another host, and nothing is sent there', async () => {
    const thief = await startWeb((_, response) => response.writeHead(202).end());
    const addresses = [`${thief.origin}/messages`, `//127.0.0.1:${new URL(thief.origin).port}/messages`, 'http://['];
    const upstreams = await Promise.all(addresses.map((to) => startRaw(`event: endpoint\ndata: ${to}\n\n`)));
    const entries = upstreams.map(({ url }, n) => ({
      namespace: `up${n}`,
      url,
      transport: 'sse',
      headers: { Authorization: 'Bearer its-own' },
    }));
    const { findings } = await runDoctor(toml(entries));
    for (const { message } of findings.slice(1))
      expect(message).toBe('down: named a URL for messages on another host, which is refused');
    expect(thief.seen).toEqual([]);
  });

  it('can be missing: the start times out and does not delay other servers', async () => {
    const [mute, closed, unanswered] = [
      await startRaw(': hello\n\nevent: message\ndata: {}\n\n'),
      await startWeb((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.end('event: endpoint\ndata: /messages\n\n');
      }),
      await startWeb(() => {}),
    ];
    const servers = { mute, closed, unanswered };
    const entries = Object.entries(servers).map(([namespace, { url }]) => ({ namespace, url, transport: 'sse' }));
    const brief = entries.map((entry) => ({ ...entry, start_timeout: '1s' }));
    const { value, ms } = await timed(runDoctor(toml(brief)));
    // The default of start_timeout is 30 s.
    expect(ms).toBeLessThan(15_000);
    expect(value.findings.slice(1).map(({ message }) => message)).toEqual([
      expect.stringContaining(
        'down: did not start and list its tools within 1 s; raise start_timeout if it needs longer',
      ),
      'down: closed its stream',
      expect.stringContaining(
        'within 1 s; raise start_timeout if it needs longer. It has not named the URL for messages',
      ),
    ]);
    const gateway = await startStdio({ config: toml(entries) });
    await waitFor(() => mute.seen.length >= 2);
    expect((await gateway.stop()).code).toBe(0);
  });

  it('can refuse messages: the call fails with the reason', async () => {
    const upstream = await startRaw('event: endpoint\ndata: /messages\n\n', (_, response) =>
      response.writeHead(500).end(),
    );
    const config = toml([{ namespace: 'up', url: upstream.url, transport: 'sse' }]);
    const gateway = await startStdio({ config });
    await logged(gateway, 'answered with HTTP status 500');
    expect(await call(gateway.client, 'up_echo')).toMatchObject({ isError: true });
  });
});
