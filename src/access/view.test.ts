import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf, contributionsOf, type Offering } from '../../test/support/catalog.ts';
import { buildCatalog } from '../catalog/catalog.ts';
import { builtInEntry } from '../catalog/entry.ts';
import { KINDS, kindWords } from '../catalog/item.ts';
import { UNKNOWN_CLIENT } from '../protocol/known-clients.ts';
import { startSelection } from './selection.ts';
import { buildView, type View, type ViewControls } from './view.ts';

const controls: ViewControls = { entries: () => [], alias: () => undefined, advice: () => '' };
const viewOf = (patterns: string[] | null, ...offerings: Offering[]) =>
  buildView(catalogOf(...offerings), startSelection(patterns), controls);
const listed = (view: View, kind: (typeof KINDS)[number]) => {
  const list = JSON.parse(view.list(kind, 'modern').toString()) as Record<string, Record<string, string>[]>;
  expect(Object.keys(list)).toEqual([kindWords[kind].list]);
  return list[kindWords[kind].list]!.map((one) => one[kindWords[kind].identity]);
};

const all: Offering = { namespace: 'a', tool: ['t1', 't2'], resource: ['r:1'], template: ['r:{x}'], prompt: ['p'] };

describe('a view', () => {
  it('lists exactly the items that can be found in it', () => {
    const view = viewOf(['a_t2', 'a_r:{*'], all);
    for (const kind of KINDS) expect(listed(view, kind)).toEqual([...view.entries[kind].keys()]);
    expect(listed(view, 'tool')).toEqual(['a_t2']);
    expect(listed(view, 'resource')).toEqual([]);
    expect(listed(view, 'template')).toEqual(['a_r:{x}']);
    expect(listed(view, 'prompt')).toEqual(['a_p']);
  });

  it('lists built-in tools first', () => {
    const own = builtInEntry({ name: 'own', description: '' });
    const view = buildView(catalogOf(all), startSelection(null), { ...controls, entries: () => [own] });
    expect(listed(view, 'tool')).toEqual(['own', 'a_t1', 'a_t2']);
    expect(view.entries.tool.get('own')).toBe(own);
  });

  it('prints a list once', () => {
    const view = viewOf(null, all);
    expect(view.list('tool', 'modern')).toBe(view.list('tool', 'modern'));
    expect(view.list('tool', 'legacy')).toBe(view.list('tool', 'modern'));
  });

  it('lists legal URLs if it has that style, and nothing else differs', () => {
    const other: Offering = { namespace: '', resource: ['s:1'] };
    const view = buildView(catalogOf(all, other), startSelection(null), controls, null, UNKNOWN_CLIENT, 'scheme');
    expect(listed(view, 'resource')).toEqual(['a+r:1', 's:1']);
    expect(listed(view, 'template')).toEqual(['a+r:{x}']);
    expect(listed(view, 'tool')).toEqual(['a_t1', 'a_t2']);
    expect([...view.entries.resource.keys()]).toEqual(['a_r:1', 's:1']);
    expect(view.page('resource', 'modern', 1, null)?.toString()).toContain('"uri":"a+r:1"');
    expect(view.fingerprint('resource')).not.toBe(viewOf(null, all, other).fingerprint('resource'));
    expect(view.fingerprint('tool')).toBe(viewOf(null, all, other).fingerprint('tool'));
  });

  it('lists definitions byte for byte', () => {
    const view = viewOf(null, { namespace: '', tool: [{ name: 'x', weird: { a: [1, '😀'] } }] });
    expect(view.list('tool', 'modern').toString()).toBe(
      '{"tools":[{"inputSchema":{"type":"object"},"name":"x","weird":{"a":[1,"😀"]}}]}',
    );
  });
});

describe('the fingerprint of a view', () => {
  const fingerprints = (view: View) => KINDS.map((kind) => view.fingerprint(kind));

  it('is equal for separately built views with the same content', () => {
    expect(fingerprints(viewOf(['*'], all))).toEqual(fingerprints(viewOf(null, { ...all, namespace: 'a' })));
  });

  it('ignores inactive items', () => {
    const more = { ...all, tool: ['t1', 't2', 'hidden'] };
    expect(fingerprints(viewOf(['a_t1'], all))).toEqual(fingerprints(viewOf(['a_t1'], more)));
  });

  it('changes with a new schema under the same name, and only for that kind', () => {
    const before = viewOf(null, all);
    const after = viewOf(null, { ...all, tool: ['t1', { name: 't2', inputSchema: { type: 'object', title: 'new' } }] });
    expect(KINDS.filter((kind) => before.fingerprint(kind) !== after.fingerprint(kind))).toEqual(['tool']);
  });

  it('changes exactly when the list does', () => {
    const definition = fc.record({ name: fc.constantFrom('x', 'y', 'z'), description: fc.constantFrom('1', '2') });
    const definitions = fc.uniqueArray(definition, { selector: ({ name }) => name, maxLength: 3 });
    fc.assert(
      fc.property(definitions, definitions, (first, second) => {
        const [one, two] = [first, second].map((tool) => {
          const catalog = buildCatalog(1, contributionsOf([{ namespace: 'n', tool }]), []);
          return buildView(catalog, startSelection(null), controls);
        });
        const same = one!.list('tool', 'modern').equals(two!.list('tool', 'modern'));
        expect(one!.fingerprint('tool') === two!.fingerprint('tool')).toBe(same);
      }),
    );
  });
});
