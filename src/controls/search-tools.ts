/**
 * The control `search`: a model finds tools by words, reads their definitions, and calls them. Nothing of the catalog is
 * in its list but what was pinned or activated, so ten thousand tools cost as much as ten.
 */
import { aliased } from '../access/alias.ts';
import { changeSelection, isActive, type Selection } from '../access/selection.ts';
import { fitLines } from '../base/fit.ts';
import { memo } from '../base/memo.ts';
import { counted, didYouMean, similarNames } from '../base/text.ts';
import { CALL_TOOL, CALL_TOOL_ENTRY, DESCRIBE_TOOLS } from '../calls/through.ts';
import { missingLine } from '../catalog/away.ts';
import { type Catalog, nameIn } from '../catalog/catalog.ts';
import { builtInEntry, definitionOf, type Entry, matchesServer } from '../catalog/entry.ts';
import { KINDS } from '../catalog/item.ts';
import { oneLine } from '../catalog/overview.ts';
import type { ItemSearch, Matches } from '../catalog/search/search.ts';
import { textResult } from '../protocol/rpc.ts';
import {
  type Arguments,
  invalid,
  readArguments,
  readFlag,
  readList,
  readNumber,
  readText,
  requireChoice,
} from './arguments.ts';
import type { ControlContext, ControlOutcome } from './control.ts';
import { createNameProblems, meantHint, mostHints } from './name-problems.ts';
import { printBrief } from './signature.ts';

export const SEARCH_TOOLS = 'search_tools';

const MOST_QUERIES = 10;
const MOST_FOUND = 20;
const USUAL_FOUND = 5;
const MOST_DESCRIBED = 20;
const LONGEST_QUERY = 1_000;

/** The most characters of the servers in the description. */
const SERVERS_ROOM = 800;
const SERVERS_NAMED = 3;

const strings = (description: string) => ({ type: 'array', items: { type: 'string' }, description });

/** The servers with tools, and how many. Those that are away count too, so that a crash changes no list. */
const serverCounts = memo(({ claims }: Catalog): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const entry of claims.tool.values())
    if (entry !== null) counts.set(entry.sourceKey, (counts.get(entry.sourceKey) ?? 0) + 1);
  return counts;
});

/** The tools, for a caller with this catalog. The same entries while its servers are the same. */
export const searchEntries: (catalog: Catalog) => readonly Entry[] = memo((catalog: Catalog) => [
  builtInEntry({
    name: SEARCH_TOOLS,
    description:
      'Finds tools, resources and prompts. Use one short query for each thing you need: action, object and service, such as ' +
      `"create github issue". Nothing found does not mean that nothing is there: try other words.${serverText(catalog)}`,
    inputSchema: {
      type: 'object',
      properties: {
        queries: strings('One short query for each capability.'),
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: MOST_FOUND,
          description: `Results per query. Default: ${USUAL_FOUND}.`,
        },
        server: { type: 'string', description: 'Only of this server, or of those that match this pattern.' },
        activate: { type: 'boolean', description: 'Adds all tools found to your list of tools.' },
      },
      required: ['queries'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  } as Parameters<typeof builtInEntry>[0]),
  builtInEntry({
    name: DESCRIBE_TOOLS,
    description: 'Returns the full definitions of tools that were found.',
    inputSchema: {
      type: 'object',
      properties: {
        names: strings('Their names.'),
        activate: { type: 'boolean', description: 'Adds them to your list of tools instead.' },
      },
      required: ['names'],
      additionalProperties: false,
    },
  }),
  CALL_TOOL_ENTRY,
]);

function serverText(catalog: Catalog): string {
  const lines = [...serverCounts(catalog)].map(([key, tools]) => ({ head: `${oneLine(key)} (${tools})`, text: '' }));
  if (lines.length === 0) return '';
  const names = fitLines(lines, { room: SERVERS_ROOM, separator: ', ', more: (left) => `and ${left} more` });
  return `\nServers (number of tools): ${names}`;
}

export const SEARCH_NAMES: readonly string[] = [SEARCH_TOOLS, DESCRIBE_TOOLS, CALL_TOOL];

/** What a model should know before it looks at the tools. */
export function searchInstructions(catalog: Catalog): string {
  const tools = [...serverCounts(catalog).values()].reduce((sum, count) => sum + count, 0);
  const servers = serverCounts(catalog).size;
  return (
    `Toolgate offers ${counted(tools, 'tool')} of ${counted(servers, 'server')}; your list shows only a few of them. ` +
    `Find others with ${SEARCH_TOOLS}, and call them with ${CALL_TOOL}.`
  );
}

/** How to use an item that is not active. */
export function searchAdvice(isTool: boolean, name: string): string {
  const activate = `call ${DESCRIBE_TOOLS} with "${name}" in names and activate: true`;
  return isTool ? `Call it through ${CALL_TOOL}, or activate it: ${activate}.` : `Activate it first: ${activate}.`;
}

const RUN: Readonly<
  Record<string, (context: ControlContext, args: unknown) => ControlOutcome | Promise<ControlOutcome>>
> = { [SEARCH_TOOLS]: searchTools, [DESCRIBE_TOOLS]: describeTools };

/** Undefined if it is the name of another tool. */
export function searchTool(name: string): (typeof RUN)[string] | undefined {
  return Object.hasOwn(RUN, name) ? RUN[name] : undefined;
}

async function searchTools(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['queries', 'limit', 'server', 'activate']);
  const queries = readQueries(given);
  const limit = Math.min(readNumber(given, 'limit', 1) ?? USUAL_FOUND, MOST_FOUND);
  const isServer = serverFilter(given, context.catalog);
  const activates = readFlag(given, 'activate');
  if (activates) requireChoice(context);
  const search = await context.search();
  const found = queries.map((query) => search.find(query, limit, isServer === null ? {} : { isServer }));
  const entries = new Map(found.flatMap(({ best }) => best.map(({ name, entry }) => [name, entry])));
  context.searched(queries.map((query, i) => ({ query, found: found[i]!.best.map(({ entry }) => entry) })));
  const selection = activates ? activated(context.selection, entries) : context.selection;
  const text = [
    ...resultLines(context.catalog, queries, found, search),
    ...(entries.size === 0 ? [] : [activates ? activatedLine(context.selection, entries) : USE]),
    ...missing(context.catalog),
  ].join('\n\n');
  return { selection, result: textResult(text) };
}

