/** Servers and clients that do not read what the gateway sends. It must not keep that for them without end. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { atEnd } from './cleanup.ts';
import { callTool } from './dock.ts';
import { type HttpGateway, type StdioGateway, startHttp, startStdio } from './gateway.ts';
import { headersFor, requestText } from './modern-request.ts';
import { alive, waitFor } from './processes.ts';
import { INITIALIZED, initialize, openSocket, startSession } from './raw-http.ts';
import { memoryOf, toml } from './running-gateway.ts';
import { server } from './server.ts';

/** What a deaf server sends meanwhile: the gateway answers it, or it makes the gateway ask. */
export const FROM_SERVERS = [
  ...['ping', 'unknown', 'roots', 'sampling', 'elicitation', 'answer', 'log', 'updated', 'tools', 'resources'],
  'nothing',
] as const;
/** What the gateway passes on to a client that does not read. Of some it sends only the last, or a few at a time. */
export const TO_CLIENTS = ['log', 'progress', 'updated', 'tools', 'elicitation'] as const;
/** These fill any buffer, so the client has to be cut off. */
const ENDLESS = ['log', 'progress'];

export interface Outcome {
  /** Megabytes above the start, at most. */
  readonly grown: number;
  readonly log: string;
  /** Calls of a server that reads, meanwhile. */
  readonly failures: readonly string[];
}

/** Servers that do not read, each with another flood, until these of them were ended or the time is over. */
export async function sufferDeafServers(
  kinds: readonly string[],
  wanted: readonly string[],
  ms: number,
): Promise<Outcome> {
  const web = await startDeafHttp();
  const gateway = await startHttp({
    config: toml(
      [
        ...kinds.map((kind) => ({ namespace: kind, command: server('deaf', '--name', kind), timeout: '5s' })),
        { namespace: 'web', url: web, timeout: '5s' },
        { namespace: 'good', command: server('hang') },
      ],
      { start_wait: '30s' },
    ),
    process: true,
    ready: false,
  });
  await waitFor(async () => !(await callTool(gateway.url, 'good_ok')).isError);
  for (const kind of kinds) await waitFor(async () => !(await callTool(gateway.url, `${kind}_ok`)).isError);
  return measure(gateway, gateway.url, async (until) => {
    for (const kind of kinds) await callTool(gateway.url, `${kind}_flood`, { kind, deaf: true });
    // Requests, and the cancellations of those that take too long.
    const large = { text: 'x'.repeat(500_000) };
    const calls = kinds.flatMap((kind) =>
      Array.from({ length: 10 }, () => callTool(gateway.url, `${kind}_hang`, large).catch(() => {})),
    );
    void Promise.all(calls);
    await until(() => {
      const ended = endedIn(gateway.stderr());
      return wanted.every((one) => ended.has(one));
    }, ms);
  });
}

/** The servers that were ended because they do not read, or do not answer: it depends on the machine what is noticed first. */
export function endedIn(log: string): Set<string> {
  const reason = /does not read its input, and is ended|does not take our messages|down: does not answer/;
  const lines = log.split('\n').filter((line) => reason.test(line));
  return new Set(lines.map((line) => (JSON.parse(line) as { source: string }).source));
}

/** A server over HTTP that pings on its stream without end, and never answers a message of ours that is not a request. */
async function startDeafHttp(): Promise<string> {
  const http = createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let n = 0;
      const more = () => {
        while (response.write(`data: {"jsonrpc":"2.0","id":"p${++n}","method":"ping"}\n\n`));
        response.once('drain', more);
      };
      more();
      return;
    }
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { id, method } = JSON.parse(body || '{}') as { id?: number; method?: string };
      if (method === 'notifications/initialized') response.writeHead(202).end();
      else if (method === 'initialize')
        reply({
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'web', version: '1' },
        });
      else if (method === 'tools/list') reply({ tools: [{ name: 'ok', inputSchema: { type: 'object' } }] });
      else if (method === 'server/discover')
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } }));

      function reply(result: object): void {
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      }
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

export type ClientDoor = 'session' | 'sse' | 'modern' | 'stdio';
const LIMITS = { unread: '1MiB', unread_total: '16MiB' };

