/**
 * The description of `toolman_activate`. If the whole catalog fits, the description has it. Otherwise it names the
 * servers first, because a model can activate a server whose tools it does not know, then single items as room is left.
 */
import { isActive, type Selection, startSelection } from '../access/selection.ts';
import { includesTool, type Toolset } from '../access/toolset.ts';
import { countFitting, type FitLine, fitLines } from '../base/fit.ts';
import { memo } from '../base/memo.ts';
import { missingLine } from '../catalog/away.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { oneLine, overviewOf, type ServerOverview } from '../catalog/overview.ts';
import { ACTIVE, itemsOf, shortTextOf, wholeCatalog } from './catalog-text.ts';

const WHOLE_RULE =
  'Activates and deactivates tools and resources. Only active ones can be used; items named in no list stay as they are.\n' +
  'All four lists are required. Each may be empty, but not all of them. All items are listed below';

const MARKED = '; * marks what is active.';

const RULE =
  'Activates and deactivates tools and resources. Only active ones can be used; items named in no list stay as they are. ' +
  'All four lists are required: [] for none.';

/** The most characters of what a server is for. */
const PURPOSE_LENGTH = 120;
/** With fewer characters for each server there is only its name. */
const LEAST_PURPOSE = 20;
/** If less is left, no single items are shown. */
const LEAST_FOR_ITEMS = 80;

/** A toolset with its tools in a catalog. */
interface VisibleToolset {
  readonly name: string;
  readonly tools: readonly Entry[];
}

/** The toolsets that have tools in the catalog. Others stay unknown to its callers. */
export function toolsetsWithin(catalog: Catalog, toolsets: readonly Toolset[]): readonly VisibleToolset[] {
  return visibleToolsets(catalog)(toolsets);
}

const visibleToolsets = memo((catalog: Catalog) =>
  memo((toolsets: readonly Toolset[]): readonly VisibleToolset[] =>
    toolsets
      .map((toolset) => ({
        name: toolset.name,
        tools: itemsOf(catalog).tools.filter((entry) => includesTool(toolset, entry)),
      }))
      .filter(({ tools }) => tools.length > 0),
  ),
);

/** Nothing is marked as active. */
const UNMARKED = startSelection([]);

/** The description in at most `room` characters. What is active is marked unless `marked` is null. */
export function describeActivation(
  catalog: Catalog,
  marked: Selection | null,
  toolsets: readonly Toolset[],
  room: number,
): string {
  const missing = missingPart(catalog);
  const selection = marked ?? UNMARKED;
  const whole = wholeCatalog(catalog, selection, roomForWhole(catalog, room));
  if (whole !== null) return `${WHOLE_RULE}${marked === null ? '.' : MARKED}${missing}\n\n${whole}`;
  const head = `${ruleFor(catalog)}${missing}\n\nServers (number of tools):\n`;
  const named = toolsetLine(toolsetsWithin(catalog, toolsets), Math.floor(room / 5));
  const servers = serverLines(catalog, room - head.length - named.length);
  const start = head + servers;
  return start + itemLines(catalog, selection, room - start.length - named.length, marked !== null) + named;
}

/** Whether the description has no room for the whole catalog. */
export function isCatalogCut(catalog: Catalog, selection: Selection, room: number): boolean {
  return room < Number.POSITIVE_INFINITY && wholeCatalog(catalog, selection, roomForWhole(catalog, room)) === null;
}

function roomForWhole(catalog: Catalog, room: number): number {
  return room - WHOLE_RULE.length - MARKED.length - 2 - missingPart(catalog).length;
}

/** Which servers are missing and why. A model that finds a tool in no list must not conclude that there is none. */
function missingPart(catalog: Catalog): string {
  const line = missingLine(catalog);
  return line === '' ? '' : `\n\n${line}`;
}

/** The most characters of the servers in the instructions. */
const NAMES_ROOM = 600;

/** What a model should know before it looks at the tools. While servers are starting for the first time, none is named. */
export const activateInstructions = memo((catalog: Catalog): string => {
  const servers = overviewOf(catalog).map((one) => ({ ...serverLine(one), text: '' }));
  const names = fitLines(servers, { room: NAMES_ROOM, separator: ', ', more: (left) => `and ${left} more` });
  return (
    'Toolgate offers the tools of several servers. Only active tools are in your list of tools. To use others, call ' +
    'toolman_activate with a name or a pattern first; with show it lists what a server has.' +
    (names === '' ? '' : ` Servers (number of tools): ${names}`)
  );
});

