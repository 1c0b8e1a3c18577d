import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { controlsFor, showingFor } from './showing.ts';

const tools = (count: number) => Array.from({ length: count }, (_, i) => `tool_${i}`);
const plain = (count: number) => catalogOf({ namespace: 'a', tool: tools(count) });

describe('auto shows', () => {
  it('up to 15 tools directly, a catalog of up to 60, and lets a model search more', () => {
    expect([0, 1, 15, 16, 60, 61, 500].map((count) => showingFor(plain(count), null))).toEqual([
      'all',
      'all',
      'all',
      'catalog',
      'catalog',
      'search',
      'search',
    ]);
  });

  it('few tools that cost more than 3,000 tokens as a catalog', () => {
    const long = (characters: number) =>
      catalogOf({ namespace: 'a', tool: [{ name: 'one', description: 'x'.repeat(characters) }] });
    expect(showingFor(long(11_000), null)).toBe('all');
    expect(showingFor(long(13_000), null)).toBe('catalog');
  });

  it('what it showed before, until there are twice as many', () => {
    expect(showingFor(plain(30), 'all')).toBe('all');
    expect(showingFor(plain(31), 'all')).toBe('catalog');
    expect(showingFor(plain(1), 'catalog')).toBe('catalog');
    expect(showingFor(plain(120), 'catalog')).toBe('catalog');
    expect(showingFor(plain(121), 'catalog')).toBe('search');
    expect(showingFor(plain(1), 'search')).toBe('search');
  });

  it('the same while a server is away', () => {
    expect(showingFor(catalogOf({ namespace: 'a', tool: tools(21), away: true }), null)).toBe('catalog');
  });
});

it('without showing a few directly, they are in a catalog', () => {
  expect([1, 60, 61].map((count) => showingFor(plain(count), null, false))).toEqual(['catalog', 'catalog', 'search']);
});

it('auto is replaced by the controls of the way, and other controls stay', () => {
  const auto = { controls: ['auto', 'request'], searchesMany: false } as const;
  expect(controlsFor(auto, 'all')).toEqual(['request']);
  expect(controlsFor(auto, 'catalog')).toEqual(['activate', 'request']);
  expect(controlsFor(auto, 'search')).toEqual(['search', 'request']);
  expect(controlsFor({ controls: ['equip'], searchesMany: false }, 'all')).toEqual(['equip']);
  expect(controlsFor({ controls: ['activate'], searchesMany: true }, 'search')).toEqual(['search']);
  expect(controlsFor({ controls: ['activate'], searchesMany: false }, 'search')).toEqual(['activate']);
});
