import { describe, expect, it } from 'vitest';
import { getOrMake, memo } from './memo.ts';

describe('memo', () => {
  it('computes once per key', () => {
    let made = 0;
    const numberOf = memo((_: object) => ++made);
    const [a, b] = [{}, {}];
    expect([numberOf(a), numberOf(b), numberOf(a), numberOf(b)]).toEqual([1, 2, 1, 2]);
  });

  it('remembers undefined and null like any other value', () => {
    let made = 0;
    const nothing = memo((_: object) => {
      made++;
      return undefined;
    });
    const key = {};
    nothing(key);
    nothing(key);
    expect(made).toBe(1);
  });

  it('does not remember a failure', () => {
    let fails = true;
    const value = memo((_: object) => {
      if (fails) throw new Error('not yet');
      return 'value';
    });
    const key = {};
    expect(() => value(key)).toThrow('not yet');
    fails = false;
    expect(value(key)).toBe('value');
  });

  it('supports a pair of keys when nested', () => {
    let made = 0;
    const ofPair = memo((_: object) => memo((__: object) => ++made));
    const [a, b, c] = [{}, {}, {}];
    expect([ofPair(a)(b), ofPair(a)(c), ofPair(b)(c), ofPair(a)(b)]).toEqual([1, 2, 3, 1]);
  });
});

describe('getOrMake', () => {
  it('computes a value only if the map has none', () => {
    const map = new Map([['a', 1]]);
    expect([getOrMake(map, 'a', () => 9), getOrMake(map, 'b', () => 2), getOrMake(map, 'b', () => 9)]).toEqual([
      1, 2, 2,
    ]);
  });
});
