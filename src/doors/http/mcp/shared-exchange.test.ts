/** Who has an answer first: its client or the store. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { GatewayError } from '../../../base/errors.ts';
import { readMessage } from '../../../protocol/read.ts';
import { createMemoryStore } from '../../../store/shared/memory-store.ts';
import { openReplica, type Replica } from '../../../store/shared/replica.ts';
import { createSealing } from '../../../store/shared/sealing.ts';
import type { SharedStore } from '../../../store/shared/shared-store.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { SharedExchange, type SharedExchangeOptions } from './shared-exchange.ts';
import { openEvent, Wakes } from './shared-stream.ts';

const call = { session: 's', stream: 'n1' };
const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{}}';
const reply = { head: ANSWER, body: Buffer.alloc(0), tail: '' };
const backpressure: Backpressure = { streams: 0, opened() {}, written() {}, isTooMuch: () => false, close() {} };
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** A call that was admitted, and a client that waits for it. `written` is what has become of its answer in the store. */
async function openOne(more: Partial<SharedExchangeOptions> = {}) {
  const memory = createMemoryStore();
  const written: string[] = [];
  let allow: () => void = () => {};
  let allowed = Promise.resolve();
  const store: SharedStore = {
    ...memory,
    async append(...given) {
      written.push('append');
      return memory.append(...given);
    },
    async answerLate(...given) {
      written.push('late');
      await allowed;
      const result = await memory.answerLate(...given);
      written.push(result.state);
      return result;
    },
  };
  const replica = await openReplica(store, createSealing(['key']), { note() {}, failure() {} });
  closing.push(() => replica.close());
  await store.openSession('s', {}, 60_000);
  const since = performance.now();
  await store.admit({ ...call, owner: replica.id, digest: 'd', bytes: Buffer.from('q') });
  const server = createServer({ keepAlive: false }).listen(0, '127.0.0.1');
  closing.push(() => server.close());
  await once(server, 'listening');
  const asked = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
  let ended = () => {};
  const isEnded = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const exchange = new SharedExchange({
    replica,
    wakes: new Wakes(),
    backpressure,
    call,
    epoch: 1,
    since,
    response,
    headers: [],
    streams: true,
    primes: true,
    ended,
    ...more,
  });
  const hold = () => {
    allowed = new Promise((resolve) => {
      allow = resolve;
    });
  };
  return { memory, replica, exchange, response, asked, written, isEnded, hold, allow: () => allow() };
}

const kept = async (store: SharedStore, replica: Replica) =>
  ((await store.events('s', 'n1', [0, 1], replica.id)) ?? []).map((event) => String(openEvent(replica, call, event)));

it('an answer that is the whole reply reaches the client before the store has it', async () => {
  const { memory, replica, exchange, asked, written, isEnded, hold, allow } = await openOne();
  hold();
  exchange.finish(reply);
  expect(await (await asked).text()).toBe(ANSWER);
  expect(written).toEqual(['late']);
  expect(await memory.ownerOf(call)).toBe(replica.id);
  allow();
  await isEnded;
  expect(written).toEqual(['late', 'done']);
  expect(await kept(memory, replica)).toEqual([ANSWER]);
});

it('who ends calls waits until an answer that its client has is in the store', async () => {
  const { exchange, asked, written, hold, allow } = await openOne();
  hold();
  exchange.finish(reply);
  await (await asked).text();
  const request = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call"}'));
  const given = exchange.giveUp(request, new GatewayError('outcome_unknown', 'The gateway was stopped.'));
  allow();
  await given;
  expect(written).toEqual(['late', 'done']);
});

it('another replica that has taken the call meanwhile keeps it, and the client has one answer', async () => {
  const { memory, replica, exchange, asked, written, isEnded, hold, allow } = await openOne();
  hold();
  exchange.finish(reply);
  expect(await (await asked).text()).toBe(ANSWER);
  await memory.beat(replica.id, -1);
  expect(await memory.take(call, replica.id, 'taker')).toMatchObject({ epoch: 2 });
  allow();
  await isEnded;
  expect(written).toEqual(['late', 'lost']);
  expect(await kept(memory, replica)).toEqual([]);
});

it('an answer is written when the store is back', async () => {
  const { memory, replica, exchange, asked, isEnded } = await openOne();
  const { store } = replica;
  const answerLate = store.answerLate;
  let tries = 0;
  store.answerLate = async (...given) => {
    if (++tries < 3) throw new Error('away');
    return answerLate(...given);
  };
  exchange.finish(reply);
  expect(await (await asked).text()).toBe(ANSWER);
  await isEnded;
  expect(tries).toBe(3);
  expect(await kept(memory, replica)).toEqual([ANSWER]);
});

it.each([
  ['was asked for before signs of life had a gap', { since: -1 }, null],
  ['is the end of a stream', {}, (exchange: SharedExchange) => exchange.keepAlive()],
  ['follows other messages', {}, (exchange: SharedExchange) => exchange.send(Buffer.from('{"jsonrpc":"2.0"}'))],
])('an answer that %s is in the store first', async (_name, more, before) => {
  const { exchange, asked, written, isEnded } = await openOne(more);
  before?.(exchange);
  exchange.finish(reply);
  expect(await (await asked).text()).toContain(ANSWER);
  await isEnded;
  expect(new Set(written)).toEqual(new Set(['append']));
});

it('an answer whose client is gone is in the store at once', async () => {
  const { exchange, asked, response, written, isEnded } = await openOne();
  response.destroy();
  await expect(asked).rejects.toThrow();
  exchange.finish(reply);
  await isEnded;
  expect(written).toEqual(['append']);
});
