/**
 * Streamable HTTP rules that depend on the revision: the Accept header, the order of messages, and plain JSON replies.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { waitFor } from '../support/processes.ts';
import { INITIALIZED, initialize, PING, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';

const TYPES = { json: 'application/json', stream: 'text/event-stream' };
let gateway: HttpGateway;
beforeAll(async () => {
  const servers = serversToml({ up: server('changing'), slow: server('hang') });
  gateway = await startHttp({ config: `controls = []\n${servers}` });
});

const call = (id: number | string, name: string, args: object, token?: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, arguments: args, ...(token !== undefined && { _meta: { progressToken: token } }) },
  });

describe.each([
  ['2024-11-05', 200],
  ['2025-03-26', 200],
  ['2025-06-18', 406],
  ['2025-11-25', 406],
])('in revision %s', (revision, status) => {
  it(`Accept: ${TYPES.json} alone is answered with ${status}, for initialize and in a session`, async () => {
    const opened = await gateway.post(initialize(revision), { accept: TYPES.json });
    expect(opened.status).toBe(status);
    const session = await startSession(gateway, { revision });
    expect((await session.post(PING, { accept: TYPES.json })).status).toBe(status);
    expect((await session.post(INITIALIZED, { accept: TYPES.json })).status).toBe(status === 200 ? 202 : 406);
  });

  it(`Accept: ${TYPES.stream} alone is answered with 406`, async () => {
    const session = await startSession(gateway, { revision });
    expect((await session.post(PING, { accept: TYPES.stream })).status).toBe(406);
  });

  it.each(['*/*', 'application/*, text/*', `${TYPES.stream};q=0.5, ${TYPES.json}`])(
    'Accept: %s is accepted',
    async (accept) => {
      const session = await startSession(gateway, { revision });
      expect((await session.post(PING, { accept })).status).toBe(200);
    },
  );

  it('a request sent before notifications/initialized is answered with 400, a ping is not', async () => {
    const session = await startSession(gateway, { revision, initialized: false });
    expect((await session.post(PING)).status).toBe(200);
    const early = await session.post(call(1, 'up_echo', {}));
    expect(early.status).toBe(400);
    expect(await early.json()).toMatchObject({ error: { data: { code: 'not_initialized' } } });
    expect((await session.post(INITIALIZED)).status).toBe(202);
    expect((await session.post('{"jsonrpc":"2.0","id":3,"method":"tools/list"}')).status).toBe(200);
  });
});

it('a request that arrives ahead of notifications/initialized waits for it', async () => {
  const session = await startSession(gateway, { initialized: false });
  const early = session.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  await sleep(100);
  await session.post(INITIALIZED);
  expect((await early).status).toBe(200);
});

describe('a client that accepts only plain JSON', () => {
  const plain = { accept: TYPES.json };

  it('receives its result and no progress notifications', async () => {
    const session = await startSession(gateway, { revision: '2025-03-26' });
    const reply = await session.post(call(1, 'slow_slow', { ms: 40, steps: 4 }, 't'), plain);
    expect(reply.headers.get('content-type')).toBe(TYPES.json);
    expect(await reply.json()).toMatchObject({ id: 1, result: { content: [{ text: 'slow' }] } });
  });

  it('receives progress on its open GET stream', async () => {
    const session = await startSession(gateway, { revision: '2025-03-26' });
    const stream = await session.listen();
    await session.post(call(1, 'slow_slow', { ms: 40, steps: 4 }, 't'), plain);
    await waitFor(() => stream.methods().length === 4);
  });

  it('receives the replies to a batch as an array', async () => {
    const session = await startSession(gateway, { revision: '2025-03-26' });
    const batch = [call('a', 'slow_slow', { ms: 30, tag: 'ü' }), PING, INITIALIZED, call('b', 'slow_ok', {})];
    const reply = await session.post(`[${batch.join(',')}]`, plain);
    expect(reply.headers.get('content-type')).toBe(TYPES.json);
    const answers = (await reply.json()) as { id: unknown; result: { content?: { text: string }[] } }[];
    expect(new Set(answers.map(({ id }) => id))).toEqual(new Set(['a', 1, 'b']));
    expect(answers.find(({ id }) => id === 'a')!.result.content![0]!.text).toBe('slow ü');
  });

  it('receives 202 when its call is cancelled', async () => {
    const session = await startSession(gateway, { revision: '2025-03-26' });
    const reply = session.post(call(1, 'slow_slow', { ms: 60_000 }), plain);
    await callsInFlight(gateway);
    await session.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', plain);
    expect((await reply).status).toBe(202);
  });
});
