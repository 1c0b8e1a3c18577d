/** What somebody can do who reads and writes the store, and has no key. */
import { expect, it } from 'vitest';
import { createMemoryStore } from './memory-store.ts';
import { openReplica } from './replica.ts';
import { createSealing } from './sealing.ts';
import type { StoreReader } from './shared-store.ts';

const sealing = createSealing(['the key']);

async function openTwo() {
  const store = createMemoryStore();
  const notes: string[] = [];
  const sent: { to: string; entry: Buffer }[] = [];
  const published: Buffer[] = [];
  const watched = {
    ...store,
    async send(to: string, entry: Buffer) {
      sent.push({ to, entry });
      await store.send(to, entry);
    },
    async publish(entry: Buffer) {
      published.push(entry);
      await store.publish(entry);
    },
    async setEntry(map: string, key: string, value: Buffer | null, news: Buffer) {
      published.push(news);
      await store.setEntry(map, key, value, news);
    },
  };
  const events = { note: (text: string) => notes.push(text), failure() {} };
  const a = await openReplica(watched, sealing, events);
  const b = await openReplica(watched, sealing, events);
  return { store, a, b, notes, sent, published };
}

it('a message that is put there again is not taken twice, nor one for another replica', async () => {
  const { store, a, b, notes, sent } = await openTwo();
  const heard: unknown[] = [];
  b.hear('act', ({ what }) => heard.push(what));
  a.hear('act', ({ what }) => heard.push(`moved ${String(what)}`));
  for (let i = 0; i < 3_000; i++) await a.send(b.id, 'act', { what: i });
  expect(heard).toHaveLength(3_000);
  const messages = sent.filter(({ to }) => to === b.id);
  for (const { entry } of messages) await store.send(b.id, entry);
  expect(heard).toHaveLength(3_000);
  expect(notes.at(-1)).toContain('it came before');
  await store.send(a.id, messages[0]!.entry);
  expect(heard).toHaveLength(3_000);
  expect(notes.at(-1)).toContain('not sealed with our key');
  await Promise.all([a.close(), b.close()]);
});

it('messages may come out of order', async () => {
  const { store, a, b, sent } = await openTwo();
  const heard: unknown[] = [];
  b.hear('act', ({ what }) => heard.push(what));
  const { send } = store;
  store.send = async () => {};
  for (let i = 0; i < 10; i++) await a.send(b.id, 'act', { what: i });
  const own = sent.filter(({ to }) => to === b.id).reverse();
  for (const { entry } of own) await send(b.id, entry);
  expect(heard).toEqual([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  await Promise.all([a.close(), b.close()]);
});

it('news that are far behind the messages of the same replica are heard', async () => {
  const { store, a, b, published } = await openTwo();
  const heard: unknown[] = [];
  b.hear('told', ({ what }) => heard.push(what));
  const { publish } = store;
  store.publish = async () => {};
  const all = Array.from({ length: 2_500 }, (_, i) => a.publish('told', { what: i }));
  await a.send(b.id, 'told', { what: 'the message' });
  for (const news of published) await publish(news);
  await Promise.all(all);
  expect(heard).toEqual(['the message', ...Array.from({ length: 2_500 }, (_, i) => i)]);
  await Promise.all([a.close(), b.close()]);
});

it('a replica that has just started takes no message from long before', async () => {
  const { store, a, published } = await openTwo();
  for (let i = 0; i < 2_000; i++) await a.publish('told', { what: i });
  const events = { note() {}, failure() {} };
  const late = await openReplica(store, sealing, events);
  const heard: unknown[] = [];
  late.hear('told', ({ what }) => heard.push(what));
  await a.publish('told', { what: 'now' });
  for (const news of published.slice(0, 900)) await store.publish(news);
  expect(heard).toEqual(['now']);
  await Promise.all([a.close(), late.close()]);
});

it('news that are put there again bring back nothing that was removed', async () => {
  const { store, a, b, published } = await openTwo();
  const [own, other] = [a.map('page sessions'), b.map('page sessions')];
  await Promise.all([a.loaded(), b.loaded()]);
  await own.set('session', { who: 'ann' });
  expect(other.get('session')).toEqual({ who: 'ann' });
  await own.set('session', null);
  expect(other.get('session')).toBeUndefined();
  for (const news of [...published]) await store.publish(news);
  expect([own.get('session'), other.get('session')]).toEqual([undefined, undefined]);
  await Promise.all([a.close(), b.close()]);
});

it('an entry counts only under its own key of its own map, whatever it is called', async () => {
  const { store, a, b } = await openTwo();
  const first = a.map('lasting');
  await a.loaded();
  for (const key of ['ann', '__proto__', 'constructor']) await first.set(key, { until: key });
  const entries = await store.entries('lasting');
  const nothing = sealing.seal('{}', 'elsewhere');
  await store.setEntry('lasting', 'bob', entries.get('ann')!, nothing);
  await store.setEntry('approvals', 'ann', entries.get('ann')!, nothing);
  const [lasting, approvals] = [b.map('lasting'), b.map('approvals')];
  await b.loaded();
  expect([...lasting.entries()].map(([key, value]) => [key, value])).toEqual(
    ['ann', '__proto__', 'constructor'].map((key) => [key, { until: key }]),
  );
  expect([...approvals.entries()]).toEqual([]);
  await Promise.all([a.close(), b.close()]);
});

it('others that could not be seen while the store was away count as before, until they had time to come back', async () => {
  const store = createMemoryStore();
  let areSeen = true;
  let reached = () => {};
  const watched = {
    ...store,
    replicas: async () => (await store.replicas()).map(({ id }) => ({ id, isAlive: areSeen })),
    async follow(replica: string, reader: StoreReader) {
      reached = reader.returned;
      await store.follow(replica, reader);
    },
  };
  const events = { note() {}, failure() {} };
  const other = await openReplica(store, sealing, events);
  const one = await openReplica(watched, sealing, events);
  expect(one.isAlive(other.id)).toBe(true);
  areSeen = false;
  reached();
  const looked = new Promise<void>((resolve) => {
    watched.beat = async (replica, ms) => {
      await store.beat(replica, ms);
      setImmediate(resolve);
    };
  });
  await looked;
  expect(one.isAlive(other.id)).toBe(true);
  expect(one.isAlive('nobody')).toBe(false);
  await Promise.all([one.close(), other.close()]);
});
