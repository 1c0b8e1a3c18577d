/**
 * `toolman_activate`: lets a model switch tools and resources on and off. Its description lists the current catalog.
 */
import {
  changeSelection,
  isActive,
  type Selection,
  type SelectionChange,
  type Switchable,
} from '../access/selection.ts';
import { GatewayError } from '../base/errors.ts';
import { memo } from '../base/memo.ts';
import { toObject } from '../base/objects.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { similarNames } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { startingText, startingWith } from '../catalog/starting.ts';
import { textResult } from '../protocol/rpc.ts';
import type { ControlOutcome } from './control.ts';

export const ACTIVATE = 'toolman_activate';

/** Only this many unknown names get suggestions, because each is compared with the whole catalog. */
const MAX_SUGGESTED = 20;

/** How many characters of a description a catalog line shows. */
const DESCRIPTION_LENGTH = 132;

const LISTS = ['tools_on', 'tools_off', 'resources_on', 'resources_off'] as const;
type ListName = (typeof LISTS)[number];

const listTexts: Readonly<Record<ListName, string>> = {
  tools_on: 'Tools to activate: names from the catalog, or patterns such as git_*.',
  tools_off: 'Tools to deactivate.',
  resources_on: 'Resources to activate: names from the catalog, or patterns.',
  resources_off: 'Resources to deactivate.',
};

export function activateEntry(catalog: Catalog, selection: Selection): Entry {
  const properties = Object.fromEntries(
    LISTS.map((list) => [list, { type: 'array', items: { type: 'string' }, description: listTexts[list] }]),
  );
  const definition = {
    name: ACTIVATE,
    title: 'Activate tools and resources',
    description: describe(catalog, selection),
    inputSchema: { type: 'object', properties, required: LISTS, additionalProperties: false },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  };
  return builtInEntry(definition);
}

function describe(catalog: Catalog, selection: Selection): string {
  const { tool, resource, template } = catalog.entries;
  const lines = [
    'Activates and deactivates tools and resources. Only active ones can be used; items named in no list stay as they are.',
    'All four lists are required. Each may be empty, but not all of them. All items are listed below; * marks what is active.',
    '',
    'Tools:',
    ...catalogLines(tool.values(), selection),
    '',
    'Resources:',
    ...catalogLines([...resource.values(), ...template.values()], selection),
  ];
  return lines.join('\n');
}

function catalogLines(entries: Iterable<Entry>, selection: Selection): string[] {
  const lines: string[] = [];
  for (const entry of entries) lines.push((isActive(selection, entry) ? '*' : '') + catalogLine(entry));
  return lines.length > 0 ? lines : ['(none)'];
}

/** Cached per entry, because the line is the same in every view. */
const catalogLine = memo((entry: Entry): string => {
  const folded = entry.item.description.replace(/\s+/g, ' ').trim();
  const short = [...folded.slice(0, DESCRIPTION_LENGTH * 2)].slice(0, DESCRIPTION_LENGTH).join('');
  // Line breaks are replaced, so that neither a description nor a name can imitate another line.
  const name = entry.name.replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
  return short === '' ? name : `${name} - ${short}`;
});

/** Validates everything first: a mistake throws, and nothing is applied. */
export function activate(catalog: Catalog, selection: Selection, args: unknown): ControlOutcome {
  const lists = readLists(args);
  if (LISTS.every((list) => lists[list].length === 0)) {
    throw new GatewayError(
      'arguments_invalid',
      'All four lists are empty. Name at least one tool or resource to activate or deactivate.',
    );
  }
  const names = { tools: [...catalog.entries.tool.keys()], resources: resourceNames(catalog) };
  const known = { tools: new Set(names.tools), resources: new Set(names.resources) };
  const bad: string[] = [];
  const starting = new Set<string>();
  const sets = {} as Record<ListName, Set<string>>;
  for (const list of LISTS) {
    const kind: Switchable = list.startsWith('tools') ? 'tools' : 'resources';
    sets[list] = resolveNames(lists[list], names[kind], known[kind], (name) => {
      const servers = startingWith(catalog, name);
      for (const { key } of servers) starting.add(key);
      const candidates = bad.length < MAX_SUGGESTED ? names[kind] : [];
      bad.push(
        servers.length > 0 ? `${name} in ${list} (${startingText(servers)})` : unknownName(name, list, candidates),
      );
    });
  }
  if (bad.length > 0) {
    throw new GatewayError('item_unknown', `Nothing was changed. Unknown names: ${bad.join('; ')}.`, {
      details: starting.size > 0 ? { starting: [...starting] } : {},
    });
  }
  refuseOverlap(sets.tools_on, sets.tools_off, 'tools');
  refuseOverlap(sets.resources_on, sets.resources_off, 'resources');
  const change: SelectionChange = {
    tools: { on: sets.tools_on, off: sets.tools_off },
    resources: { on: sets.resources_on, off: sets.resources_off },
  };
  return { selection: changeSelection(selection, change), result: textResult(confirmation(sets)) };
}

function resourceNames(catalog: Catalog): string[] {
  return [...catalog.entries.resource.keys(), ...catalog.entries.template.keys()];
}

function readLists(args: unknown): Record<ListName, string[]> {
  const given = toObject(args);
  const wrong = LISTS.filter((list) => {
    const value = given[list];
    return !Array.isArray(value) || value.some((name) => typeof name !== 'string');
  });
  if (wrong.length > 0) {
    throw new GatewayError(
      'arguments_invalid',
      `${wrong.join(', ')} must be given as a list of strings; use [] for none.`,
    );
  }
  const extra = Object.keys(given).filter((key) => !(LISTS as readonly string[]).includes(key));
  if (extra.length > 0) {
    throw new GatewayError(
      'arguments_invalid',
      `Unknown argument ${extra.join(', ')}. The four lists are ${LISTS.join(', ')}.`,
    );
  }
  return given as Record<ListName, string[]>;
}

function resolveNames(
  wanted: readonly string[],
  names: readonly string[],
  known: ReadonlySet<string>,
  missing: (name: string) => void,
): Set<string> {
  const found = new Set<string>();
  for (const name of wanted) {
    if (known.has(name)) {
      found.add(name);
      continue;
    }
    const matching = isPattern(name) ? names.filter((one) => matchesPattern(name, one)) : [];
    for (const one of matching) found.add(one);
    if (matching.length === 0) missing(name);
  }
  return found;
}

function unknownName(name: string, list: ListName, names: readonly string[]): string {
  const similar = similarNames(name, names);
  const hint = similar.length > 0 ? ` (did you mean ${similar.join(', ')}?)` : '';
  return `${name} in ${list}${hint}`;
}

function refuseOverlap(on: ReadonlySet<string>, off: ReadonlySet<string>, kind: Switchable): void {
  const both = [...on].filter((name) => off.has(name));
  if (both.length === 0) return;
  throw new GatewayError(
    'arguments_invalid',
    `Nothing was changed. These names are in both ${kind}_on and ${kind}_off: ${both.join(', ')}. Put each in one list.`,
  );
}

function confirmation(sets: Record<ListName, ReadonlySet<string>>): string {
  const on = sets.tools_on.size + sets.resources_on.size;
  const off = sets.tools_off.size + sets.resources_off.size;
  const parts = [on > 0 ? `activated ${on}` : '', off > 0 ? `deactivated ${off}` : ''].filter((part) => part !== '');
  const sentence = parts.join(', ');
  return `${sentence[0]!.toUpperCase()}${sentence.slice(1)} ${on + off === 1 ? 'item' : 'items'}.`;
}
