import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/wide.ts';
import { isPattern, matchesPattern } from './pattern.ts';

describe('matchesPattern', () => {
  it.each([
    ['git_*', 'git_status', true],
    ['git_*', 'git_', true],
    ['git_*', 'git', false],
    ['git_*', 'my_git_status', false],
    ['*_read*', 'fs_read_file', true],
    ['git_statu?', 'git_status', true],
    ['git_status?', 'git_status', false],
    ['*', '', true],
    ['?', '', false],
    ['', '', true],
    ['', 'a', false],
    ['**', 'anything', true],
    ['fs_file:///*', 'fs_file:///a/b.txt', true],
  ])('%j over %j is %j', (pattern, text, expected) => {
    expect(matchesPattern(pattern, text)).toBe(expected);
  });

  it('treats every character except * and ? literally', () => {
    for (const text of ['a.c', '[a-c]', '{a,b}', 'a|b', '^a$', '\\d', 'a+', '(a)', '!a', 'A']) {
      expect(matchesPattern(text, text)).toBe(true);
      expect(matchesPattern(text, 'abc')).toBe(false);
      expect(matchesPattern(text, 'a')).toBe(false);
    }
  });

  it('counts characters, not code units', () => {
    expect(matchesPattern('?', '😀')).toBe(true);
    expect(matchesPattern('??', '😀')).toBe(false);
    expect(matchesPattern('*??😀', '日😀')).toBe(false);
    expect(matchesPattern('*??b?', '😀.😀b😀')).toBe(true);
  });

  it('agrees with a naive implementation', () => {
    const char = fc.constantFrom('a', 'b', '😀', '*', '?');
    const text = fc.string({ unit: char, maxLength: 9 });
    fc.assert(
      fc.property(text, text, (pattern, name) => {
        expect(matchesPattern(pattern, name)).toBe(naive([...pattern], [...name]));
      }),
      { numRuns: runs(5000) },
    );
  });

  it('matches a name with any pattern derived from it', () => {
    const piece = fc.tuple(fc.string({ maxLength: 4 }), fc.constantFrom('as it is', '*', '?'));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const name = pieces.map(([text]) => text).join('');
        const pattern = pieces.map(([text, as]) => (as === '*' ? '*' : as === '?' ? '?'.repeat(text.length) : text));
        expect(matchesPattern(pattern.join(''), name)).toBe(true);
      }),
    );
  });

  it('takes time in proportion to the length of the text, for 30 pathological patterns', () => {
    const evil = Array.from({ length: 10 }, (_, i) => [
      `${'*a'.repeat(i + 3)}*b`,
      `*${'a'.repeat(i)}b`,
      `${'*?'.repeat(i * 5 + 1)}*${'*'.repeat(50)}b`,
    ]).flat();
    expect(evil).toHaveLength(30);
    // Processor time, and the best of three, so that other load on the machine counts less.
    const timeFor = (text: string) => {
      const times = Array.from({ length: 3 }, () => {
        const start = process.cpuUsage();
        expect(evil.filter((pattern) => matchesPattern(pattern, text))).toEqual([]);
        return process.cpuUsage(start).user / 1000;
      });
      return Math.min(...times);
    };
    const short = timeFor('a'.repeat(12_500));
    const long = timeFor('a'.repeat(100_000));
    // Eight times the text. Quadratic time would be 64 times as long, so there is room for what a busy machine adds.
    expect(long / short).toBeLessThan(24);
  });
});

describe('isPattern', () => {
  it('is true for text with a wildcard', () => {
    expect(['git_*', 'a?', '*'].every(isPattern)).toBe(true);
    expect(['', 'git_status', '[a]', '{a}'].some(isPattern)).toBe(false);
  });
});

function naive([want, ...rest]: string[], text: string[]): boolean {
  if (want === undefined) return text.length === 0;
  if (want === '*') return text.some((_, at) => naive(rest, text.slice(at))) || naive(rest, []);
  return text.length > 0 && (want === '?' || want === text[0]) && naive(rest, text.slice(1));
}
