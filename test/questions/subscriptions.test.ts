/** Resources that clients of either era want to hear of, on servers of either era. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { messagesOf as linesOf } from '../pass-through/clients.ts';
import { childEnv, startChild } from '../support/child.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { mirrored } from '../support/modern.ts';
import { alive, descendants, waitFor } from '../support/processes.ts';
import { fixture, server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { callModern, jsonOf } from './use.ts';

const UPDATED = 'notifications/resources/updated';
const CLIENTS = ['legacy', 'modern'] as const;
const UPSTREAMS = ['legacy stdio', 'modern stdio', 'modern http'] as const;
type Upstream = (typeof UPSTREAMS)[number];

/** The line that names it in a configuration. */
async function placeOf(upstream: Upstream, log: string): Promise<string> {
  const name = upstream === 'legacy stdio' ? 'asking' : 'asking-modern';
  if (upstream !== 'modern http') return `command = ${JSON.stringify(server(name, '--log', log))}`;
  const args = [fixture(name), '--port', '0', '--log', log];
  const child = startChild(process.execPath, args, { cwd: tempFolder(), env: childEnv() });
  const port = await waitFor(() => /listening (\d+)/.exec(child.stdout())?.[1]);
  return `url = "http://127.0.0.1:${port}/mcp"`;
}

/** A gateway before a server that tells of its resources; `told()` is what the server was told about them. */
async function start(upstream: Upstream) {
  const log = join(tempFolder(), 'log');
  const scheme = upstream === 'legacy stdio' ? 'asking://' : 'modern://';
  const place = await placeOf(upstream, log);
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = "x"\n${place}\n` });
  const { tools } = (await (await gateway.connect()).client.listTools()) as { tools: { name: string }[] };
  const touchName = tools.find(({ name: one }) => one.endsWith('touch'))!.name;
  const touch = async (uri: string) => {
    const { result } = await callModern(gateway, touchName, { uri });
    await sleep(60);
    return result;
  };
  const told = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Told)
      .flatMap(({ method, params }) => {
        if (method === 'resources/subscribe') return [`+${params.uri}`];
        if (method === 'resources/unsubscribe') return [`-${params.uri}`];
        return method === 'subscriptions/listen' ? [(params.notifications.resourceSubscriptions ?? []).join()] : [];
      });
  return { gateway, touch, told, one: `${scheme}one`, two: `${scheme}two` };
}

interface Told {
  readonly method?: string;
  readonly params: { readonly uri: string; readonly notifications: { readonly resourceSubscriptions?: string[] } };
}

interface Hearer {
  /** The URIs it was told of, in order. */
  heard(): string[];
  leave(): Promise<void>;
}

async function listenLegacy(gateway: HttpGateway, ...uris: string[]): Promise<Hearer> {
  const { client, notifications } = await gateway.connect();
  for (const uri of uris) await client.subscribeResource({ uri });
  return {
    heard: () => notifications.filter(({ method }) => method === UPDATED).map(({ params }) => String(params?.uri)),
    async leave() {
      for (const uri of uris) await client.unsubscribeResource({ uri });
    },
  };
}

/** A stream of a modern client. Gives also what of its wishes is honoured. */
async function listenModern(gateway: HttpGateway, ...uris: string[]): Promise<Hearer & { honoured: unknown }> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = JSON.stringify({ notifications: { resourceSubscriptions: uris }, _meta: envelope });
  const abort = new AbortController();
  const response = await fetch(gateway.url, {
    method: 'POST',
    signal: abort.signal,
    body: `{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":${params}}`,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...mirrored('subscriptions/listen', params),
    },
  });
  if (response.headers.get('content-type') === 'application/json') throw new Error(String(await linesOf(response)));
  let text = '';
  const reading = (async () => {
    for await (const chunk of response.body!) text += Buffer.from(chunk as Uint8Array).toString();
  })();
  reading.catch(() => {});
  const messages = () =>
    [...text.matchAll(/^data: (.*)$/gm)].map(
      ([, line]) => JSON.parse(line!) as { method: string; params: { uri: string; notifications: object } },
    );
  await waitFor(() => messages().length > 0);
  return {
    honoured: messages()[0]!.params.notifications,
    heard: () => messages().flatMap(({ method, params: { uri } }) => (method === UPDATED ? [uri] : [])),
    async leave() {
      abort.abort();
      await sleep(60);
    },
  };
}

