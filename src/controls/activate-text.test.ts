import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { catalogOf, type Offering, offerOf } from '../../test/support/catalog.ts';
import { isActive, startSelection } from '../access/selection.ts';
import type { Toolset } from '../access/toolset.ts';
import { buildCatalog } from '../catalog/catalog.ts';
import { narrow } from '../catalog/narrow.ts';
import { overviewOf } from '../catalog/overview.ts';
import { activateInstructions, describeActivation } from './activate-text.ts';
import { ACTIVE } from './catalog-text.ts';

const ROOM = 2_000;
const tools = (count: number, description = 'x'.repeat(100)) =>
  Array.from({ length: count }, (_, i) => ({ name: `tool_${i}`, description }));
const describeAll = (offerings: Offering[], active: string[] = [], toolsets: Toolset[] = []) =>
  describeActivation(catalogOf(...offerings), startSelection(active), toolsets, ROOM);
const toolset = (name: string, ...names: string[]): Toolset => ({
  name,
  description: '',
  tools: names.map((namespacedName) => ({ namespacedName })),
  toolNotes: [],
});
/** The lines of a part of the description. */
const part = (text: string, title: string) =>
  text
    .split('\n\n')
    .find((one) => one.startsWith(title))
    ?.split('\n')
    .slice(1) ?? [];

describe('the description of toolman_activate', () => {
  it('has the whole catalog if that fits', () => {
    const text = describeAll([{ namespace: 'a', tool: tools(10) }], ['a_tool_3']);
    expect(text).toContain('All items are listed below');
    expect(part(text, 'Tools:')).toHaveLength(10);
    expect(text).toContain(`\n*a_tool_3 - ${'x'.repeat(100)}\n`);
  });

  it('names the servers first if it does not, with an example of this catalog', () => {
    const text = describeAll([
      { namespace: 'memory', tool: tools(9), resource: ['graph:1'] },
      { namespace: 'files', tool: tools(14) },
    ]);
    expect(text).toContain('"memory_*" in tools_on activates all tools of that server');
    expect(part(text, 'Servers').map((line) => line.split(':')[0])).toEqual([
      'memory_* (9, 1 resource)',
      'files_* (14)',
    ]);
  });

  it('shows all names if they fit, with descriptions of equal length', () => {
    const text = describeAll([{ namespace: 'a', tool: tools(30) }], ['a_tool_2?']);
    const items = part(text, 'Items');
    expect(items).toHaveLength(30);
    expect(items[21]).toMatch(/^\*a_tool_21 - x+…$/);
    expect(new Set(items.map((line) => line.split(' - ')[1])).size).toBe(1);
  });

  it('shows the active items, then some of each server, and counts the rest', () => {
    const names = Array.from({ length: 5 }, (_, i) => ({ namespace: `server${i}`, tool: tools(60) }));
    const text = describeAll(names, ['server4_tool_5?']);
    const items = part(text, 'Items');
    expect(items.filter((line) => line.startsWith('*'))).toHaveLength(10);
    for (const { namespace } of names) expect(items).toContain(`${namespace}_tool_0`);
    expect(items.at(-1)).toBe(`and ${300 - (items.length - 1)} more: call with show`);
  });

  it('names toolsets with tools in the catalog', () => {
    const many = { namespace: 'a', tool: tools(80) };
    expect(describeAll([many], [], [toolset('work', 'a.tool_1?'), toolset('hidden', 'b.*')])).toMatch(
      /\n\nToolsets, whose names tools_on takes too: work \(10\)$/,
    );
  });

  it('of many servers has only their names, and counts those that do not fit', () => {
    const offerings = (count: number) =>
      Array.from({ length: count }, (_, i) => ({
        namespace: `service${i}`,
        tool: ['do_one', 'do_another', 'find_something'],
      }));
    const lines = part(describeAll(offerings(60)), 'Servers');
    expect(lines).toHaveLength(60);
    expect(lines[7]).toBe('service7_* (3)');
    const shown = part(describeAll(offerings(1_000)), 'Servers');
    expect(shown.at(-1)).toBe(`and ${1_000 - (shown.length - 1)} more servers: call with show: ["*"]`);
  });

  it('neither names nor counts what was left out of the catalog', () => {
    const all = catalogOf({ namespace: 'open', tool: tools(40) }, { namespace: 'secret', tool: tools(40) });
    const narrowed = narrow(all, {
      keep: ({ namespace, item }) => namespace === 'open' && item.name !== 'tool_7',
    });
    const text = describeActivation(narrowed, startSelection(['*']), [toolset('vault', 'secret.*')], ROOM);
    expect(text).toContain('open_* (39)');
    expect(text).not.toMatch(/secret|vault|tool_7\b|80|79/);
    expect(activateInstructions(narrowed)).toContain('open_* (39)');
    expect(activateInstructions(narrowed)).not.toContain('secret');
  });

  it('never exceeds its room, and names or counts every server, whatever the catalog', () => {
    const text = fc.oneof(fc.string({ maxLength: 300 }), fc.lorem({ maxCount: 40 }), fc.string({ unit: 'grapheme' }));
    const offering = fc.record({
      count: fc.integer({ min: 1, max: 40 }),
      resources: fc.nat(3),
      name: fc.stringMatching(/^[a-z][a-z0-9_.-]{0,40}$/),
      tool: fc.string({ minLength: 1, maxLength: 80 }),
      description: text,
      about: text,
      instructions: text,
    });
    const catalogs = fc.array(offering, { minLength: 1, maxLength: 120 }).map((servers) =>
      buildCatalog(
        1,
        servers.map(({ name, count, tool, resources, about, instructions, description }, i) => ({
          id: i + 1,
          key: `${i}${name}`,
          namespace: i % 9 === 8 ? '' : `${i}${name}`,
          present: true,
          description: i % 3 === 0 ? description : '',
          offer: {
            ...offerOf({
              tool: Array.from({ length: count }, (_, n) => ({ name: `${tool}${n}`, description })),
              resource: Array.from({ length: resources }, (_, n) => `r:${i}/${n}`),
            }),
            about,
            instructions,
          },
        })),
        ['toolman_activate'],
      ),
    );
    const patterns = fc.constantFrom([], ['*'], ['1*'], ['*_0']);
    const toolsets = fc.array(
      fc.string().map((name) => toolset(name, '*')),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(catalogs, patterns, toolsets, (catalog, active, sets) => {
        const selection = startSelection(active);
        const described = describeActivation(catalog, selection, sets, ROOM);
        expect(described.length).toBeLessThanOrEqual(ROOM);
        if (described.includes('All items are listed below')) return;
        const lines = part(described, 'Servers (number of tools):');
        const left = Number(/^and (\d+) more servers/.exec(lines.at(-1)!)?.[1] ?? 0);
        const named = left > 0 ? lines.slice(0, -1) : lines;
        const servers = overviewOf(catalog);
        expect(named.length + left).toBe(servers.length);
        named.forEach((line, i) => {
          expect(line.startsWith(servers[i]!.pattern ?? servers[i]!.key)).toBe(true);
        });
        // A server may call its tool `*…`, which reads like a mark.
        const items = [...catalog.entries.tool.values(), ...catalog.entries.resource.values()];
        const mayBeMarked = items.filter((entry) => isActive(selection, entry) || entry.name.startsWith(ACTIVE));
        const marked = part(described, 'Items').filter((line) => line.startsWith(ACTIVE));
        expect(marked.length).toBeLessThanOrEqual(mayBeMarked.length);
      }),
      { numRuns: 60 },
    );
  });
});
