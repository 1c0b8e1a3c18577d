import { expect, it } from 'vitest';
import { limitsFor, UNLIMITED } from './call-limits.ts';

it('finds the most specific limits for a tool', () => {
  const limitsOf = (...tools: string[]) => tools.map((tool) => ({ ...UNLIMITED, cache: null, tool }));
  const all = limitsOf('*', 'search_*', 'search_?', 'search_web', '*_web_now');
  const found = (...names: string[]) => limitsFor(all, ...names)?.tool;
  expect(found('search_web')).toBe('search_web');
  expect(found('search_x')).toBe('search_*');
  expect(found('search_web_now')).toBe('*_web_now');
  expect(found('other')).toBe('*');
  expect(found('other', 'search_web')).toBe('search_web');
  expect(limitsFor(limitsOf('a*'), 'b')).toBeNull();
});
