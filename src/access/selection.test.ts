import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf, entryOf } from '../../test/support/catalog.ts';
import {
  activeEntries,
  changeSelection,
  equip,
  isActive,
  rebase,
  refitted,
  type Selection,
  startSelection,
  withEnabled,
} from './selection.ts';
import type { Toolset } from './toolset.ts';

const none = { on: new Set<string>(), off: new Set<string>() };
const on = (...names: string[]) => ({ ...none, on: new Set(names) });
const off = (...names: string[]) => ({ ...none, off: new Set(names) });

describe('a selection', () => {
  it('starts with the matches of its patterns, separately for tools and resources', () => {
    const selection = startSelection(['git_*', 'fs_file:*']);
    expect(isActive(selection, entryOf('tool', 'git_status'))).toBe(true);
    expect(isActive(selection, entryOf('tool', 'fs_read'))).toBe(false);
    expect(isActive(selection, entryOf('resource', 'fs_file:///a'))).toBe(true);
    expect(isActive(selection, entryOf('template', 'fs_file:///{a}'))).toBe(true);
    expect(isActive(selection, entryOf('resource', 'fs_git_x'))).toBe(false);
  });

  it('contains everything if patterns are null and nothing if the list is empty', () => {
    expect(isActive(startSelection(null), entryOf('tool', 'x'))).toBe(true);
    expect(isActive(startSelection([]), entryOf('tool', 'x'))).toBe(false);
  });

  it('always contains every prompt', () => {
    const selection = changeSelection(startSelection([]), { tools: off('p'), resources: off('p') });
    expect(isActive(selection, entryOf('prompt', 'p'))).toBe(true);
  });

  it('switches a tool and a resource of the same name independently, and templates with resources', () => {
    const selection = changeSelection(startSelection([]), { tools: none, resources: on('x') });
    expect(isActive(selection, entryOf('tool', 'x'))).toBe(false);
    expect(isActive(selection, entryOf('resource', 'x'))).toBe(true);
    expect(isActive(selection, entryOf('template', 'x'))).toBe(true);
  });

  it('keeps its switches when the patterns change', () => {
    const changed = changeSelection(startSelection(['a*']), {
      tools: { on: new Set(['b1']), off: new Set(['a1']) },
      resources: none,
    });
    const rebased = rebase(changed, { tools: ['*'], resources: ['*'] });
    const active = (name: string) => isActive(rebased, entryOf('tool', name));
    expect(['a1', 'a2', 'b1', 'c1'].map(active)).toEqual([false, true, true, true]);
  });

  it('does not keep an enabled toolset that is gone, and keeps the equipped one for when it is back', () => {
    const toolset = (name: string): Toolset => ({ name, description: '', tools: [], toolNotes: [] });
    const before = withEnabled(equip(startSelection([]), toolset('a')), [toolset('b'), toolset('c')]);
    const { toolset: equipped, enabled } = refitted(before, (one) =>
      one.name === 'c' ? one : { ...one, standing: 'gone' },
    );
    expect([equipped?.name, enabled.map(({ name }) => name)]).toEqual(['a', ['c']]);
  });

  it('is immutable: a change returns a new selection', () => {
    const before = startSelection([]);
    changeSelection(before, { tools: on('x'), resources: none });
    expect(isActive(before, entryOf('tool', 'x'))).toBe(false);
    expect(Object.isFrozen(before)).toBe(true);
  });

  it('is independent of the order of its switches', () => {
    const change = (...names: string[]) =>
      names.reduce((all, name) => changeSelection(all, { tools: on(name), resources: none }), startSelection(['x']));
    expect(change('a', 'b').key).toBe(change('b', 'a').key);
    expect(change('a').key).not.toBe(change('b').key);
    expect(startSelection([]).key).not.toBe(startSelection(null).key);
    expect(startSelection(['a', 'b']).key).not.toBe(startSelection(['a,b']).key);
    const resource = changeSelection(startSelection(['x']), { tools: none, resources: on('a') });
    expect(resource.key).not.toBe(change('a').key);
  });

  it('follows the last switch of each name, and the patterns for all others', () => {
    const name = fc.constantFrom('a1', 'a2', 'b1', 'b2');
    const step = fc.record({ name, to: fc.boolean(), kind: fc.constantFrom('tools', 'resources') });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        let selection: Selection = startSelection(['a*']);
        const model = { tools: new Map<string, boolean>(), resources: new Map<string, boolean>() };
        for (const { name, to, kind } of steps) {
          selection = changeSelection(selection, {
            tools: none,
            resources: none,
            [kind]: to ? on(name) : off(name),
          });
          model[kind as 'tools' | 'resources'].set(name, to);
        }
        for (const one of ['a1', 'a2', 'b1', 'b2']) {
          const start = one.startsWith('a');
          expect(isActive(selection, entryOf('tool', one))).toBe(model.tools.get(one) ?? start);
          expect(isActive(selection, entryOf('resource', one))).toBe(model.resources.get(one) ?? start);
        }
      }),
    );
  });
});

describe('activeEntries', () => {
  it('keeps the order of the catalog', () => {
    const { tool } = catalogOf({ namespace: 'b', tool: ['2', '1'] }, { namespace: 'a', tool: ['1'] }).entries;
    const names = activeEntries(startSelection(['*1']), tool.values()).map((entry) => entry.name);
    expect(names).toEqual(['b_1', 'a_1']);
  });
});
