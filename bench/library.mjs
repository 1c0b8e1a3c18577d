// Toolsets inside a program: what one more client costs, and whether the cost of a call depends on the number of clients.

import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { median } from './measure.mjs';
import { cpuOf, start, stop } from './processes.mjs';

const SERVER = fileURLToPath(new URL('./library-server.mjs', import.meta.url));
const COUNTS = [10, 100, 1000];
const CALLERS = 8;
const number = (value) => value.toLocaleString('en-US');

/** Each client has its own toolsets, loaded only for it. With `shared` they are loaded once. */
const KINDS = { own: (i) => `?config=${encodeURIComponent(JSON.stringify({ tenant: `t${i}` }))}`, shared: () => '' };

export async function libraryClients(bench) {
  const { rounds, ms } = bench.plan;
  const crowds = [];
  try {
    for (const kind of Object.keys(KINDS))
      for (const count of COUNTS) {
        bench.progress(`${number(count)} clients, ${kind} toolsets`);
        crowds.push(await openCrowd(kind, count));
      }
    for (let round = 0; round < 2 * rounds; round++)
      for (const crowd of crowds) {
        bench.progress(`calls of ${number(crowd.count)} clients, ${crowd.kind} toolsets`);
        crowd.samples.push(await measureCalls(crowd, ms.many));
      }
    return Object.keys(KINDS).flatMap((kind) =>
      rows(
        kind,
        crowds.filter((crowd) => crowd.kind === kind),
      ),
    );
  } finally {
    await Promise.all(crowds.map(({ server }) => stop(server)));
  }
}

function rows(kind, crowds) {
  const [few, some, many] = crowds;
  const cpu = (crowd) => median(crowd.samples);
  return [
    ...crowds.map((crowd) => {
      const measured = cpu(crowd) / cpu(few);
      return {
        label: `CPU per call, ${number(crowd.count)} clients, ${kind} toolsets`,
        unit: 'us',
        values: { toolgate: cpu(crowd) },
        ofPlain: crowd === few ? undefined : measured,
        limit: crowd === many ? { text: '<= 1.25 x with 10', max: 1.25, measured } : undefined,
        rounds: { toolgate: crowd.samples },
      };
    }),
    // With few clients the difference is smaller than the fluctuation of the heap.
    ...(kind === 'own' ? [some, many] : [many]).map((crowd) => ({
      label: `memory per client, ${number(crowd.count)} clients, ${kind} toolsets`,
      unit: 'B',
      values: { toolgate: crowd.memory },
      ofPlain: crowd === some || kind !== 'own' ? undefined : crowd.memory / some.memory,
      limit: crowd === many ? memoryLimit(kind, crowd, some) : undefined,
    })),
  ];
}

function memoryLimit(kind, many, some) {
  if (kind === 'shared') return { text: '<= 20 KB', max: 20_000, measured: many.memory, unit: 'B' };
  return { text: '<= 1.25 x with 100', max: 1.25, measured: many.memory / some.memory };
}

async function openCrowd(kind, count) {
  const server = start(process.execPath, ['--expose-gc', SERVER]);
  const [line] = await once(createInterface(server.child.stdout), 'line');
  const { url } = JSON.parse(line);
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  const crowd = { kind, count, server, url, agent, clients: [], samples: [] };
  // The first clients cost more than further ones, so they are not measured.
  for (let i = 0; i < 30; i++) await openClient(crowd, `warm-${i}`);
  for (let i = 0; i < 3000; i++) await call(crowd, crowd.clients[i % 30]);
  crowd.clients.length = 0;
  const { memory: before } = await figures(crowd);
  for (let i = 0; i < count; i++) crowd.clients.push(await openClient(crowd, i));
  const { memory: after } = await figures(crowd);
  crowd.memory = (after - before) / count;
  return crowd;
}

/** A client with a session and two toolsets. */
async function openClient(crowd, i) {
  const client = { id: `client-${i}`, query: KINDS[crowd.kind](i), session: null, next: 1 };
  const greeting = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const { headers } = await post(crowd, client, 'initialize', greeting);
  client.session = headers['mcp-session-id'];
  await post(crowd, client, 'notifications/initialized', {}, true);
  for (const name of ['read', 'write'])
    await post(crowd, client, 'tools/call', { name: 'enable_toolset', arguments: { name } });
  if (typeof i === 'string') crowd.clients.push(client);
  return client;
}

async function measureCalls(crowd, ms) {
  const { clients, server } = crowd;
  const before = cpuOf(server.pid);
  const end = Date.now() + ms;
  let calls = 0;
  const caller = async () => {
    while (Date.now() < end) await call(crowd, clients[calls++ % clients.length]);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return (cpuOf(server.pid) - before) / calls;
}

async function call(crowd, client) {
  const { body } = await post(crowd, client, 'tools/call', { name: 'read.read_3', arguments: { text: 'hello' } });
  if (!body.includes(' hello')) throw new Error(`not an answer of the tool: ${body}`);
}

const figures = async ({ url, agent }) => {
  const { body } = await exchange(new URL('/figures', url), { agent }, null);
  return JSON.parse(body);
};

function post({ url, agent }, client, method, params, isNotification = false) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-client-id': client.id,
    ...(client.session !== null && { 'mcp-session-id': client.session }),
  };
  const id = isNotification ? {} : { id: client.next++ };
  const body = JSON.stringify({ jsonrpc: '2.0', ...id, method, params });
  return exchange(new URL(`${url}${client.query}`), { method: 'POST', headers, agent }, body);
}

function exchange(url, options, body) {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => {
        if (response.statusCode < 300) resolve({ headers: response.headers, body: text });
        else reject(new Error(`${response.statusCode}: ${text}`));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}
