/** Clients that ask for a lot and read nothing, or very little. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from '../support/cleanup.ts';
import type { HttpGateway } from '../support/gateway.ts';
import { callTool, headersFor, requestText } from '../support/modern-request.ts';
import { startSession } from '../support/raw-http.ts';
import { UPSTREAMS, type Upstream } from '../support/soak-servers.ts';

export interface SlowReader {
  /** Disconnects and ends the session. Without the end, calls would go on for a client that may reconnect. */
  leave(): Promise<unknown>;
}

/** How much a slow reader reads, and how often. */
const SIP = 4096;
const PAUSE = 250;

/** Writes raw requests on one socket. With `sips` it reads a little now and then. */
function openSlow(
  { origin }: HttpGateway,
  requests: readonly string[],
  sips: boolean,
  end: () => Promise<unknown> = async () => {},
): SlowReader {
  const { hostname, port } = new URL(origin);
  const socket: Socket = connect(Number(port), hostname);
  const sipping = setInterval(() => sips && socket.read(SIP), PAUSE);
  socket.on('error', () => {});
  socket.write(requests.join(''));
  const drop = () => {
    clearInterval(sipping);
    socket.destroy();
  };
  atEnd(drop);
  return {
    leave() {
      drop();
      return end();
    },
  };
}

function http(verb: 'POST' | 'GET', path: string, headers: Record<string, string>, body = ''): string {
  const all = {
    host: '127.0.0.1',
    accept: verb === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(verb === 'POST' && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${verb} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

function modern(method: string, params: Record<string, unknown>, id = 1): string {
  const meta = { progressToken: id };
  return http('POST', '/mcp', headersFor(method, params), requestText(method, params, { id, meta }));
}

export type Era = 'session' | 'modern';

/** One call, or several at once on the same connection, whose answers are not read. */
export async function openSlowCalls(
  gateway: HttpGateway,
  era: Era,
  name: string,
  args: Record<string, unknown>,
  sips: boolean,
  calls = 1,
): Promise<SlowReader> {
  const params = { name, arguments: args };
  const ids = Array.from({ length: calls }, (_, index) => index + 1);
  if (era === 'modern')
    return openSlow(
      gateway,
      ids.map((id) => modern('tools/call', params, id)),
      sips,
    );
  const { headers, end } = await startSession(gateway);
  const body = (id: number) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: { progressToken: id } } });
  return openSlow(
    gateway,
    ids.map((id) => http('POST', '/mcp', headers, body(id))),
    sips,
    end,
  );
}

/** A stream for notifications that is opened and not read. */
export async function openSlowListener(
  gateway: HttpGateway,
  era: Era,
  uri: string,
  sips: boolean,
): Promise<SlowReader> {
  if (era === 'modern') {
    const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
    return openSlow(gateway, [modern('subscriptions/listen', { notifications })], sips);
  }
  const session = await startSession(gateway);
  await session.ask('resources/subscribe', { uri });
  return openSlow(gateway, [http('GET', '/mcp', session.headers)], sips, session.end);
}

export interface Latencies {
  readonly calls: number;
  readonly median: number;
  readonly most: number;
  readonly failures: readonly string[];
}

/** Makes small calls to every server, one after the other, until it is stopped. This client reads. */
export function startSmallCalls(gateway: HttpGateway): () => Promise<Latencies> {
  let stopped = false;
  const times: number[] = [];
  const failures: string[] = [];
  const one = async (upstream: Upstream) => {
    for (let n = 0; !stopped; n++) {
      const word = `${upstream}-${n}`;
      const start = performance.now();
      const answer = await callTool(
        gateway,
        `${upstream}_say`,
        { word },
        { signal: AbortSignal.timeout(30_000) },
      ).catch((error: Error) => error);
      times.push(performance.now() - start);
      if (!JSON.stringify(answer).includes(`\\"${word}\\"`)) failures.push(`${word}: ${JSON.stringify(answer)}`);
      await sleep(20);
    }
  };
  const running = Promise.all(UPSTREAMS.map(one));
  return async () => {
    stopped = true;
    await running;
    times.sort((a, b) => a - b);
    const at = (part: number) => Math.round(times[Math.min(times.length - 1, Math.floor(times.length * part))]!);
    return { calls: times.length, median: at(0.5), most: at(1), failures };
  };
}
