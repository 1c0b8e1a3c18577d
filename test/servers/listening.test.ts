/** How the gateway listens to modern servers: one request per server, for what it announces, reopened when it ends. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import type { HttpConnection } from '../support/connection.ts';
import { startHttp } from '../support/gateway.ts';
import { messagesOf, stdioServer } from '../support/modern-servers.ts';
import {
  Fault,
  type HttpServer,
  type Method,
  modernMethods,
  openStream,
  SILENCE,
  sendEvent,
  startServer,
  tool,
} from '../support/plain-http-server.ts';
import { waitFor } from '../support/processes.ts';
import { callText, toml } from '../support/running-gateway.ts';
import { tempFolder } from '../support/temp.ts';

const LISTEN = 'subscriptions/listen';

/** A server that lists a given number of tools and does not announce changes. */
async function startGrowing(listen?: Method, capabilities?: object) {
  const tools = [tool('first')];
  const list = () => ({ resultType: 'complete', ttlMs: 60_000, cacheScope: 'public', tools });
  const server = await startServer(
    modernMethods({ 'tools/list': list, ...(listen !== undefined && { [LISTEN]: listen }) }, capabilities),
  );
  return Object.assign(server, { grow: (name: string) => void tools.push(tool(name)) });
}

const refuse: Record<string, Method> = {
  status: () => {
    throw new Fault(-32_601, 'Method not found', { status: 404 });
  },
  result: () => {
    throw new Fault(-32_603, 'Not today', { status: 200 });
  },
  event: (_, { response, id }) => {
    openStream(response);
    sendEvent(response, { jsonrpc: '2.0', id, error: { code: -32_603, message: 'Not today' } });
    response.end();
    return SILENCE;
  },
};

