import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf, entryOf } from '../../../test/support/catalog.ts';
import { readMessage } from '../../protocol/read.ts';
import { createMemoryStore } from '../../store/shared/memory-store.ts';
import { openReplica } from '../../store/shared/replica.ts';
import { createSealing } from '../../store/shared/sealing.ts';
import { canonical, createResultCache } from './cache.ts';
import { createSharedBudgets } from './shared-budgets.ts';

const keyOf = (text: string) => canonical(Buffer.from(text), 0, Buffer.byteLength(text));

function shuffled(value: unknown): string {
  if (Array.isArray(value)) return `[ ${value.map(shuffled).join(' , ')} ]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).reverse();
  return `{ ${members.map(([key, one]) => `${JSON.stringify(key)} : ${shuffled(one)}`).join(' , ')} }`;
}

describe('the cache key of arguments', () => {
  it('is the same for equal values in any key order and with any whitespace', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        // Keys are sorted by how they are written.
        expect(keyOf(shuffled(JSON.parse(text)))).toBe(keyOf(text));
      }),
    );
  });

  it.each([
    ['{"a":1}', '{"a":2}'],
    ['{"a":1}', '{"a":1.0}'],
    ['{"a":9007199254740993}', '{"a":9007199254740992}'],
    ['{"a":{"b":1}}', '{"a":[["b",1]]}'],
    ['{"a":"1"}', '{"a":1}'],
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":1,"a":2}', '{"a":2,"a":1}'],
    ['{"a":null}', '{}'],
    ['{"a,b":1}', '{"a":1,"b":1}'],
  ])('differs for %s and %s', (one, other) => {
    expect(keyOf(one)).not.toBe(keyOf(other));
  });
});

describe('cached results', () => {
  const entry = entryOf('tool', 't');
  const call = (args: string, more = '') =>
    readMessage(
      Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":${args}${more}}}`),
    );

  it('are found by an equal call until they expire', () => {
    const cache = createResultCache();
    const key = cache.keyOf(entry, call('{"a":1,"b":2}'))!;
    expect(cache.find(key, 1_000)).toBeNull();
    cache.keep(key, [Buffer.from('{"x"'), Buffer.from(':1}')], 'legacy');
    expect(cache.find(cache.keyOf(entry, call('{"b":2, "a":1}'))!, 1_000)?.result.toString()).toBe('{"x":1}');
    expect(cache.find(key, -1)).toBeNull();
    expect(cache.find(key, 1_000)).toBeNull();
  });

  it('are not shared between two definitions of a tool', () => {
    const cache = createResultCache();
    cache.keep(cache.keyOf(entry, call('{}'))!, Buffer.from('{}'), 'legacy');
    expect(cache.find(cache.keyOf(entryOf('tool', 't'), call('{}'))!, 1_000)).toBeNull();
  });

  it('are not stored for MCP tasks, answers to questions or very long arguments', () => {
    const cache = createResultCache();
    expect(cache.keyOf(entry, call('{}', ',"task":{}'))).toBeNull();
    expect(cache.keyOf(entry, call('{}', ',"requestState":"x"'))).toBeNull();
    expect(cache.keyOf(entry, call(`{"a":"${'x'.repeat(65_536)}"}`))).toBeNull();
    expect(cache.keyOf(entry, call(`{"a":"${'x'.repeat(65_000)}"}`))).not.toBeNull();
  });

  it('are bounded in size: the oldest are dropped first, and large ones are never stored', () => {
    const cache = createResultCache(10_000);
    const put = (i: number) => cache.keep(`k${i}`, Buffer.alloc(3_000), 'legacy');
    [1, 2, 3].forEach(put);
    expect([1, 2, 3].map((i) => cache.find(`k${i}`, 1_000) !== null)).toEqual([true, true, true]);
    put(4);
    expect([1, 2, 3, 4].map((i) => cache.find(`k${i}`, 1_000) !== null)).toEqual([false, true, true, true]);
    const large = createResultCache();
    large.keep('a', Buffer.alloc(1_048_577), 'legacy');
    large.keep('b', Buffer.alloc(1_048_576), 'legacy');
    expect([large.find('a', 1_000), large.find('b', 1_000)?.result.length]).toEqual([null, 1_048_576]);
  });
});

it('results that replicas share are kept apart by server, also if two servers have equal tools', async () => {
  const replica = await openReplica(createMemoryStore(), createSealing(['the key']), { note() {}, failure() {} });
  const { keyOf: sharedKeyOf } = createSharedBudgets(replica, () => null);
  const { tool } = catalogOf({ namespace: 'a', tool: ['who'] }, { namespace: 'b', tool: ['who'] }).entries;
  const call = readMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who"}}'));
  const keys = ['a_who', 'b_who', 'a_who'].map((name) => sharedKeyOf(tool.get(name)!, call));
  expect(keys[0]).toBe(keys[2]);
  expect(keys[0]).not.toBe(keys[1]);
  await replica.close();
});
