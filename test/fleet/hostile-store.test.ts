/** Clients of replicas and those who can reach their store: what neither of them may do. */
import { createHash, randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { beforeAll, describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { AUTHORIZED, type OneOfTwo, openPair, type Pair } from '../support/fleet-pair.ts';
import { isMissing } from '../support/needs.ts';
import { INITIALIZED, initialize } from '../support/raw-http.ts';
import { messagesOf } from '../support/relay-clients.ts';
import { serverEntry } from '../support/server.ts';

const OTHER = { authorization: 'Bearer the-token-of-another-agent' };
const SECRET = 'the pin is 4711';

describe.skipIf(isMissing('redis'))('replicas on Redis', () => {
  let pair: Pair;
  let redis: Redis;

  beforeAll(async () => {
    pair = await openPair('redis', {
      // Calls of the first may be made again by another replica, those of the second may not.
      store: { repeat: ['s_*'] },
      servers: { s: { ...serverEntry('basic'), tools: { echo: { cache: '5m' } } }, once: serverEntry('basic') },
      agents: { other: { token: 'the-token-of-another-agent' } },
    });
    redis = new Redis(pair.redis!.url);
    atEnd(() => redis.disconnect());
  });

  async function openSession(at: OneOfTwo, headers: Record<string, string>): Promise<Record<string, string>> {
    const opened = await at.post(initialize('2025-11-25'), headers);
    const session = { ...headers, 'mcp-session-id': opened.headers.get('mcp-session-id')! };
    await opened.body?.cancel();
    await (await at.post(INITIALIZED, session)).body?.cancel();
    return session;
  }
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
  const idOf = (session: Record<string, string>) => session['mcp-session-id']!;
  const keysAt = (pattern: string) => redis.keys(`*:${pattern}`);

  it('make no inboxes for replicas that a client has invented, and none without an end', async () => {
    const session = await openSession(pair.a, AUTHORIZED);
    for (let i = 0; i < 50; i++) {
      const id = `toolgate-${randomBytes(9).toString('base64url')}-1`;
      const answer = await pair.a.post(JSON.stringify({ jsonrpc: '2.0', id, result: {} }), session);
      expect(answer.status).toBe(202);
    }
    const inboxes = await keysAt('in:*');
    expect(inboxes.length).toBeLessThanOrEqual(2);
    for (const inbox of inboxes) expect(await redis.pttl(inbox)).toBeGreaterThan(0);
  });

  it('keep nothing without an end but what is about all of them', async () => {
    const session = await openSession(pair.a, AUTHORIZED);
    const call = { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 's_echo', arguments: { SECRET } } };
    await messagesOf(await pair.a.post(JSON.stringify(call), session));
    for (const key of await redis.keys('*'))
      if ((await redis.pttl(key)) < 0) expect(key).toMatch(/:(bus|replicas|m:.*|own:.*)$/);
  });

  it('do not believe a session that was put in the place of another', async () => {
    const own = await openSession(pair.a, AUTHORIZED);
    const foreign = await openSession(pair.a, OTHER);
    const [from, to] = await Promise.all([own, foreign].map(async (one) => (await keysAt(`s:${idOf(one)}`))[0]!));
    for (const [field, value] of Object.entries(await redis.hgetallBuffer(from!))) await redis.hset(to!, field, value);
    // The other replica has no copy of it yet, so it reads the store.
    expect((await pair.b.post(list, foreign)).status).toBe(404);
    expect((await pair.b.post(list, { ...own, ...AUTHORIZED })).status).toBe(200);
    expect((await pair.b.post(list, { ...own, ...OTHER })).status).toBe(404);
  });

  it('show nothing of a request in the store, not even what a guess could be compared with', async () => {
    const session = await openSession(pair.a, AUTHORIZED);
    const bodies = ['s_echo', 'once_echo'].map((name, i) =>
      JSON.stringify({
        ...{ jsonrpc: '2.0', id: 3 + i, method: 'tools/call' },
        params: { name, arguments: { text: SECRET } },
      }),
    );
    for (const body of bodies) await messagesOf(await pair.a.post(body, session));
    const guesses = [...bodies, JSON.stringify({ text: SECRET })].flatMap((text) => {
      const hash = createHash('sha256').update(text).digest();
      return [hash.toString('base64url'), hash.toString('base64'), hash.toString('hex'), hash.toString('latin1')];
    });
    const all: string[] = [];
    for (const key of await redis.keys('*')) all.push(key, (await redis.dumpBuffer(key))?.toString('latin1') ?? '');
    for (const text of [SECRET, 's_echo', 'once_echo', ...guesses])
      expect(all.filter((one) => one.includes(text))).toEqual([]);
  });

  it.each([
    ['a request that nobody sealed', 9, { jsonrpc: '2.0', id: 9, method: 'tools/call' }],
    ['the request of another id', 10, { jsonrpc: '2.0', id: 11, method: 'tools/call' }],
    ['a request of another kind', 12, { jsonrpc: '2.0', id: 12, method: 'tools/list' }],
    ['no request at all', 13, ['nothing']],
  ])('do not make a call of %s that somebody has put into the ledger', async (_, id, message) => {
    const session = await openSession(pair.a, AUTHORIZED);
    const call = `toolgate:c:${idOf(session)}:n${id}`;
    const params = { name: 's_echo', arguments: { text: 'forged' } };
    const kept = JSON.stringify(Array.isArray(message) ? message : { ...message, params });
    await redis.hset(call, { o: 'ghost', e: '1', n: '0', g: 'x', q: kept });
    await redis.sadd('toolgate:own:ghost', `${idOf(session)} n${id}`, 'a name\nwith a line', 'x');
    await redis.sadd('toolgate:replicas', 'ghost');
    await expect.poll(() => redis.exists('toolgate:own:ghost'), { timeout: 30_000 }).toBe(0);
    const headers = { ...session, accept: 'text/event-stream', 'last-event-id': `n${id}_0-1` };
    const text = await (await fetch(pair.b.url, { headers })).text();
    expect(text).not.toContain('forged');
    expect(text.includes('outcome_unknown')).toBe(id === 9);
  });
});