const USE = `Call a tool with ${CALL_TOOL}; … stands for optional arguments, which ${DESCRIBE_TOOLS} shows.`;

/** What a model gives as a single text is one query. */
function readQueries(given: Arguments): readonly string[] {
  if (typeof given.queries === 'string') return [readText(given, 'queries', LONGEST_QUERY)];
  return readList(given, 'queries', MOST_QUERIES).map((query) => readText({ query }, 'query', LONGEST_QUERY));
}

/** Null for all servers. Throws if the caller knows none of that name. */
function serverFilter(given: Arguments, catalog: Catalog): ((entry: Entry) => boolean) | null {
  if (given.server === undefined) return null;
  const server = readText(given, 'server', LONGEST_QUERY);
  const isMeant = ({ sourceKey, namespace }: Entry) =>
    sourceKey === server || namespace === server || matchesServer(server, sourceKey, namespace);
  for (const kind of KINDS) for (const entry of catalog.entries[kind].values()) if (isMeant(entry)) return isMeant;
  const keys = serversIn(catalog);
  throw invalid(
    `No server "${server}" offers anything now.${didYouMean(server, keys) || ` Servers: ${keys.join(', ')}.`}`,
  );
}

function serversIn({ entries }: Catalog): string[] {
  return [...new Set(KINDS.flatMap((kind) => [...entries[kind].values()].map(({ sourceKey }) => sourceKey)))];
}

/** Each query with what it found. What an earlier query found is only named. */
function resultLines(
  catalog: Catalog,
  queries: readonly string[],
  found: readonly Matches[],
  search: ItemSearch,
): string[] {
  const shown = new Set<string>();
  let hints = mostHints(catalog);
  return queries.map((query, i) => {
    const { best, more } = found[i]!;
    const lines = best.map(({ name, entry }) => {
      if (shown.has(name)) return `${oneLine(name)} (see above)`;
      shown.add(name);
      return printBrief(name, entry);
    });
    const head = queries.length === 1 ? [] : [`# ${oneLine(query)}`];
    if (lines.length === 0) return [...head, nothingFound(catalog, query, search, hints-- > 0)].join('\n');
    return [...head, ...lines, ...moreLine(more)].join('\n');
  });
}

