import { expect, it } from 'vitest';
import { counted, quotedList } from './text.ts';

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
});
