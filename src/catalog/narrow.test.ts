import { describe, expect, it } from 'vitest';
import { catalogOf } from '../../test/support/catalog.ts';
import { JOINED } from './names.ts';
import { hasNamespace, narrow, narrowToNamespace } from './narrow.ts';

const catalog = catalogOf(
  { namespace: 'git', tool: ['log', 'push'], prompt: ['p'] },
  { namespace: 'fs', tool: ['read'], resource: ['file:a'] },
);

describe('a narrowed catalog', () => {
  it('contains exactly the kept entries, under the same names', () => {
    const narrowed = narrow(catalog, { keep: ({ item }) => item.name !== 'push' && item.name !== 'file:a' });
    expect([...narrowed.entries.tool.keys()]).toEqual(['git_log', 'fs_read']);
    expect([...narrowed.claims.resource.values()].filter((entry) => entry !== null)).toEqual([]);
    expect(narrowed.entries.tool.get('git_log')).toBe(catalog.entries.tool.get('git_log'));
    expect([...narrowed.sources]).toEqual(['git', 'fs']);
  });

  it('lists only servers that still have an entry', () => {
    expect([...narrow(catalog, { keep: ({ namespace }) => namespace === 'fs' }).sources]).toEqual(['fs']);
  });

  it('keeps the isClosed rule of an earlier narrowing', () => {
    const isClosed = () => true;
    const closed = narrow(catalog, { keep: () => true, isClosed });
    expect(narrow(closed, { keep: () => true }).isClosed).toBe(isClosed);
  });
});

describe('the catalog of a namespace', () => {
  it('has names without a prefix and maps entries to them', () => {
    const inside = narrowToNamespace(catalog, 'git', JOINED);
    expect([...inside.entries.tool.keys(), ...inside.entries.prompt.keys()]).toEqual(['log', 'push', 'p']);
    expect(inside.nameOf?.(catalog.entries.tool.get('git_log')!)).toBe('log');
    expect(inside.sources.size).toBe(0);
  });

  it('is built once', () => {
    expect(narrowToNamespace(catalog, 'git', JOINED)).toBe(narrowToNamespace(catalog, 'git', JOINED));
    expect(narrowToNamespace(catalog, 'fs', JOINED)).not.toBe(narrowToNamespace(catalog, 'git', JOINED));
  });

  it('exists only if it contains something', () => {
    expect([hasNamespace(catalog, 'git'), hasNamespace(catalog, 'gi')]).toEqual([true, false]);
  });
});
