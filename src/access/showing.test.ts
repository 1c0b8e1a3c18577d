import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { controlsFor, showingFor } from './showing.ts';

const tools = (count: number) => Array.from({ length: count }, (_, i) => `tool_${i}`);
const plain = (count: number) => catalogOf({ namespace: 'a', tool: tools(count) });

describe('auto shows', () => {
  it('up to 20 tools directly, and a catalog of more', () => {
    expect([0, 1, 20, 21, 500].map((count) => showingFor(plain(count), null))).toEqual([
      'all',
      'all',
      'all',
      'catalog',
      'catalog',
    ]);
  });

  it('few tools that cost more than 5,000 tokens as a catalog', () => {
    const long = (characters: number) =>
      catalogOf({ namespace: 'a', tool: [{ name: 'one', description: 'x'.repeat(characters) }] });
    expect(showingFor(long(19_000), null)).toBe('all');
    expect(showingFor(long(21_000), null)).toBe('catalog');
  });

  it('what it showed before, until there are twice as many', () => {
    expect(showingFor(plain(40), 'all')).toBe('all');
    expect(showingFor(plain(41), 'all')).toBe('catalog');
    expect(showingFor(plain(1), 'catalog')).toBe('catalog');
  });

  it('the same while a server is away', () => {
    expect(showingFor(catalogOf({ namespace: 'a', tool: tools(21), away: true }), null)).toBe('catalog');
  });
});

it('auto is replaced by the controls of the way, and other controls stay', () => {
  expect(controlsFor(['auto', 'request'], 'all')).toEqual(['request']);
  expect(controlsFor(['auto', 'request'], 'catalog')).toEqual(['activate', 'request']);
  expect(controlsFor(['equip'], 'all')).toEqual(['equip']);
});
