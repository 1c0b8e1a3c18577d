/** A client that loses its stream after any event reconnects and receives each event exactly once, in order. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { comeBack, openEvents, readAll, type SseEvent } from '../support/http-events.ts';
import { waitFor } from '../support/processes.ts';
import { type RawSession, startSession } from '../support/raw-http.ts';
import { server, serversToml } from '../support/server.ts';
import { onePart } from '../support/wide.ts';

const SERVERS = serversToml({ flood: server('flood'), up: server('changing'), asking: server('asking') });
let gateway: HttpGateway;
beforeAll(async () => {
  gateway = await startHttp({ config: `controls = []\n${SERVERS}` });
});

const STEPS = 12;
const call = (name: string, args: object, token?: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 7,
    method: 'tools/call',
    params: { name, arguments: args, ...(token !== undefined && { _meta: { progressToken: token } }) },
  });
const FLOOD = call('flood_flood', { progress: STEPS }, 't');
const post = (session: RawSession, body: string) => openEvents(gateway, '/mcp', session.headers, body);

/** What the events of the flood contain: every step, then the result. */
function told(events: readonly SseEvent[]): unknown[] {
  return events
    .filter(({ message }) => message !== null)
    .map(({ message }) => (message!.params as { progress?: number } | undefined)?.progress ?? message!.result);
}
const EVERYTHING = [
  ...Array.from({ length: STEPS }, (_, n) => n + 1),
  { content: [{ type: 'text', text: 'flooded' }] },
];

/** The two without an event at the beginning of a stream are alike. */
const REVISIONS = [...onePart(2, ['2025-03-26', '2025-06-18']), '2025-11-25'];
describe.each(REVISIONS)('replay in revision %s', (revision) => {
  it('resumes the stream of a call when it drops after any one event', async () => {
    const session = await startSession(gateway, { revision });
    for (let kept = 1; kept <= STEPS + 1; kept++) {
      const stream = await post(session, FLOOD);
      const seen: SseEvent[] = [];
      while (seen.length < kept) seen.push((await stream.next())!);
      stream.drop();
      const again = await comeBack(gateway, session, seen.at(-1)!.id);
      expect(again.status).toBe(200);
      expect(told([...seen, ...(await readAll(again))])).toEqual(EVERYTHING);
    }
  });

  it('resumes the stream of a call when it drops after each event, repeatedly', async () => {
    const session = await startSession(gateway, { revision });
    let stream = await post(session, FLOOD);
    const seen: SseEvent[] = [];
    for (let event = await stream.next(); event !== null; event = await stream.next()) {
      seen.push(event);
      stream.drop();
      stream = await comeBack(gateway, session, event.id);
    }
    expect(told(seen)).toEqual(EVERYTHING);
    expect(new Set(seen.map(({ id }) => id)).size).toBe(seen.length);
  });

  it('resumes the GET stream when it drops after any one event', async () => {
    const session = await startSession(gateway, { revision });
    await session.ask('tools/list');
    const change = () => session.ask('tools/call', { name: 'up_add_tool', arguments: { name: `more_${++added}` } });
    let stream = await openEvents(gateway, '/mcp', session.headers);
    const seen: SseEvent[] = [];
    // Produces a first event. Only 2025-11-25 opens a stream with an event that just carries its id.
    await change();
    for (let dropped = 0; dropped < 5; dropped++) {
      const event = (await stream.next())!;
      seen.push(event);
      stream.drop();
      // These are sent while the client is disconnected, and before the gateway has noticed.
      if (dropped % 2 === 1) await sleep(50);
      await change();
      await sleep(50);
      stream = await comeBack(gateway, session, event.id);
    }
    seen.push((await stream.next())!);
    const methods = seen.filter(({ message }) => message !== null).map(({ message }) => message!.method);
    expect(new Set(methods)).toEqual(new Set(['notifications/tools/list_changed']));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(6);
    await sleep(50);
    expect(stream.waiting).toBe(0);
  });
});
let added = 0;

