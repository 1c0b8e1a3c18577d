import { describe, expect, it } from 'vitest';
import { BoundedMap } from './bounded-map.ts';

describe('BoundedMap', () => {
  const filled = (...keys: string[]) => {
    const map = new BoundedMap<string, number>(3);
    for (const [index, key] of keys.entries()) map.set(key, index);
    return map;
  };

  it('drops the oldest entry for a new one', () => {
    expect([...filled('a', 'b', 'c', 'd')]).toEqual([
      ['b', 1],
      ['c', 2],
      ['d', 3],
    ]);
  });

  it('drops nothing when an existing key gets a new value', () => {
    expect([...filled('a', 'b', 'c', 'a').entries()]).toEqual([
      ['a', 3],
      ['b', 1],
      ['c', 2],
    ]);
  });

  it('has room again after a deletion', () => {
    const map = filled('a', 'b', 'c');
    map.delete('b');
    map.set('d', 4);
    expect([...map.keys()]).toEqual(['a', 'c', 'd']);
  });
});
