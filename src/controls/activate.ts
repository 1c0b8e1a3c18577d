/**
 * `toolman_activate`: lets a model switch tools and resources on and off. Its description says what there is, and `show`
 * lists the rest.
 */
import { byScheme } from '../access/alias.ts';
import { patternOfServer } from '../access/pattern-hint.ts';
import {
  changeSelection,
  isActive,
  type Selection,
  type SelectionChange,
  type Switchable,
} from '../access/selection.ts';
import { SHORT_TEXT } from '../access/text-room.ts';
import type { Toolset } from '../access/toolset.ts';
import { toObject } from '../base/objects.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { counted, similarNames } from '../base/text.ts';
import { type Catalog, nameIn } from '../catalog/catalog.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { textResult } from '../protocol/rpc.ts';
import { describeActivation, toolsetsWithin } from './activate-text.ts';
import { firstOf, invalid } from './arguments.ts';
import type { ControlOutcome } from './control.ts';
import { createNameProblems, meantHint, requireFewPatterns } from './name-problems.ts';
import { readShow, showItems } from './show-items.ts';

export const ACTIVATE = 'toolman_activate';

/** How many names one call may have. */
const MOST_NAMES = 10_000;

const LISTS = ['tools_on', 'tools_off', 'resources_on', 'resources_off'] as const;
type ListName = (typeof LISTS)[number];

const listTexts: Readonly<Record<ListName, string>> = {
  tools_on: 'Tools to activate: names from the catalog, or patterns such as git_*.',
  tools_off: 'Tools to deactivate.',
  resources_on: 'Resources to activate: names from the catalog, or patterns.',
  resources_off: 'Resources to deactivate.',
};

const showSchemas = {
  show: {
    type: 'array',
    items: { type: 'string' },
    description:
      'Names, patterns or words: lists the items whose names match, and changes nothing. Leave the four lists empty.',
  },
  page: { type: 'integer', minimum: 1, description: 'Which page of what show lists. Default: 1.' },
};

/**
 * The tool for a caller with this catalog. Its description has at most `room` characters, and marks what is active unless
 * `selection` is null.
 */