describe('a client of 2025-11-25', () => {
  it('can resume before it has received any message', async () => {
    const session = await asked();
    const stream = await post(session, call('asking_ask', { questions: 1 }));
    const first = (await stream.next())!;
    stream.drop();
    expect(first.message).toBeNull();
    const again = await comeBack(gateway, session, first.id);
    expect(again.status).toBe(200);
    const { message } = (await again.next())!;
    expect(message).toMatchObject({ method: 'elicitation/create' });
    const result = { action: 'accept', content: { word: 'resumed' } };
    await session.post(JSON.stringify({ jsonrpc: '2.0', id: message!.id, result }));
    const rest = await readAll(again);
    expect(JSON.stringify(rest.map((event) => event.message))).toContain('resumed');
  });

  it('can answer a question after it lost the stream that carried it', async () => {
    const session = await asked();
    const stream = await post(session, call('asking_ask', { questions: 2, word: 'w' }));
    const seen: SseEvent[] = [(await stream.next())!, (await stream.next())!];
    stream.drop();
    for (let round = 1; round <= 2; round++) {
      const { message } = seen.at(-1)!;
      expect(message).toMatchObject({
        method: 'elicitation/create',
        params: { message: `Server "asking" asks: w#${round}` },
      });
      await session.post(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message!.id,
          result: { action: 'accept', content: { word: `a${round}` } },
        }),
      );
      const again = await comeBack(gateway, session, seen.at(-1)!.id);
      seen.push((await again.next())!);
      again.drop();
    }
    const text = JSON.stringify(seen.at(-1)!.message);
    expect(text).toContain('a1');
    expect(text).toContain('a2');
  });
});

/** A session whose client can be asked. */
function asked(): Promise<RawSession> {
  return startSession(gateway, { capabilities: { elicitation: {} } });
}

describe('resuming with Last-Event-ID', () => {
  it('takes the stream over from a connection that is still open', async () => {
    const session = await startSession(gateway);
    const first = await openEvents(gateway, '/mcp', session.headers);
    const { id } = (await first.next())!;
    const second = await comeBack(gateway, session, id);
    expect(await first.next()).toBeNull();
    await session.ask('tools/list');
    await session.ask('tools/call', { name: 'up_add_tool', arguments: { name: `more_${++added}` } });
    expect(await second.next()).toMatchObject({ message: { method: 'notifications/tools/list_changed' } });
  });

  it('returns no events of another stream of the session', async () => {
    const session = await startSession(gateway);
    const standing = await openEvents(gateway, '/mcp', session.headers);
    const { id } = (await standing.next())!;
    expect(told(await readAll(await post(session, FLOOD)))).toEqual(EVERYTHING);
    standing.drop();
    const again = await comeBack(gateway, session, id);
    // The next event is the one of a change that comes afterwards.
    await session.ask('tools/list');
    await session.ask('tools/call', { name: 'up_add_tool', arguments: { name: `more_${++added}` } });
    expect(await again.next()).toMatchObject({ message: { method: 'notifications/tools/list_changed' } });
  });

  it('is refused with an event id from another session', async () => {
    const [one, other] = [await startSession(gateway), await startSession(gateway)];
    const events = await readAll(await post(one, FLOOD));
    const stranger = await comeBack(gateway, other, events[0]!.id);
    expect(stranger.status).toBe(400);
  });

  it('reports an answer that is no longer stored, and loses only what exceeds limits.replay', async () => {
    const small = await startHttp({ config: `controls = []\n[limits]\nreplay = 1000\n${SERVERS}` });
    const session = await startSession(small);
    const events = await readAll(await openEvents(small, '/mcp', session.headers, FLOOD));
    const kept = await readAll(await comeBack(small, session, events[0]!.id));
    expect(kept.length).toBeGreaterThan(0);
    expect(kept.length).toBeLessThan(STEPS);
    expect(told(kept)).toEqual(EVERYTHING.slice(-kept.length));
    for (let i = 0; i < 3; i++) await readAll(await openEvents(small, '/mcp', session.headers, FLOOD));
    const late = await comeBack(small, session, events[0]!.id);
    expect(late.status).toBe(200);
    expect(told(await readAll(late))).toEqual([]);
  });

  it('works after the gateway has disconnected a slow reader', { timeout: 180_000 }, async () => {
    const tight = await startHttp({
      config: `controls = []\n[limits]\nunread = "1MiB"\nreplay = "64MiB"\n${SERVERS}`,
    });
    const session = await startSession(tight);
    // About 12 MB, which is more than the limit and what the system keeps for a connection.
    const steps = 8_000;
    const stream = await openEvents(
      tight,
      '/mcp',
      session.headers,
      call('flood_flood', { progress: steps, bytes: 1_500 }, 't'),
    );
    const seen = [(await stream.next())!];
    stream.pause();
    await waitFor(() => tight.stderr().includes('limits.unread'));
    stream.resume();
    seen.push(...(await readAll(stream)));
    // More is stored than the limit, so the gateway may cut the connection again.
    while (seen.at(-1)!.message!.result === undefined)
      seen.push(...(await readAll(await comeBack(tight, session, seen.at(-1)!.id))));
    const all = told(seen);
    expect(all).toHaveLength(steps + 1);
    expect(all.slice(0, -1)).toEqual(Array.from({ length: steps }, (_, n) => n + 1));
  });
});
