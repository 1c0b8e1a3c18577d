/**
 * Sessions of the HTTP door: created by initialize, required afterwards, ended by DELETE, by session_ttl or by
 * max_sessions.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { FULL_SCOPE } from '../../src/calls/caller.ts';
import { programIdentity } from '../../src/calls/identity.ts';
import { createSessions, Session } from '../../src/doors/http/mcp/sessions.ts';
import { StreamableSession } from '../../src/doors/http/mcp/streamable-session.ts';
import { createBackpressure } from '../../src/doors/http/wire/backpressure.ts';
import { configFromValue } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import { initialize, PING, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const toml = serversToml({ up: server('hang') });

describe('a session', () => {
  let gateway: HttpGateway;
  beforeAll(async () => {
    gateway = await startHttp({ config: `controls = []\n${toml}` });
  });

  it('starts with initialize and gets an id that cannot be guessed', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => (await startSession(gateway)).id));
    expect(new Set(ids).size).toBe(20);
    // 128 bits are 22 characters of base64; visible ASCII is what the specification allows.
    for (const id of ids) expect(id).toMatch(/^[\w-]{22,}$/);
  });

  it('is required for every other request', async () => {
    const responses = await Promise.all([
      gateway.post(PING),
      gateway.post('{"jsonrpc":"2.0","method":"notifications/initialized"}'),
      gateway.post(`[${PING}]`),
      fetch(gateway.url, { headers: { accept: 'text/event-stream' } }),
      fetch(gateway.url, { method: 'DELETE' }),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400]);
    expect(await responses[0]!.json()).toMatchObject({
      id: null,
      error: { data: { success: false, result: null, code: 'session_missing' } },
    });
  });

  it.each(['no-such-session', '', 'x'.repeat(5000)])(
    'with an unknown id (%.20s) is answered with 404 on every method',
    async (id) => {
      const headers = { 'mcp-session-id': id };
      const responses = await Promise.all([
        gateway.post(PING, headers),
        fetch(gateway.url, { headers: { ...headers, accept: 'text/event-stream' } }),
        fetch(gateway.url, { method: 'DELETE', headers }),
      ]);
      expect(responses.map(({ status }) => status)).toEqual([404, 404, 404]);
    },
  );

  it('ends with DELETE, and its id is unknown afterwards', async () => {
    const session = await startSession(gateway);
    expect((await session.post(PING)).status).toBe(200);
    expect((await session.end()).status).toBe(204);
    expect((await session.post(PING)).status).toBe(404);
    expect((await session.end()).status).toBe(404);
    expect((await session.listen()).response.status).toBe(404);
  });

  it('closes its stream and cancels its running calls when it ends', async () => {
    const session = await startSession(gateway);
    const stream = await session.listen();
    expect([stream.response.status, stream.isOver()]).toEqual([200, false]);
    const call = session.post(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up_hang","arguments":{"tag":"t"}}}',
    );
    await callsInFlight(gateway);
    await session.end();
    expect(await (await call).text()).toBe('');
    await waitFor(() => stream.isOver());
    const other = await startSession(gateway);
    const { result } = await other.ask('tools/call', { name: 'up_cancelled' });
    expect(JSON.stringify(result)).toContain('\\"tag\\":\\"t\\"');
  });

  it('keeps working when another session ends', async () => {
    const [one, two] = [await startSession(gateway), await startSession(gateway)];
    await one.end();
    expect((await two.post(PING)).status).toBe(200);
  });

  it('answers a second initialize with a new session', async () => {
    const session = await startSession(gateway);
    const again = await session.post(initialize());
    expect(again.headers.get('mcp-session-id')).not.toBe(session.id);
    expect((await session.post(PING)).status).toBe(200);
  });

  it('refuses a request id that a running request still uses', async () => {
    const session = await startSession(gateway);
    const body = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up_slow","arguments":{"ms":1200}}}';
    const first = session.post(body);
    await callsInFlight(gateway);
    expect(await (await session.post(body)).json()).toMatchObject({ id: 7, error: { code: -32600 } });
    expect(await (await first).json()).toMatchObject({ id: 7, result: { content: [{ text: 'slow' }] } });
    expect(await (await session.post(body)).json()).toMatchObject({ id: 7, result: {} });
  });
});

describe('session_ttl', () => {
  it('ends a session that was idle for that long, and keeps one in use', async () => {
    const gateway = await startHttp({ config: `controls = []\n[http]\nsession_ttl = "2s"\n${toml}` });
    const [unused, used, listening] = [
      await startSession(gateway),
      await startSession(gateway),
      await startSession(gateway),
    ];
    await listening.listen();
    // Often, so that a pause of a busy machine does not make it idle.
    for (let end = performance.now() + 2_500; performance.now() < end; await sleep(100))
      expect((await used.post(PING)).status).toBe(200);
    expect((await unused.post(PING)).status).toBe(404);
    expect((await listening.post(PING)).status).toBe(200);
  });
});

describe('max_sessions', () => {
  it('evicts the session that was idle longest', async () => {
    const gateway = await startHttp({ config: `controls = []\n[http]\nmax_sessions = 2\n${toml}` });
    const one = await startSession(gateway);
    const two = await startSession(gateway);
    await sleep(5);
    expect((await one.post(PING)).status).toBe(200);
    const three = await startSession(gateway);
    const statuses = await Promise.all([one, two, three].map(async (session) => (await session.post(PING)).status));
    expect(statuses).toEqual([200, 404, 200]);
  });

  it('refuses a new session while all are in use, and ends none of them', async () => {
    const gateway = await startHttp({ config: `controls = []\n[http]\nmax_sessions = 2\n${toml}` });
    const [one, two] = [await startSession(gateway), await startSession(gateway)];
    await one.listen();
    await two.listen();
    const refused = await gateway.post(initialize());
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ error: { data: { code: 'sessions_full' } } });
    expect([(await one.post(PING)).status, (await two.post(PING)).status]).toEqual([200, 200]);
    await one.end();
    expect((await gateway.post(initialize())).status).toBe(200);
  });
});

describe('the session table', () => {
  it('gives the same answer for the session of another agent as for an unknown one', () => {
    const config = configFromValue({}, { cwd: tempFolder(), env: {} });
    const gateway = createGateway(config);
    const sessions = createSessions(gateway);
    const backpressure = createBackpressure(
      () => gateway.config.limits,
      () => {},
    );
    atEnd(async () => {
      sessions.close();
      await gateway.close();
    });
    const identityOf = (principal: string) => programIdentity('crew', principal);
    const open = () => new StreamableSession(gateway, identityOf('alice'), FULL_SCOPE, null, backpressure, { used: 0 });
    const session = sessions.open(FULL_SCOPE, open);
    const answer = (id: string, principal: string) => {
      try {
        return sessions.find(StreamableSession, id, identityOf(principal), FULL_SCOPE);
      } catch (error) {
        return error;
      }
    };
    expect(answer(session.id, 'alice')).toBe(session);
    expect(answer(session.id, 'bob')).toEqual(answer('never-was', 'bob'));
    expect(answer(session.id, '')).toEqual(answer('never-was', ''));
    class OtherTransport extends Session {
      static readonly beginning = 'GET /other';
      readonly lacksStream = true;
      notify(): void {}
    }
    expect(() => sessions.find(OtherTransport, session.id, identityOf('alice'), FULL_SCOPE)).toThrow(
      'Start a new one with GET /other.',
    );
    expect(sessions.size).toBe(1);
  });
});
