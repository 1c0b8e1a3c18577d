/** Subscribers of either era, and a gateway in front of a server with subscriptions. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { runningServers } from '../support/in-process-server.ts';
import { mirrored } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { callModern } from '../support/questions.ts';
import { messagesOf as linesOf } from '../support/relay-clients.ts';
import { server, startListening } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const UPDATED = 'notifications/resources/updated';
export const CLIENTS = ['legacy', 'modern'] as const;
export const UPSTREAMS = ['legacy stdio', 'modern stdio', 'modern http'] as const;
export type Upstream = (typeof UPSTREAMS)[number];

/** The line that names it in a configuration. */
async function placeOf(upstream: Upstream, log: string, flags: readonly string[]): Promise<string> {
  const name = upstream === 'legacy stdio' ? 'asking' : 'asking-modern';
  if (upstream !== 'modern http') return `command = ${JSON.stringify(server(name, '--log', log, ...flags))}`;
  const { origin } = await startListening(name, '--port', 0, '--log', log, ...flags);
  return `url = "${origin}/mcp"`;
}

/**
 * A gateway in front of a server with subscriptions. `told()` returns the subscribe requests that the server received.
 */
export async function start(upstream: Upstream, flags: readonly string[] = [], more = '') {
  const log = join(tempFolder(), 'log');
  const scheme = upstream === 'legacy stdio' ? 'asking://' : 'modern://';
  const place = await placeOf(upstream, log, flags);
  const gateway = await startHttp({ config: `controls = []\n[[servers]]\nnamespace = "x"\n${place}\n${more}` });
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
  /** The processes of a server on a pipe. */
  const processes = () => runningServers(log);
  return { gateway, touch, told, processes, one: `${scheme}one`, two: `${scheme}two` };
}

interface Told {
  readonly method?: string;
  readonly params: { readonly uri: string; readonly notifications: { readonly resourceSubscriptions?: string[] } };
}

export interface Hearer {
  /** The URIs it was notified of, in order. */
  heard(): string[];
  leave(): Promise<void>;
}

export async function listenLegacy(gateway: HttpGateway, ...uris: string[]): Promise<Hearer> {
  const { client, notifications } = await gateway.connect();
  for (const uri of uris) await client.subscribeResource({ uri });
  return {
    heard: () => notifications.filter(({ method }) => method === UPDATED).map(({ params }) => String(params?.uri)),
    async leave() {
      for (const uri of uris) await client.unsubscribeResource({ uri });
    },
  };
}

/** A listening stream of a modern client. Also returns which of the requested notifications are honoured. */
export async function listenModern(gateway: HttpGateway, ...uris: string[]): Promise<Hearer & { honoured: unknown }> {
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
    [...text.matchAll(/^data: (.+)$/gm)].map(
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

/** Expects each of them to be notified of exactly these URIs so far, in this order. */
export async function expectHeard(hearers: readonly Hearer[], ...uris: readonly string[][]): Promise<void> {
  const heard = () => hearers.map((hearer) => hearer.heard());
  // If they do not arrive, the comparison below fails with a better message than a timeout.
  await waitFor(() => heard().every((list, n) => list.length >= uris[n]!.length)).catch(() => {});
  expect(heard()).toEqual(uris);
}

const listeners = { legacy: listenLegacy, modern: listenModern };

export function listen(era: 'legacy' | 'modern', gateway: HttpGateway, ...uris: string[]): Promise<Hearer> {
  return listeners[era](gateway, ...uris);
}