/** A client of each door that gets one kind of message without end and reads none, until it is cut off. */
export async function sufferDeafClient(door: ClientDoor, kind: string): Promise<Outcome> {
  const config = toml(
    [
      { namespace: 'loud', command: server('deaf') },
      { namespace: 'good', command: server('hang') },
    ],
    { limits: LIMITS, start_wait: '30s' },
  );
  const call = {
    name: 'loud_flood',
    arguments: { kind, deaf: false },
    _meta: { progressToken: 'p' },
  };
  /** What a client with a session sends. */
  const lines = [
    initialize('2025-11-25', { elicitation: {}, sampling: {}, roots: {} }),
    INITIALIZED,
    request(1, 'logging/setLevel', { level: 'debug' }),
    request(2, 'resources/subscribe', { uri: 'loud_deaf://long' }),
    request(3, 'tools/call', call),
  ];
  if (door === 'stdio') {
    const gateway = await startStdio({ config, process: true, connect: false, args: ['--log-level', 'info'] });
    gateway.stdin.on('error', () => {});
    let answers = '';
    gateway.process.stdout.on('data', (chunk) => {
      answers += chunk;
    });
    for (const line of lines.slice(0, 4)) gateway.stdin.write(`${line}\n`);
    // What a start takes is not what unread messages take.
    await waitFor(() => /"id":1\b/.test(answers) && /"id":2\b/.test(answers), 60_000);
    gateway.process.stdout.pause();
    return measure(gateway, null, async (until) => {
      gateway.stdin.write(`${lines[4]}\n`);
      await until(() => hasCut(gateway), patience(kind));
      if (!ENDLESS.includes(kind)) {
        // It sees the end of its input when it reads on, and it reads on when the client does.
        gateway.process.stdout.resume();
        return;
      }
      // It ends although nobody reads, in order, and says why once.
      const { code } = await gateway.exited;
      const logged = gateway.stderr().split('\n');
      const told = logged.filter((line) => line.includes('a client was cut off')).length;
      if (code !== 0 || told !== 1) throw new Error(`exited with ${code}, told ${told} times: ${gateway.stderr()}`);
    });
  }
  const gateway = await startHttp({ config, process: true });
  return measure(gateway, gateway.url, async (until) => {
    if (door === 'session') {
      const session = await startSession(gateway, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
      for (const line of lines.slice(2, 4)) await (await session.post(line)).arrayBuffer();
      send(gateway, 'GET', session.headers);
      send(gateway, 'POST', session.headers, lines[4]);
    } else if (door === 'sse') {
      const messages = await openSse(gateway);
      for (const body of lines)
        await fetch(messages, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    } else {
      const meta = { progressToken: 'p', 'io.modelcontextprotocol/logLevel': 'debug' };
      const notifications = { toolsListChanged: true, resourceSubscriptions: ['loud_deaf://long'] };
      for (const [method, params] of [
        ['subscriptions/listen', { notifications }],
        ['tools/call', { name: call.name, arguments: call.arguments }],
      ] as const)
        send(gateway, 'POST', headersFor(method, params), requestText(method, params, { meta }));
    }
    await until(() => hasCut(gateway), patience(kind));
    if (ENDLESS.includes(kind) && !hasCut(gateway)) throw new Error(`not cut off: ${door}, ${kind}`);
  });
}

/** A dashboard that tries a tool which sends one kind of message without end, and looks at the events, and reads nothing. */
export async function sufferDeafPage(kind: string): Promise<Outcome> {
  const key = 'the-key-of-the-operator';
  const gateway = await startHttp({
    config: toml([
      { namespace: 'loud', command: server('deaf') },
      { namespace: 'good', command: server('hang') },
    ]),
    env: { TOOLGATE_OPERATOR_KEY: key },
    process: true,
  });
  return measure(gateway, gateway.url, async (until) => {
    const headers = { authorization: `Bearer ${key}` };
    const body = { kind: 'tool', name: 'loud_flood', arguments: { kind, deaf: false }, agent: null };
    send(gateway, 'GET', headers, '', '/admin/events');
    send(gateway, 'POST', headers, JSON.stringify(body), '/admin/tries');
    await until(() => false, 15_000);
  });
}

const hasCut = ({ stderr }: HttpGateway | StdioGateway) => stderr().includes('a client was cut off');
const patience = (kind: string) => (ENDLESS.includes(kind) ? 60_000 : 5_000);

function request(id: number, method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/** Sends a request on a connection of its own, and does not read the reply. */
function send(
  { origin }: HttpGateway,
  verb: 'GET' | 'POST',
  headers: Record<string, string>,
  body = '',
  path = '/mcp',
): void {
  const all = {
    host: new URL(origin).host,
    accept: verb === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
    ...(verb === 'POST' && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  openSocket(origin).write(`${verb} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
}

/** Opens the stream of a session over HTTP+SSE, reads the address for messages, and nothing more. */
async function openSse({ origin }: HttpGateway): Promise<string> {
  const socket = openSocket(origin);
  socket.write(`GET /sse HTTP/1.1\r\nhost: ${new URL(origin).host}\r\naccept: text/event-stream\r\n\r\n`);
  let text = '';
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += chunk;
    if (/data: \S+\n/.test(text)) break;
  }
  socket.pause();
  return new URL(/data: (\S+)\n/.exec(text)![1]!, origin).href;
}

/** Watches the memory, and calls a server that reads, while it goes on. */
async function measure(
  gateway: HttpGateway | StdioGateway,
  url: string | null,
  work: (until: (isOver: () => boolean, ms: number) => Promise<void>) => Promise<void>,
): Promise<Outcome> {
  const pid = gateway.pid!;
  const before = memoryOf(pid);
  let most = before;
  const failures: string[] = [];
  const until = async (isOver: () => boolean, ms: number) => {
    const end = performance.now() + ms;
    while (!isOver() && performance.now() < end) {
      if (!alive(pid)) break;
      most = Math.max(most, memoryOf(pid));
      const answer = url === null ? null : await callTool(url, 'good_ok');
      if (answer?.isError) failures.push(answer.text);
      await sleep(50);
    }
  };
  await work(until);
  return { grown: Math.round(most - before), log: gateway.stderr(), failures };
}
