import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { counted, didYouMean, percentDecoded, quotedList, similarNames } from './text.ts';

it('counts in the singular and the plural', () => {
  expect([counted(0, 'tool'), counted(1, 'tool'), counted(2, 'entry', 'entries')]).toEqual([
    '0 tools',
    '1 tool',
    '2 entries',
  ]);
});

it('lists names in quotes', () => {
  expect([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map((names) => quotedList(names))).toEqual([
    '',
    '"a"',
    '"a" or "b"',
    '"a", "b" or "c"',
  ]);
  expect(quotedList(['a', 'b'], 'and')).toBe('"a" and "b"');
  expect(quotedList(Array.from({ length: 60 }, (_, i) => String(i)))).toMatch(/"49" and 10 more$/);
});

it('decodes what is encoded correctly', () => {
  expect(['a%20b', 'plain', '%zz', '%', '%ff'].map(percentDecoded)).toEqual(['a b', 'plain', null, null, null]);
});

const names = ['git_status', 'git_stash', 'git_commit', 'fs_read_file', 'fs_read_text_file', 'fs_write_file'];

describe('similarNames', () => {
  it.each([
    ['git_staus', 'git_status'],
    ['git_comit', 'git_commit'],
    ['GIT_STATUS', 'git_status'],
    ['gitstatus', 'git_status'],
    ['read_file', 'fs_read_file'],
    ['status', 'git_status'],
    ['my_fs_write_file', 'fs_write_file'],
    ['gti_status', 'git_status'],
  ])('recognizes %s as %s', (slip, meant) => {
    expect(similarNames(slip, names)[0]).toBe(meant);
  });

  it('returns nothing if no name is close', () => {
    expect(similarNames('weather_tomorrow', names)).toEqual([]);
    expect(similarNames('', names)).toEqual([]);
    expect(similarNames('init', ['wait', 'list'])).toEqual([]);
    expect(similarNames('man', ['plan', 'call'])).toEqual([]);
    expect(similarNames('git_status', [])).toEqual([]);
  });

  it('returns the best match first and no more than requested', () => {
    const many = ['tool_5', 'tool_12', 'tool_1', 'tool_345'];
    expect(similarNames('tool_1', many)).toEqual(['tool_1', 'tool_12', 'tool_5']);
    expect(similarNames('tool_1', many, 1)).toEqual(['tool_1']);
  });

  it('sorts equally close names alphabetically, regardless of input order', () => {
    expect(similarNames('ax', ['ad', 'ac', 'ab'])).toEqual(['ab', 'ac', 'ad']);
  });

  it('compares only the beginning of very long names', () => {
    const long = 'x'.repeat(1_000_000);
    expect(similarNames(long, [`${long}y`, 'short'])).toEqual([`${long}y`]);
  });
});

describe('didYouMean', () => {
  it('phrases one, two and three suggestions as a question', () => {
    expect(didYouMean('git_commit_', ['git_commit'])).toBe(' Did you mean "git_commit"?');
    expect(didYouMean('ax', ['ab', 'ac'])).toBe(' Did you mean "ab" or "ac"?');
    expect(didYouMean('ax', ['ab', 'ac', 'ad', 'ae'])).toBe(' Did you mean "ab", "ac" or "ad"?');
  });

  it('is empty without suggestions', () => {
    expect(didYouMean('weather', names)).toBe('');
  });

  it('finds what counting every change finds', () => {
    const word = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '_'), maxLength: 16 });
    fc.assert(
      fc.property(word, fc.uniqueArray(word, { maxLength: 20 }), (name, candidates) => {
        expect(new Set(similarNames(name, candidates, 20))).toEqual(
          new Set(candidates.filter((one) => isAlike(name, one))),
        );
      }),
      { numRuns: 2_000 },
    );
  });
});

function isAlike(a: string, b: string): boolean {
  if (a.length >= 3 && (b.includes(a) || (b.length >= 3 && a.includes(b)))) return true;
  return changes(a, b) <= Math.max(1, Math.floor(Math.max(a.length, b.length) * 0.4));
}

/** The whole table. */
function changes(a: string, b: string): number {
  const table = Array.from({ length: a.length + 1 }, (_, i) => Array.from({ length: b.length + 1 }, (_, j) => i + j));
  for (let i = 1; i <= a.length; i++)
    for (let j = 1; j <= b.length; j++) {
      const row = table[i]!;
      const above = table[i - 1]!;
      row[j] = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, table[i - 2]![j - 2]! + 1);
    }
  return table[a.length]![b.length]!;
}