function moreLine(more: ReadonlyMap<string, number>): string[] {
  const total = [...more.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) return [];
  const named = [...more].slice(0, SERVERS_NAMED).map(([key, count]) => `${oneLine(key)} (${count})`);
  const others = more.size > SERVERS_NAMED ? ` and ${counted(more.size - SERVERS_NAMED, 'more server')}` : '';
  return [`… ${total} more like these on ${named.join(', ')}${others}: use other words, server or limit.`];
}

/** No empty answer: the names that are most alike, or the servers. */
function nothingFound(catalog: Catalog, query: string, search: ItemSearch, looksForSimilar: boolean): string {
  const words = query.split(/\s+/).slice(0, 8);
  const single = words.length < 2 ? [] : words.flatMap((word) => search.find(word, 2).best.map(({ name }) => name));
  const similar = looksForSimilar ? similarNames(query, catalog.entries.tool.keys()) : [];
  const alike = [...new Set([...similar, ...single])].slice(0, 5);
  if (alike.length > 0) return `Nothing matches. Names like it: ${alike.map(oneLine).join(', ')}.`;
  const servers = serversIn(catalog);
  if (servers.length === 0) return 'Nothing matches: no server offers anything now.';
  const names = fitLines(
    servers.map((key) => ({ head: oneLine(key), text: '' })),
    { room: SERVERS_ROOM, separator: ', ', more: (left) => `and ${left} more` },
  );
  return `Nothing matches. Try other words, or what one of these servers has: ${names}.`;
}

/** A model that finds nothing must not conclude that there is nothing. */
function missing(catalog: Catalog): string[] {
  const line = missingLine(catalog);
  return line === '' ? [] : [line];
}

function activated(selection: Selection, entries: ReadonlyMap<string, Entry>): Selection {
  const on = (isTool: boolean) =>
    new Set(
      [...entries].filter(([, { kind }]) => (kind === 'tool') === isTool && kind !== 'prompt').map(([name]) => name),
    );
  return changeSelection(selection, {
    tools: { on: on(true), off: new Set() },
    resources: { on: on(false), off: new Set() },
  });
}

function activatedLine(before: Selection, entries: ReadonlyMap<string, Entry>): string {
  const fresh = [...entries.values()].filter((entry) => !isActive(before, entry)).length;
  const done = fresh === 0 ? 'All of them were active already.' : `Activated ${counted(fresh, 'item')}.`;
  return `${done} If your list of tools does not show them, use ${CALL_TOOL}.`;
}

/** An item by its name, or a tool by another name of its own. Null if there is none, or more than one. */
function lookUp(catalog: Catalog, name: string): Entry | null {
  for (const kind of KINDS) {
    const entry = catalog.entries[kind].get(name);
    if (entry !== undefined) return entry;
  }
  const meant = aliased(catalog, 'tool', name).filter((entry) => catalog.entries.tool.has(nameIn(catalog, entry)));
  return meant.length === 1 ? meant[0]! : null;
}

/** Every name is checked first: a mistake throws, and nothing is activated. */
function describeTools(context: ControlContext, args: unknown): ControlOutcome {
  const given = readArguments(args, ['names', 'activate']);
  const names = typeof given.names === 'string' ? [given.names] : readList(given, 'names', MOST_DESCRIBED);
  const activates = readFlag(given, 'activate');
  if (activates) requireChoice(context);
  const { catalog } = context;
  const problems = createNameProblems(catalog);
  const entries = new Map<string, Entry>();
  for (const one of names) {
    const name = readText({ name: one }, 'name', LONGEST_QUERY);
    const entry = lookUp(catalog, name);
    if (entry === null) {
      const known = () => KINDS.flatMap((kind) => [...catalog.entries[kind].keys()]);
      problems.add(KINDS, name, name, () => meantHint(similarNames(name, known())));
    } else entries.set(nameIn(catalog, entry), entry);
  }
  problems.refuse('Nothing was described.', 'names');
  if (!activates) {
    const definitions = [...entries.values()].map((entry) => definitionOf(entry, 'legacy').toString());
    return { selection: context.selection, result: textResult(definitions.join('\n')) };
  }
  const lines = [...entries].map(([name, entry]) => printBrief(name, entry));
  return {
    selection: activated(context.selection, entries),
    result: textResult([...lines, '', activatedLine(context.selection, entries)].join('\n')),
  };
}
