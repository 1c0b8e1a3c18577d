/** What an engine promises, for each of them: Redis, memory, and memory in another process. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openChannel } from '../../../test/support/channel.ts';
import { isMissing } from '../../../test/support/needs.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { answerIn } from './answers.ts';
import { createStoreHost, openIpcStore } from './ipc-store.ts';
import { createMemoryStore } from './memory-store.ts';
import { openRedisStore } from './redis-store.ts';
import type { LedgerKey, SharedStore, StoredEvent } from './shared-store.ts';

const ENGINES: Record<string, () => Promise<SharedStore>> = {
  ...(!isMissing('redis') && {
    redis: async () => openRedisStore((await startRedis()).url, 'test', () => {}),
  }),
  memory: async () => createMemoryStore(),
  'memory of another process': async () => {
    const [parent, child] = openChannel();
    createStoreHost().serve(parent);
    return openIpcStore(child);
  },
};

const bytes = (text: string) => Buffer.from(text);
const event = (epoch: number, number: number, text: string, isLast = false): StoredEvent => ({
  epoch,
  number,
  bytes: bytes(text),
  isLast,
});
const LONG = 60_000;

describe.each(Object.keys(ENGINES))('the engine %s', (name) => {
  let store: SharedStore;
  let count = 0;
  /** A call that is in the ledger, of a session of its own. */
  async function admitted(owner = 'one') {
    const session = `s${++count}`;
    await store.openSession(session, { open: bytes('x') }, LONG);
    const call = { session, stream: 'a' };
    expect(await store.admit({ ...call, owner, digest: 'd', bytes: bytes('request') })).toBe('fresh');
    return call;
  }
  const textsOf = async (call: { session: string; stream: string }, after: [number, number] = [0, 1]) =>
    (await store.events(call.session, call.stream, after, 'reader'))?.map((one) => one.bytes.toString());

  beforeAll(async () => {
    store = await ENGINES[name]!();
  });
  afterAll(() => store.close());

  it('admits a request once, and knows it when it comes again', async () => {
    const call = await admitted();
    const again = { ...call, owner: 'two', bytes: bytes('request') };
    expect(await store.admit({ ...again, digest: 'd' })).toBe('known');
    expect(await store.admit({ ...again, digest: 'other' })).toBe('taken');
    expect(await store.ownerOf(call)).toBe('one');
    expect(await store.owned('one')).toContainEqual(call);
    await store.append(call, 'one', event(1, 1, 'end', true), LONG);
    expect(await store.admit({ ...again, digest: 'd' })).toBe('known');
    expect(await store.admit({ ...again, digest: 'other' })).toBe('fresh');
    expect(await store.admit({ ...again, session: 'nobody', digest: 'd' })).toBe('gone');
  });

  it('keeps a request that is text as well', async () => {
    const { session } = await admitted('texts');
    const call = { session, stream: 'n1' };
    expect(await store.admit({ ...call, owner: 'texts', digest: 'd', bytes: '{"id":1}' })).toBe('fresh');
    expect(String((await store.take(call, 'texts', 'texts'))?.bytes)).toBe('{"id":1}');
  });

  it('writes each event once, in order, and nothing after the last', async () => {
    const call = await admitted();
    expect(await store.append(call, 'one', event(1, 1, 'a'), LONG)).toEqual({ state: 'done', reader: null });
    expect(await store.append(call, 'one', event(1, 1, 'a'), LONG)).toMatchObject({ state: 'done' });
    expect(await textsOf(call)).toEqual(['a']);
    // Somebody reads it elsewhere, and is told of later events.
    const last = event(1, 2, 'b', true);
    expect(await store.append(call, 'one', last, LONG)).toEqual({ state: 'done', reader: 'reader' });
    // The reply to it may have been lost.
    expect(await store.append(call, 'one', last, LONG)).toEqual({ state: 'done', reader: 'reader' });
    expect(await store.append(call, 'one', event(1, 3, 'c', true), LONG)).toMatchObject({ state: 'lost' });
    expect(await textsOf(call)).toEqual(['a', 'b']);
    expect(await textsOf(call, [1, 1])).toEqual(['b']);
    expect(await store.owned('one')).not.toContainEqual(call);
    expect(await store.append({ ...call, stream: 'x' }, 'one', last, LONG)).toMatchObject({ state: 'missing' });
    expect(await store.events(call.session, 'x', [0, 0], 'reader')).toBeNull();
  });

  it('takes steps of many calls at once, each by itself', async () => {
    const calls = await Promise.all(Array.from({ length: 150 }, () => admitted('many')));
    const steps = calls.flatMap((call, i) => [
      store.append(call, 'many', event(1, 1, `${i} first`), LONG),
      store.append(call, i === 7 ? 'another' : 'many', event(1, 2, `${i} last`, true), LONG),
    ]);
    const states = (await Promise.all(steps)).map(({ state }) => state);
    expect(states.map((state, i) => (state === 'done' ? -1 : i)).filter((i) => i >= 0)).toEqual([15]);
    expect(await textsOf(calls[149]!)).toEqual(['149 first', '149 last']);
    expect(await store.owned('many')).toEqual([calls[7]]);
  });

  it('keeps answers that were sealed together, each for its call', async () => {
    const calls = await Promise.all(Array.from({ length: 100 }, () => admitted('late')));
    const sealed: string[] = [];
    const seal = (plain: Buffer, place: string) => {
      sealed.push(place);
      return plain;
    };
    const answer = (one: LedgerKey, text: string, owner = 'late') =>
      store.answerLate(one, owner, 1, { head: '', body: bytes(text), tail: '' }, LONG, seal);
    await store.events(calls[3]!.session, calls[3]!.stream, [0, 1], 'reader');
    const replies = await Promise.all(calls.map((one, i) => answer(one, `answer ${i}`, i === 7 ? 'thief' : 'late')));
    expect(replies.map(({ state }, i) => (state === 'done' ? -1 : i)).filter((i) => i >= 0)).toEqual([7]);
    expect(replies[3]).toEqual({ state: 'done', reader: 'reader' });
    for (const i of [0, 63, 64, 99]) {
      const [found] = (await store.events(calls[i]!.session, calls[i]!.stream, [0, 1], 'reader'))!;
      expect(found).toMatchObject({ epoch: 1, number: 1, isLast: true });
      expect(sealed).toContain(`answers:${found!.batch}`);
      expect(String(answerIn(found!.bytes, calls[i]!))).toBe(`answer ${i}`);
    }
    expect(await textsOf(calls[7]!)).toEqual([]);
    expect(await store.owned('late')).toEqual([calls[7]]);
    // The reply was lost, and it is sent again.
    expect(await answer(calls[0]!, 'answer 0')).toMatchObject({ state: 'done' });
    // It has lost the call meanwhile.
    await store.take(calls[7]!, 'late', 'taker of one');
    expect(await answer(calls[7]!, 'too late')).toEqual({ state: 'lost', reader: null });
    expect(await textsOf(calls[7]!)).toEqual([]);
  });

  it('gives no call away while its replica gives signs of life', async () => {
    const call = await admitted('alive');
    await store.beat('alive', LONG);
    expect(await store.take(call, 'alive', 'heir')).toBeNull();
    expect(await store.owned('alive')).toEqual([call]);
    expect(await store.append(call, 'alive', event(1, 1, 'own', true), LONG)).toMatchObject({ state: 'done' });
    const left = await admitted('alive');
    await store.beat('alive', 1);
    await expect.poll(() => store.replicas()).toContainEqual({ id: 'alive', isAlive: false });
    expect(await store.take(left, 'alive', 'heir')).toMatchObject({ epoch: 2 });
  });

  it('gives a call to one taker, and refuses what its former owner writes', async () => {
    const call = await admitted('dead');
    await store.append(call, 'dead', event(1, 1, 'before'), LONG);
    const taken = await store.take(call, 'dead', 'taker');
    expect({ ...taken, bytes: String(taken?.bytes) }).toEqual({ ...call, epoch: 2, bytes: 'request', isRead: false });
    expect(await store.take(call, 'dead', 'another')).toBeNull();
    expect(await store.append(call, 'dead', event(1, 2, 'late', true), LONG)).toMatchObject({ state: 'lost' });
    expect(await store.append(call, 'taker', event(2, 1, 'after', true), LONG)).toMatchObject({ state: 'done' });
    expect(await textsOf(call)).toEqual(['before', 'after']);
    expect(await store.take(call, 'taker', 'another')).toBeNull();
    expect([await store.owned('dead'), await store.owned('taker')]).toEqual([[], []]);
  });

  it('says whether a client waits for a call that is taken, also by its own owner', async () => {
    const call = await admitted('self');
    expect(await store.take(call, 'self', 'self')).toMatchObject({ epoch: 2, isRead: false });
    await textsOf(call);
    expect(await store.take(call, 'self', 'self')).toMatchObject({ epoch: 3, isRead: true });
    expect(await store.owned('self')).toEqual([call]);
  });

  it('forgets a replica only if it is dead and has nothing under way', async () => {
    await store.beat('r1', LONG);
    await store.beat('r2', 1);
    await expect.poll(() => store.replicas()).toContainEqual({ id: 'r2', isAlive: false });
    expect(await store.replicas()).toContainEqual({ id: 'r1', isAlive: true });
    expect(await store.claim('r2', 'r1', LONG)).toBe(true);
    expect(await store.claim('r2', 'r3', LONG)).toBe(false);
    // It comes back for a moment, takes a call, and is killed.
    const call = await admitted('r2');
    expect(await store.retire('r2', 'r1')).toBe(false);
    expect(await store.replicas()).toContainEqual({ id: 'r2', isAlive: false });
    expect(await store.claim('r2', 'r3', LONG)).toBe(true);
    expect(await store.take(call, 'r2', 'r3')).not.toBeNull();
    expect(await store.retire('r2', 'r3')).toBe(true);
    expect(await store.retire('r1', 'r3')).toBe(false);
    expect(await store.retire('r1', 'r1')).toBe(true);
    expect((await store.replicas()).map(({ id }) => id)).not.toContain('r1');
    // A call makes its owner one of the replicas, even if nobody has heard of it lately.
    await admitted('r4');
    expect(await store.replicas()).toContainEqual({ id: 'r4', isAlive: false });
  });

  it('lets a replica that was forgotten and comes back hear the others', async () => {
    const other = await ENGINES[name]!();
    const heard: string[] = [];
    await other.follow('stopped', { news() {}, received: (entry) => heard.push(String(entry)), returned() {} });
    await other.beat('stopped', 1);
    await expect.poll(() => other.replicas()).toContainEqual({ id: 'stopped', isAlive: false });
    expect(await other.retire('stopped', 'other')).toBe(true);
    await other.send('stopped', bytes('still here'));
    await expect.poll(() => heard).toEqual(['still here']);
    await other.close();
  });

  it('keeps sessions with their fields, and their notifications once each', async () => {
    await store.openSession('s', { open: bytes('x') }, LONG);
    expect(await store.setSession('s', { more: bytes('y') }, 0)).toBe(true);
    expect(await store.setSession('none', { more: bytes('y') }, 0)).toBe(false);
    expect(String((await store.session('s', LONG))?.more)).toBe('y');
    expect(await store.tell('s', bytes('n1'), ['known:tools', '1'])).toBeNull();
    await store.hold('s', 'holder');
    expect(await store.tell('s', bytes('again'), ['known:tools', '1'])).toBeNull();
    expect(await store.tell('s', bytes('n2'), ['known:tools', '2'])).toBe('holder');
    expect(await store.tell('none', bytes('n'), null)).toBeNull();
    expect((await store.events('s', 's', [0, 0], 'r'))?.map((one) => String(one.bytes))).toEqual(['n1', 'n2']);
    expect(await store.endSession('s')).toBe(true);
    expect(await store.endSession('s')).toBe(false);
    expect(await store.session('s', LONG)).toBeNull();
    await store.openSession('short', { open: bytes('x') }, 1);
    await expect.poll(() => store.session('short', 1)).toBeNull();
  });

  it('takes from all budgets or from none', async () => {
    const rate = { key: 'rate', interval: 60_000, burst: 120_000 };
    const day = { key: 'day', limit: 3 };
    expect(await store.spend([rate, day])).toBeNull();
    expect(await store.spend([rate, day])).toBeNull();
    const refused = await store.spend([day, rate]);
    expect(refused?.index).toBe(1);
    expect(refused?.pause).toBeGreaterThan(0);
    expect(await store.spend([day])).toBeNull();
    expect(await store.spend([day])).toEqual({ index: 0, pause: 0 });
  });

  it('keeps results and entries of maps, and tells all replicas of what is new', async () => {
    const heard: string[] = [];
    await store.follow('follower', {
      news: (entry) => heard.push(`news ${entry}`),
      received: (entry) => heard.push(`for me ${entry}`),
      returned() {},
    });
    await store.setEntry('map', 'key', bytes('value'), bytes('set'));
    await store.publish(bytes('told'));
    await store.send('follower', bytes('message'));
    await expect.poll(() => [...heard].sort()).toEqual(['for me message', 'news set', 'news told']);
    expect([...(await store.entries('map'))].map(([key, value]) => [key, String(value)])).toEqual([['key', 'value']]);
    await store.setEntry('map', 'key', null, bytes('removed'));
    expect((await store.entries('map')).size).toBe(0);
    await store.keepResult('k', bytes('kept'), LONG);
    expect(String(await store.findResult('k'))).toBe('kept');
    expect(await store.findResult('other')).toBeNull();
  });
});

describe.skipIf(isMissing('redis'))('a key of Redis that was overwritten', () => {
  it('fails the steps of its call, and not those of others that are sent with them', async () => {
    const redis = await startRedis();
    const store = await openRedisStore(redis.url, 'test', () => {});
    const other = new Redis(redis.url);
    for (const session of ['good', 'bad']) await store.openSession(session, { open: bytes('x') }, LONG);
    await other.set('test:c:bad:a', 'not a hash');
    const admit = (session: string) =>
      store.admit({ session, stream: 'a', owner: 'one', digest: 'd', bytes: bytes('q') }).catch(String);
    expect(await Promise.all([admit('good'), admit('bad'), admit('none')])).toEqual([
      'fresh',
      expect.stringContaining('refused'),
      'gone',
    ]);
    other.disconnect();
    await store.close();
  });
});
