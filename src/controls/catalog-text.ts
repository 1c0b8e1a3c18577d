/** The items of a catalog as a model reads them: one line each, all of them, or page by page. */
import { isActive, type Selection } from '../access/selection.ts';
import { memo } from '../base/memo.ts';
import { missingLine } from '../catalog/away.ts';
import { type Catalog, nameIn } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { headingOf } from '../catalog/introduction.ts';
import { overviewOf } from '../catalog/overview.ts';

/** How many characters of a description a line shows. */
const DESCRIPTION_LENGTH = 132;

/** The beginning of each line of an active item. */
export const ACTIVE = '*';

/** The tools, and the resources with their templates. */
export interface CatalogItems {
  readonly tools: readonly Entry[];
  readonly resources: readonly Entry[];
}

export const itemsOf: (catalog: Catalog) => CatalogItems = memo(({ entries }: Catalog) => ({
  tools: [...entries.tool.values()],
  resources: [...entries.resource.values(), ...entries.template.values()],
}));

/** The name and the beginning of the description. Cached per entry, because they are the same in every view. */
export const shortTextOf = memo((entry: Entry): { readonly name: string; readonly description: string } => {
  const folded = entry.item.description.replace(/\s+/g, ' ').trim();
  return {
    // Line breaks are replaced, so that neither a description nor a name can imitate another line.
    name: safeName(entry.name),
    description: [...folded.slice(0, DESCRIPTION_LENGTH * 2)].slice(0, DESCRIPTION_LENGTH).join(''),
  };
});

const plainLine = memo((entry: Entry): string => {
  const { name, description } = shortTextOf(entry);
  return description === '' ? name : `${name} - ${description}`;
});

function safeName(name: string): string {
  return name.replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
}

/** The line of an item: its name, the beginning of its description, and `*` in front if it is active. */
export function catalogLine(entry: Entry, selection: Selection): string {
  return isActive(selection, entry) ? ACTIVE + plainLine(entry) : plainLine(entry);
}

/** All items. Null if that takes more characters than `room`. */
export function wholeCatalog(catalog: Catalog, selection: Selection, room: number): string | null {
  const { tools, resources } = itemsOf(catalog);
  let left = room;
  for (const entry of [...tools, ...resources]) {
    left -= plainLine(entry).length + 1;
    if (left < 0) return null;
  }
  const text = sections({ tools, resources }, selection, true);
  return text.length <= room ? text : null;
}

function sections({ tools, resources }: CatalogItems, selection: Selection, isWhole: boolean): string {
  const lines = (entries: readonly Entry[]) =>
    entries.length === 0 ? '(none)' : entries.map((entry) => catalogLine(entry, selection)).join('\n');
  return [
    ...(isWhole || tools.length > 0 ? [`Tools:\n${lines(tools)}`] : []),
    ...(isWhole || resources.length > 0 ? [`Resources:\n${lines(resources)}`] : []),
  ].join('\n\n');
}

/** The most characters of the lines of one page. */
const PAGE_ROOM = 10_000;

export interface CatalogPage {
  readonly text: string;
  /** The number of the first item on the page, from 1 on, and of the last one. */
  readonly from: number;
  readonly to: number;
  readonly pages: number;
}

/** One page of some items, from 1 on. Null if there are fewer pages. */
export function catalogPage(items: CatalogItems, selection: Selection, page: number): CatalogPage | null {
  const all = [...items.tools, ...items.resources];
  const starts: number[] = [];
  let left = 0;
  for (const [index, entry] of all.entries()) {
    const length = plainLine(entry).length + ACTIVE.length + 1;
    if (index === 0 || length > left) {
      starts.push(index);
      left = PAGE_ROOM;
    }
    left -= length;
  }
  const start = starts[page - 1];
  if (start === undefined) return null;
  const end = starts[page] ?? all.length;
  const shown = new Set(all.slice(start, end));
  const on = (entries: readonly Entry[]) => entries.filter((entry) => shown.has(entry));
  return {
    text: sections({ tools: on(items.tools), resources: on(items.resources) }, selection, false),
    from: start + 1,
    to: end,
    pages: starts.length,
  };
}

/** Everything: each server with what it is for, its instructions and its items. */
export function catalogDocument(catalog: Catalog, selection: Selection): string {
  const line = (entry: Entry) => {
    const { description } = shortTextOf(entry);
    const name = safeName(nameIn(catalog, entry));
    const active = isActive(selection, entry) ? ACTIVE : '';
    return description === '' ? active + name : `${active}${name} - ${description}`;
  };
  const shown = new Set<string>();
  const parts = overviewOf(catalog).map(({ key, pattern, tools, resources, purpose, introductions }) => {
    for (const one of introductions) shown.add(one.key);
    return [
      `# ${pattern ?? key}`,
      ...(purpose === '' ? [] : [purpose]),
      ...introductions.map(({ instructions }) => instructions).filter((text) => text !== ''),
      ...(tools.length === 0 ? [] : [`Tools:\n${tools.map(line).join('\n')}`]),
      ...(resources.length === 0 ? [] : [`Resources:\n${resources.map(line).join('\n')}`]),
    ].join('\n\n');
  });
  // Servers without tools and resources may still have something to say, about their prompts for example.
  const others = catalog.introductions
    .filter(({ key, instructions }) => !shown.has(key) && instructions !== '')
    .map((one) => `${headingOf(one)}\n\n${one.instructions}`);
  const missing = missingLine(catalog);
  return [...parts, ...others, ...(missing === '' ? [] : [missing])].join('\n\n');
}