export function activateEntry(
  catalog: Catalog,
  selection: Selection | null,
  room = SHORT_TEXT,
  toolsets: readonly Toolset[] = [],
): Entry {
  const lists = Object.fromEntries(
    LISTS.map((list) => [list, { type: 'array', items: { type: 'string' }, description: listTexts[list] }]),
  );
  const definition = {
    name: ACTIVATE,
    title: 'Activate tools and resources',
    description: describeActivation(catalog, selection, toolsets, room),
    inputSchema: {
      type: 'object',
      properties: { ...lists, ...showSchemas },
      required: LISTS,
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  };
  return builtInEntry(definition);
}

/** Validates everything first: a mistake throws, and nothing is applied. */
export function activate(
  catalog: Catalog,
  selection: Selection,
  args: unknown,
  toolsets: readonly Toolset[] = [],
): ControlOutcome {
  const { show, page, ...switched } = toObject(args);
  if (show !== undefined || page !== undefined) {
    requireNoNames(switched);
    return { selection, result: textResult(showItems(catalog, selection, readShow(show, page))) };
  }
  const lists = readLists(switched);
  if (LISTS.every((list) => lists[list].length === 0)) {
    throw invalid('All four lists are empty. Name at least one tool or resource to activate or deactivate.');
  }
  const names = { tools: [...catalog.entries.tool.keys()], resources: resourceNames(catalog) };
  const known = { tools: new Set(names.tools), resources: new Set(names.resources) };
  const given = LISTS.flatMap((list) => lists[list]);
  if (given.length > MOST_NAMES)
    throw invalid(`${given.length} names are too many: a call may have ${MOST_NAMES}. Use patterns.`);
  const patterns = given.filter((name) => isPattern(name) && !known.tools.has(name) && !known.resources.has(name));
  requireFewPatterns(patterns.length, names.tools.length + names.resources.length);
  const isKnownAs = (kind: Switchable, name: string) =>
    known[kind].has(name) || (isPattern(name) && names[kind].some((one) => matchesPattern(name, one)));
  const problems = createNameProblems(catalog);
  const sets = {} as Record<ListName, Set<string>>;
  for (const list of LISTS) {
    const kind: Switchable = list.startsWith('tools') ? 'tools' : 'resources';
    const wanted =
      kind === 'tools'
        ? withoutToolsets(lists[list], known.tools, catalog, toolsets)
        : lists[list].map((uri) => exposedUri(catalog, known.resources, uri));
    sets[list] = resolveNames(wanted, names[kind], known[kind], (name) => {
      const other: ListName = LISTS[(LISTS.indexOf(list) + 2) % LISTS.length]!;
      problems.add(kind === 'tools' ? ['tool'] : ['resource', 'template'], name, `${name} in ${list}`, () =>
        isKnownAs(otherKind(kind), name) ? ` (it belongs in ${other})` : hintFor(name, names[kind], catalog),
      );
    });
  }
  problems.refuse('Nothing was changed.', 'names');
  refuseOverlap(sets.tools_on, sets.tools_off, 'tools');
  refuseOverlap(sets.resources_on, sets.resources_off, 'resources');
  const change: SelectionChange = {
    tools: { on: sets.tools_on, off: sets.tools_off },
    resources: { on: sets.resources_on, off: sets.resources_off },
  };
  return {
    selection: changeSelection(selection, change),
    result: textResult(confirmation(catalog, selection, sets)),
  };
}

/** The exposed URI of what a client knows by a URI with the namespace in its scheme. */
function exposedUri(catalog: Catalog, known: ReadonlySet<string>, uri: string): string {
  const meant = known.has(uri) ? undefined : (byScheme(catalog, 'resource', uri) ?? byScheme(catalog, 'template', uri));
  const name = meant === undefined ? uri : nameIn(catalog, meant);
  return known.has(name) ? name : uri;
}

function resourceNames(catalog: Catalog): string[] {
  return [...catalog.entries.resource.keys(), ...catalog.entries.template.keys()];
}

function readLists(given: Readonly<Record<string, unknown>>): Record<ListName, string[]> {
  const wrong = LISTS.filter((list) => {
    const value = given[list];
    return !Array.isArray(value) || value.some((name) => typeof name !== 'string');
  });
  if (wrong.length > 0) {
    throw invalid(`${wrong.join(', ')} must be given as a list of strings; use [] for none.`);
  }
  const extra = Object.keys(given).filter((key) => !(LISTS as readonly string[]).includes(key));
  if (extra.length > 0) {
    throw invalid(`Unknown argument ${firstOf(extra)}. The four lists are ${LISTS.join(', ')}.`);
  }
  const once = (list: ListName) => [...new Set(given[list] as string[])];
  return Object.fromEntries(LISTS.map((list) => [list, once(list)])) as Record<ListName, string[]>;
}

/** A call that only lists may leave the four lists out, but must not name anything in them. */
function requireNoNames(switched: Readonly<Record<string, unknown>>): void {
  const lists = readLists({ ...NO_NAMES, ...switched });
  if (LISTS.some((list) => lists[list].length > 0))
    throw invalid('Nothing was changed. show only lists items: leave the four lists empty, or leave show out.');
}

const NO_NAMES = { tools_on: [], tools_off: [], resources_on: [], resources_off: [] };

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

/** Replaces names of toolsets by the names of their tools. The name of a tool means that tool. */
function withoutToolsets(
  wanted: readonly string[],
  known: ReadonlySet<string>,
  catalog: Catalog,
  toolsets: readonly Toolset[],
): readonly string[] {
  if (toolsets.length === 0) return wanted;
  const meant = new Map(toolsetsWithin(catalog, toolsets).map(({ name, tools }) => [name, tools]));
  return wanted.flatMap((name) => (known.has(name) ? [name] : (meant.get(name)?.map((entry) => entry.name) ?? [name])));
}

function otherKind(kind: Switchable): Switchable {
  return kind === 'tools' ? 'resources' : 'tools';
}

/** What may be meant by an unknown name. */
function hintFor(name: string, names: readonly string[], catalog: Catalog): string {
  const pattern = patternOfServer(name, catalog);
  return meantHint(pattern !== null ? [pattern] : similarNames(name, names));
}

function refuseOverlap(on: ReadonlySet<string>, off: ReadonlySet<string>, kind: Switchable): void {
  const both = [...on].filter((name) => off.has(name));
  if (both.length === 0) return;
  throw invalid(
    `Nothing was changed. These names are in both ${kind}_on and ${kind}_off: ${firstOf(both)}. Put each in one list.`,
  );
}

/** Says what changed. Items that were in the wanted state before are counted apart. */
function confirmation(
  catalog: Catalog,
  selection: Selection,
  { tools_on, tools_off, resources_on, resources_off }: Record<ListName, ReadonlySet<string>>,
): string {
  const { tool, resource, template } = catalog.entries;
  const wasActive = (name: string, isTool: boolean) => {
    const entries = isTool ? [tool.get(name)] : [resource.get(name), template.get(name)];
    return entries.some((entry) => entry !== undefined && isActive(selection, entry));
  };
  const count = (tools: ReadonlySet<string>, resources: ReadonlySet<string>, before: boolean) =>
    [...tools].filter((name) => wasActive(name, true) === before).length +
    [...resources].filter((name) => wasActive(name, false) === before).length;
  const on = count(tools_on, resources_on, false);
  const off = count(tools_off, resources_off, true);
  const already = count(tools_on, resources_on, true);
  const inactive = count(tools_off, resources_off, false);
  const done = [on > 0 ? `activated ${on}` : '', off > 0 ? `deactivated ${off}` : ''].filter((part) => part !== '');
  const sentences = [
    done.length === 0 ? '' : `${done.join(', ')} ${on + off === 1 ? 'item' : 'items'}.`,
    already === 0 ? '' : `${counted(already, 'item was', 'items were')} already active.`,
    inactive === 0 ? '' : `${counted(inactive, 'item was', 'items were')} not active before.`,
  ].filter((sentence) => sentence !== '');
  return sentences.map((one) => one[0]!.toUpperCase() + one.slice(1)).join(' ');
}
