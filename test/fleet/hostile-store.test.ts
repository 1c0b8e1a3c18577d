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
      servers: { s: { ...serverEntry('basic'), tools: { echo: { cache: '5m' } } } },
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
    const body = JSON.stringify({
      ...{ jsonrpc: '2.0', id: 3, method: 'tools/call' },
      params: { name: 's_echo', arguments: { text: SECRET } },
    });
    await messagesOf(await pair.a.post(body, session));
    const guesses = [body, JSON.stringify({ text: SECRET })].flatMap((text) => {
      const hash = createHash('sha256').update(text).digest();
      return [hash.toString('base64url'), hash.toString('base64'), hash.toString('hex'), hash.toString('latin1')];
    });
    const all: string[] = [];
    for (const key of await redis.keys('*')) all.push(key, (await redis.dumpBuffer(key))?.toString('latin1') ?? '');
    for (const text of [SECRET, 's_echo', ...guesses]) expect(all.filter((one) => one.includes(text))).toEqual([]);
  });
});