describe('listening to a modern server over HTTP', () => {
  type Growing = Awaited<ReturnType<typeof startGrowing>>;
  let steady: Growing;
  let dropped: Growing;
  let ended: Growing;
  let failing: Growing;
  let silent: Growing;
  let refusing: [string, Growing][];
  let one: HttpConnection;
  let two: HttpConnection;
  const times = (server: HttpServer) => server.of(LISTEN).length;

  beforeAll(async () => {
    const capabilities = { tools: { listChanged: true }, prompts: {}, resources: { listChanged: true } };
    steady = await startGrowing(undefined, capabilities);
    [dropped, ended, failing] = await Promise.all([startGrowing(), startGrowing(), startGrowing()]);
    silent = await startGrowing(undefined, { tools: {} });
    refusing = await Promise.all(
      Object.entries(refuse).map(async ([how, listen]) => [how, await startGrowing(listen)] as [string, Growing]),
    );
    const servers = Object.entries({ steady, dropped, ended, failing, silent, ...Object.fromEntries(refusing) });
    const entries = servers.map(([namespace, { url }]) => ({ namespace, url }));
    const gateway = await startHttp({ config: toml(entries, { controls: [] }) });
    [one, two] = [await gateway.connect(), await gateway.connect()];
    await waitFor(() => [steady, dropped, ended, failing].every(({ streams }) => streams.size === 1));
  });

  const listed = async (name: string) => (await one.client.listTools()).tools.some((item) => item.name === name);

  it('opens one stream for all callers, and only for what the server announces', async () => {
    await Promise.all([callText(one.client, 'steady_first'), callText(two.client, 'steady_first')]);
    const [request, ...more] = steady.of(LISTEN);
    expect(more).toEqual([]);
    expect(request!.headers).toMatchObject({ 'mcp-method': LISTEN, 'mcp-protocol-version': '2026-07-28' });
    expect(request!.message.params).toMatchObject({
      notifications: { toolsListChanged: true, resourcesListChanged: true },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'toolgate' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    });
    expect(request!.message.params!.notifications).not.toHaveProperty('promptsListChanged');
  });

  it('refreshes a changed list once per burst, and notifies every caller', async () => {
    const before = steady.of('tools/list').length;
    const told = [one.changes('tools'), two.changes('tools')];
    steady.grow('second');
    for (let n = 0; n < 20; n++) steady.announce('notifications/tools/list_changed');
    await waitFor(() => listed('steady_second'));
    await waitFor(() => two.changes('tools') > told[1]!);
    await sleep(150);
    expect(steady.of('tools/list').length).toBe(before + 1);
    expect([one.changes('tools'), two.changes('tools')]).toEqual(told.map((count) => count + 1));
  });

  it('is not started for a server that does not announce changes', () => {
    expect(times(silent)).toBe(0);
    expect(silent.seen.filter(({ verb }) => verb !== 'POST')).toEqual([]);
  });

  describe('a listening stream that ends', () => {
    beforeAll(async () => {
      const busy = { ...failing.methods };
      const unavailable: Method = (_, { response }) => {
        response.writeHead(503).end('Come back later');
        return SILENCE;
      };
      failing.methods = { ...busy, [LISTEN]: unavailable };
      for (const server of [dropped, ended, failing]) server.grow('meanwhile');
      for (const stream of [...dropped.streams, ...failing.streams]) stream.destroy();
      for (const stream of ended.streams) {
        sendEvent(stream, { jsonrpc: '2.0', id: 'listen', result: { resultType: 'complete' } });
        stream.end();
      }
      await waitFor(() => times(failing) === 2);
      failing.methods = busy;
    });

    it.each(['dropped', 'ended'])('is reopened after a pause, and missed changes are listed (%s)', async (name) => {
      const server = { dropped, ended }[name]!;
      await waitFor(() => server.streams.size === 1);
      await waitFor(() => listed(`${name}_meanwhile`));
      expect(times(server)).toBe(2);
      expect(await callText(one.client, `${name}_meanwhile`)).toBe('{}');
    });

    it('is reopened after the server was unable to answer for a while', async () => {
      await waitFor(() => failing.streams.size === 1);
      await waitFor(() => listed('failing_meanwhile'));
      expect(times(failing)).toBe(3);
      failing.grow('last');
      failing.announce('notifications/tools/list_changed');
      await waitFor(() => listed('failing_last'));
    });

    it('keeps the known items if the server fails to list them once', async () => {
      const { methods } = steady;
      const failures = () => steady.of('tools/list').length;
      const before = failures();
      steady.methods = { ...methods, 'tools/list': refuse.result! };
      steady.announce('notifications/tools/list_changed');
      await waitFor(() => failures() === before + 1);
      await sleep(100);
      expect(await listed('steady_first')).toBe(true);
      steady.methods = methods;
      steady.grow('third');
      steady.announce('notifications/tools/list_changed');
      await waitFor(() => listed('steady_third'));
    });

    it.each(Object.keys(refuse))('is not reopened for a server that answered with an error (%s)', async (how) => {
      const [, server] = refusing.find(([name]) => name === how)!;
      // More time than the first pause has passed since the request.
      expect(times(server)).toBe(1);
      expect(await callText(one.client, `${how}_first`)).toBe('{}');
    });
  });
});

describe('listening to a modern server over stdio', () => {
  const folder = tempFolder();
  const flags = { told: [], mute: ['--mute'], error: ['--listen', 'error'], end: ['--listen', 'end'] };
  let client: HttpConnection;
  const times = (name: string, method: string) =>
    messagesOf(join(folder, name)).filter((message) => message.method === method).length;

  beforeAll(async () => {
    const entries = Object.entries(flags).map(([namespace, more]) => ({
      namespace,
      command: stdioServer(...more, '--chunks', join(folder, namespace)),
    }));
    const gateway = await startHttp({ config: toml(entries, { controls: [] }) });
    client = await gateway.connect();
  });

  it('sends one request, and refreshes the list when the server reports a change', async () => {
    expect(times('told', LISTEN)).toBe(1);
    expect(times('told', 'tools/list')).toBe(1);
    await callText(client.client, 'told_tell', { methods: ['notifications/tools/list_changed'] });
    await waitFor(() => times('told', 'tools/list') === 2);
    expect(times('told', LISTEN)).toBe(1);
  });

  it('is not started for a server that does not announce changes', () => {
    expect(times('mute', 'tools/list')).toBe(1);
    expect(times('mute', LISTEN)).toBe(0);
  });

  it('is retried with growing pauses if the server ends it, and not at all if the server refuses it', async () => {
    await waitFor(() => times('end', LISTEN) === 3);
    await waitFor(() => times('end', 'tools/list') === 3);
    await sleep(1000);
    expect(times('end', LISTEN)).toBe(3);
    expect(times('error', LISTEN)).toBe(1);
    expect(times('error', 'tools/list')).toBe(1);
  });
});
