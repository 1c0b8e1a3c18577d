/** `show` of `toolman_activate`: lists items page by page, and changes nothing. */
import type { Selection } from '../access/selection.ts';
import { GatewayError } from '../base/errors.ts';
import { fitLines } from '../base/fit.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { counted, similarNames } from '../base/text.ts';
import { awayError, awayText, awayWith } from '../catalog/away.ts';
import type { AwaySource, Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { headingOf } from '../catalog/introduction.ts';
import { overviewOf } from '../catalog/overview.ts';
import { serverLine } from './activate-text.ts';
import { firstOf, invalid } from './arguments.ts';
import { type CatalogItems, catalogPage, itemsOf } from './catalog-text.ts';
import { mostHints, requireFewPatterns } from './name-problems.ts';

export interface Show {
  /** Names, patterns, servers or parts of names. */
  readonly patterns: readonly string[];
  readonly page: number;
}

const MAX_PATTERNS = 100;

/** The arguments `show` and `page`. A single text counts as a list of one. */
export function readShow(show: unknown, page: unknown = 1): Show {
  const patterns: unknown = typeof show === 'string' ? [show] : show;
  const isList = Array.isArray(patterns) && patterns.length > 0 && patterns.length <= MAX_PATTERNS;
  if (!isList || patterns.some((one) => typeof one !== 'string' || one === ''))
    throw invalid(`show must be a list of 1 to ${MAX_PATTERNS} names, patterns or words, such as ["*search*"].`);
  if (typeof page !== 'number' || !Number.isSafeInteger(page) || page < 1)
    throw invalid('page must be a whole number from 1 on.');
  return { patterns, page };
}

/** A page of the items that match, with the instructions of each server that was asked for as a whole. */
export function showItems(catalog: Catalog, selection: Selection, { patterns, page: number }: Show): string {
  const found = findItems(catalog, patterns);
  const page = catalogPage(found, selection, number);
  const total = found.tools.length + found.resources.length;
  if (page === null)
    throw invalid(`There is no page ${number} of what ${patterns.join(', ')} lists. Begin with page 1.`);
  const { text, from, to, pages } = page;
  const range = from === 1 && to === total ? counted(total, 'item') : `Items ${from} to ${to} of ${total}`;
  const before = number === 1 ? introductionTo(catalog, patterns, found, pages) : [];
  const next = number < pages ? [`For more, call with the same show and page: ${number + 1} (of ${pages}).`] : [];
  return [`${range}; * is active. Nothing was changed.`, ...before, text, ...next].join('\n\n');
}

/** What comes before the items: the servers if there are many items, and the instructions of servers. */
function introductionTo(catalog: Catalog, patterns: readonly string[], found: CatalogItems, pages: number): string[] {
  const servers = overviewOf(catalog);
  const shown = new Set([...found.tools, ...found.resources].map((entry) => entry.sourceKey));
  const among = servers.filter(({ introductions }) => introductions.some(({ key }) => shown.has(key)));
  const lines =
    pages > 1 && among.length > 1
      ? [
          `Servers (number of tools):\n${fitLines(among.map(serverLine), {
            room: SERVERS_ROOM,
            more: (left) => `and ${left} more servers`,
          })}`,
        ]
      : [];
  const instructions = servers
    .filter(({ pattern, key }) => patterns.some((one) => one === pattern || one === key))
    .flatMap(({ introductions }) => introductions)
    .filter((one) => one.instructions !== '')
    .map((one) => `${headingOf(one)}\n\n${one.instructions}`);
  return [...lines, ...instructions];
}

/** The most characters for the servers on the first of several pages. */
const SERVERS_ROOM = 8_000;

/** Exact names come first. A text that is neither a name nor a pattern is a server, or a part of names. */
function findItems(catalog: Catalog, patterns: readonly string[]): CatalogItems {
  const { tools, resources } = itemsOf(catalog);
  const names = new Set([...tools, ...resources].map(({ name }) => name));
  const servers = new Set([...tools, ...resources].map(({ sourceKey }) => sourceKey));
  requireFewPatterns(patterns.length, names.size);
  const unknown: string[] = [];
  const hints = mostHints(catalog);
  const away = new Set<AwaySource>();
  const found = new Set<Entry>();
  for (const one of patterns) {
    const matches = matcherOf(one, names, servers);
    const matching = [...tools, ...resources].filter(matches);
    if (matching.length === 0) {
      const servers = awayMatching(catalog, one);
      for (const server of servers) away.add(server);
      if (servers.length === 0) unknown.push(unmatched(one, unknown.length < hints ? names : []));
    }
    for (const entry of matching) found.add(entry);
  }
  const without = away.size === 0 ? '' : ` Not available now: ${awayText([...away])}.`;
  if (unknown.length > 0) throw new GatewayError('item_unknown', `No items match ${firstOf(unknown, '; ')}.${without}`);
  if (found.size === 0) throw awayError([...away], `Nothing can be shown.${without}`);
  return {
    tools: tools.filter((entry) => found.has(entry)),
    resources: resources.filter((entry) => found.has(entry)),
  };
}

/** The sources that are not up and that the text names, or whose items it means. */
function awayMatching(catalog: Catalog, text: string): readonly AwaySource[] {
  const named = catalog.away.filter(({ key, isListed }) => key === text && !isListed);
  return named.length > 0 ? named : awayWith(catalog, ['tool', 'resource', 'template'], text);
}

function matcherOf(text: string, names: ReadonlySet<string>, servers: ReadonlySet<string>): (entry: Entry) => boolean {
  if (names.has(text)) return ({ name }) => name === text;
  if (isPattern(text)) return ({ name }) => matchesPattern(text, name);
  if (servers.has(text)) return ({ sourceKey }) => sourceKey === text;
  const word = text.toLowerCase();
  return ({ name }) => name.toLowerCase().includes(word);
}

function unmatched(text: string, names: Iterable<string>): string {
  const similar = similarNames(text, names);
  return similar.length > 0 ? `${text} (did you mean ${similar.join(', ')}?)` : text;
}