const listeners = { legacy: listenLegacy, modern: listenModern };

async function listen(era: 'legacy' | 'modern', gateway: HttpGateway, ...uris: string[]): Promise<Hearer> {
  const hearer = await listeners[era](gateway, ...uris);
  // Over HTTP what a modern server is asked for next may overtake what it is to tell of.
  await sleep(60);
  return hearer;
}

describe.each(CLIENTS.flatMap((client) => UPSTREAMS.map((upstream) => [client, upstream] as const)))(
  'a %s client and a server called %s',
  (client, upstream) => {
    it('tells exactly those who asked, and the server once', async () => {
      const { gateway, touch, told, one, two } = await start(upstream);
      const first = await listen(client, gateway, one);
      const second = await listen(client, gateway, one, two);
      const none = await listenLegacy(gateway);
      await touch(one);
      await touch(two);
      expect([first, second, none].map(({ heard }) => heard())).toEqual([[one], [one, two], []]);
      await first.leave();
      await touch(one);
      expect([first, second].map(({ heard }) => heard())).toEqual([[one], [one, two, one]]);
      await second.leave();
      await touch(one);
      expect(second.heard()).toEqual([one, two, one]);
      const said = told();
      if (upstream === 'legacy stdio') expect(said.sort()).toEqual([`+${one}`, `+${two}`, `-${one}`, `-${two}`]);
      else expect(said.filter(Boolean).slice(0, 2)).toEqual([one, `${one},${two}`]);
      // The last to go took the stream with it.
      if (upstream !== 'legacy stdio') expect(jsonOf((await callModern(gateway, 'x_listening')).result)).toEqual([]);
    });

    it('tells once of each of several that were asked for together', async () => {
      const { gateway, touch, one, two } = await start(upstream);
      const hearer = await listen(client, gateway, one, two);
      await touch(two);
      await touch(one);
      expect(hearer.heard()).toEqual([two, one]);
    });

    it.skipIf(upstream === 'modern http')('tells again after the server was started again', async () => {
      const { gateway, touch, told, one } = await start(upstream);
      const hearer = await listen(client, gateway, one);
      await touch(one);
      const processes = descendants(gateway.pid);
      for (const pid of processes) process.kill(pid, 'SIGKILL');
      await waitFor(() => !processes.some(alive));
      await waitFor(async () => (await touch(one))?.isError !== true && hearer.heard().length > 1, 15_000);
      expect(new Set(hearer.heard())).toEqual(new Set([one]));
      expect(told().filter((text) => text.includes(one)).length).toBe(2);
    });
  },
);

describe('what cannot be heard of', () => {
  it('is refused to a client with a session, and left out for one without', async () => {
    const { gateway, one } = await start('legacy stdio');
    const { client } = await gateway.connect();
    await expect(client.subscribeResource({ uri: 'nobody://knows' })).rejects.toThrow();
    expect((await listenModern(gateway, 'nobody://knows', one)).honoured).toEqual({ resourceSubscriptions: [one] });
  });

  it('is that of a server which does not tell', async () => {
    const command = JSON.stringify(server('basic', '--resources', 'note://1'));
    const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = ""\ncommand = ${command}\n` });
    const { client } = await gateway.connect();
    await expect(client.subscribeResource({ uri: 'note://1' })).rejects.toThrow('does not tell');
    expect((await listenModern(gateway, 'note://1')).honoured).toEqual({ resourceSubscriptions: [] });
  });
});

it('a session that ends leaves nothing behind at the server', async () => {
  const { gateway, touch, told, one } = await start('legacy stdio');
  const { client, transport } = await gateway.connect();
  await client.subscribeResource({ uri: one });
  // Asked for twice is asked for once.
  await client.subscribeResource({ uri: one });
  expect(jsonOf(await touch(one))).toEqual([one]);
  await transport.terminateSession();
  await waitFor(() => told().includes(`-${one}`));
  expect(told()).toEqual([`+${one}`, `-${one}`]);
});
