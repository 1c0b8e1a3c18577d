/**
 * Streams: notifications outside of calls, running calls whose client has disconnected, and keep-alives for long
 * calls.
 */
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { configFromValue, openHttpDoor } from '../../src/index.ts';
import { atEnd } from '../support/cleanup.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { callsInFlight } from '../support/in-flight.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { waitFor } from '../support/processes.ts';
import {
  INITIALIZED,
  initialize,
  openSocket,
  PING,
  type RawSession,
  type Stream,
  startSession,
} from '../support/raw-http.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const TOOLS = 'notifications/tools/list_changed';
let gateway: HttpGateway;
beforeAll(async () => {
  const servers = serversToml({ up: server('changing'), slow: server('hang') });
  gateway = await startHttp({ config: `controls = []\n${servers}` });
});

let added = 0;
/** Changes the list of tools through another session and waits until that session is notified. */
async function changeTools(): Promise<void> {
  const other = await listed();
  const stream = await other.listen();
  await other.ask('tools/call', { name: 'up_add_tool', arguments: { name: `added_${++added}` } });
  await waitFor(() => stream.methods().length > 0);
  await other.end();
}

/** Waits until the streams together have received this many notifications. An extra one shows up in the next expectation. */
const heard = (streams: readonly Stream[], count: number) =>
  waitFor(() => streams.flatMap((stream) => stream.methods()).length >= count);

async function listed(): Promise<RawSession> {
  const session = await startSession(gateway);
  await session.ask('tools/list');
  return session;
}

describe('the GET stream of a session', () => {
  it('delivers a list_changed notification', async () => {
    const session = await listed();
    const stream = await session.listen();
    expect([stream.response.status, stream.response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    for (let count = 1; count <= 2; count++) {
      await changeTools();
      await heard([stream], count);
    }
    expect(stream.methods()).toEqual([TOOLS, TOOLS]);
  });

  it('notifies every session on its own stream', async () => {
    const streams = await Promise.all([1, 2, 3].map(async () => (await listed()).listen()));
    await changeTools();
    await heard(streams, 3);
    expect(streams.map((stream) => stream.methods())).toEqual([[TOOLS], [TOOLS], [TOOLS]]);
  });

  it('delivers each notification exactly once when it is opened several times', async () => {
    const session = await listed();
    const streams = [await session.listen(), await session.listen(), await session.listen()];
    // The second change comes after every notification of the first one.
    for (let count = 1; count <= 2; count++) {
      await changeTools();
      await heard(streams, count);
    }
    expect(streams.flatMap((stream) => stream.methods())).toEqual([TOOLS, TOOLS]);
  });

  it('falls back to another open stream when the newest one ends', async () => {
    const session = await listed();
    const [older, newest] = [await session.listen(), await session.listen()];
    newest.close();
    // The gateway may notice the end of the stream only after a change.
    await waitFor(async () => {
      await changeTools();
      return older.methods().length > 0;
    });
    expect(new Set(older.methods())).toEqual(new Set([TOOLS]));
  });

  it('delivers a missed change at the next opening, once even if it happened several times', async () => {
    const session = await listed();
    await changeTools();
    await changeTools();
    const stream = await session.listen();
    await heard([stream], 1);
    expect(stream.methods()).toEqual([TOOLS]);
    stream.close();
    // The only notification of the next stream is the one of a change that comes after its opening.
    const again = await session.listen();
    await changeTools();
    await heard([again], 1);
    expect(again.methods()).toEqual([TOOLS]);
  });

  it('ignores an event id from another stream', async () => {
    const session = await listed();
    const stream = await session.listen({ 'last-event-id': '1' });
    expect(stream.response.status).toBe(200);
    await changeTools();
    await heard([stream], 1);
    expect(stream.methods()).toEqual([TOOLS]);
  });
});

describe('a client that disconnects', () => {
  const text = (tag: string, ms = 800) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow_slow","arguments":{"ms":${ms},"tag":"${tag}"}}}`;

  async function cancelledTags(): Promise<string> {
    const session = await startSession(gateway);
    return JSON.stringify(await session.ask('tools/call', { name: 'slow_cancelled' }));
  }

  it('does not cancel its call: only notifications/cancelled does', async () => {
    const session = await startSession(gateway);
    const abort = new AbortController();
    const headers = { ...session.headers, 'content-type': 'application/json', accept: '*/*' };
    const sent = fetch(gateway.url, { method: 'POST', body: text('gone', 2000), headers, signal: abort.signal });
    sent.catch(() => {});
    await callsInFlight(gateway);
    abort.abort();
    // The id stays in use until the server has answered.
    expect(await (await session.post(text('again'))).json()).toMatchObject({ error: { code: -32600 } });
    await waitFor(async () => 'result' in ((await (await session.post(text('after', 1))).json()) as object));
    expect(await cancelledTags()).not.toContain('gone');
  });

  it('stops its call if it sends notifications/cancelled', async () => {
    const session = await startSession(gateway);
    const reply = session.post(text('cancelled-one', 60_000));
    await callsInFlight(gateway);
    const cancel =
      '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no longer needed"}}';
    expect((await session.post(cancel)).status).toBe(202);
    expect(await (await reply).text()).toBe('');
    const tags = await cancelledTags();
    expect(tags).toContain('cancelled-one');
    expect(tags).toContain('no longer needed');
  });

  it('cannot cancel the call of another client with the same id', async () => {
    const [one, two] = [await startSession(gateway), await startSession(gateway)];
    const reply = one.post(text('kept'));
    await callsInFlight(gateway);
    await two.post('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}');
    expect(await (await reply).json()).toMatchObject({ id: 1, result: { content: [{ text: 'slow kept' }] } });
  });

  it('in the middle of a request does not break the gateway', async () => {
    const session = await startSession(gateway);
    const socket = openSocket(gateway.origin);
    const half = `POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nContent-Type: application/json\r\nMcp-Session-Id: ${session.id}\r\nContent-Length: 90\r\n\r\n{"json`;
    await new Promise((sent) => socket.write(half, sent));
    socket.destroy();
    expect((await session.post(PING)).status).toBe(200);
  });
});

describe('a long call', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('becomes a stream and is kept alive with comments until the answer', async () => {
    // Fakes only intervals, which send the keep-alives. Everything else needs the real clock.
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const config = configFromValue({ servers: { slow: serverEntry('hang') } }, { cwd: tempFolder(), env: {} });
    const local = createGateway(config);
    await local.tried();
    const door = await openHttpDoor(local, { host: '127.0.0.1', port: 0, token: null });
    atEnd(async () => {
      await door.close();
      await local.close();
    });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const post = (body: string, session = '') =>
      fetch(door.url, { method: 'POST', body, headers: { ...headers, ...(session && { 'mcp-session-id': session }) } });
    const id = (await post(initialize())).headers.get('mcp-session-id') ?? '';
    await post(INITIALIZED, id);
    const call = '{"name":"slow_slow","arguments":{"ms":1500}}';
    const reply = post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${call}}`, id);
    await callsInFlight(local);
    vi.advanceTimersByTime(60_000);
    const response = await reply;
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const body = await response.text();
    expect(body.match(/^: .*$/gm)?.length).toBeGreaterThanOrEqual(3);
    expect(JSON.parse(/^data: (.+)$/m.exec(body)![1]!)).toMatchObject({
      id: 7,
      result: { content: [{ text: 'slow' }] },
    });
  });
});