/** The rule of use, with a server of this catalog as the example. */
const ruleFor = memo((catalog: Catalog): string => {
  const example = overviewOf(catalog).find(({ pattern, tools }) => pattern !== null && tools.length > 0)?.pattern;
  if (example == null || example.length > 60)
    return `${RULE} They take names and patterns. To see more items, call with show, a list of words or patterns: it lists what matches and changes nothing.`;
  return (
    `${RULE} They take names and patterns: "${example}" in tools_on activates all tools of that server. ` +
    `To see more items, call with show, for example ["${example}"] or ["*search*"]: it lists what matches and changes nothing.`
  );
});

function serverLines(catalog: Catalog, room: number): string {
  return fitLines(linesOf(catalog), {
    room,
    most: PURPOSE_LENGTH,
    shortest: LEAST_PURPOSE,
    more: (left) => `and ${left} more servers: call with show: ["*"]`,
  });
}

const linesOf = memo((catalog: Catalog): readonly FitLine[] => overviewOf(catalog).map(serverLine));

/** `memory_* (9): a knowledge graph`. */
export function serverLine(server: ServerOverview): FitLine {
  const { pattern, key, purpose } = server;
  return { head: `${pattern ?? `${key}, names without a prefix`} (${countsOf(server)})`, text: purpose };
}

/** `9`, `9, 2 resources` or `2 resources`. */
function countsOf({ tools, resources }: ServerOverview): string {
  const more = resources.length === 0 ? '' : resources.length === 1 ? '1 resource' : `${resources.length} resources`;
  if (more === '') return String(tools.length);
  return tools.length === 0 ? more : `${tools.length}, ${more}`;
}

const ITEMS = { marked: `\n\nItems (${ACTIVE} is active):\n`, plain: '\n\nItems:\n' };

function itemLines(catalog: Catalog, selection: Selection, room: number, isMarked: boolean): string {
  const head = isMarked ? ITEMS.marked : ITEMS.plain;
  const left = room - head.length;
  if (left < LEAST_FOR_ITEMS) return '';
  const { tools, resources } = itemsOf(catalog);
  const all = [...tools, ...resources];
  const active = new Set(all.filter((entry) => isActive(selection, entry)));
  const line = (entry: Entry): FitLine => {
    const { name, description } = shortTextOf(entry);
    return { head: active.has(entry) ? ACTIVE + name : name, text: description };
  };
  const more = (count: number) => `and ${count} more: call with show`;
  const lines = all.map(line);
  // If all names fit, descriptions take what is left.
  if (countFitting(lines, left) === all.length)
    return head + fitLines(lines, { room: left, joint: ' - ', shortest: 24, more });
  const wanted = byInterest(catalog, active);
  const count = countFitting(wanted.map(line), left - more(all.length).length - 1);
  if (count === 0) return '';
  const shown = new Set(wanted.slice(0, count));
  const heads = all.filter((entry) => shown.has(entry)).map((entry) => line(entry).head);
  return head + [...heads, more(all.length - count)].join('\n');
}

/** Active items first, then the first tool of each server, then the second, and so on. */
function byInterest(catalog: Catalog, active: ReadonlySet<Entry>): Entry[] {
  const others = overviewOf(catalog).map((one) =>
    [...one.tools, ...one.resources].filter((entry) => !active.has(entry)),
  );
  const longest = Math.max(0, ...others.map((entries) => entries.length));
  const turns: Entry[] = [];
  for (let turn = 0; turn < longest && turns.length < MOST_NAMES; turn++)
    for (const entries of others) if (turn < entries.length) turns.push(entries[turn]!);
  return [...active, ...turns];
}

/** More names than this never fit. */
const MOST_NAMES = 1_000;

function toolsetLine(toolsets: readonly VisibleToolset[], room: number): string {
  if (toolsets.length === 0) return '';
  const start = '\n\nToolsets, whose names tools_on takes too: ';
  const lines = toolsets.map(({ name, tools }) => ({ head: `${oneLine(name)} (${tools.length})`, text: '' }));
  return start + fitLines(lines, { room: room - start.length, separator: ', ', more: (left) => `and ${left} more` });
}
