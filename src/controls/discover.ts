/** `discover-all-tools`: what every server offers, in a short form unless more is asked for. */
import { refIdOf } from '../access/toolset.ts';
import { matchesPattern } from '../base/pattern.ts';
import { counted, didYouMean } from '../base/text.ts';
import { awayText } from '../catalog/away.ts';
import type { AwaySource } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { tokensOf, tokensOfAll } from '../catalog/tokens.ts';
import { type Arguments, invalid, readArguments, readDetail, readNumber, readText } from './arguments.ts';
import type { ControlContext } from './control.ts';

/** How many tools the short form has in one answer. */
const SHORT_LIMIT = 100;
/** How many characters of a description it has. */
const SHORT_DESCRIPTION = 100;

export function discover(context: ControlContext, args: unknown): object {
  const given = readArguments(args, ['server', 'query', 'limit', 'offset', 'detail']);
  const isFull = readDetail(given) === 'full';
  const all = [...context.catalog.entries.tool.values()];
  const found = all.filter(serverFilter(given, all)).filter(wordFilter(given));
  const offset = readNumber(given, 'offset', 0) ?? 0;
  const limit = readNumber(given, 'limit', 1) ?? (isFull ? found.length : SHORT_LIMIT);
  const shown = found.slice(offset, offset + limit);
  const left = found.length - offset - shown.length;
  const total = tokensOfAll(all);
  const missing = context.catalog.away.filter(({ isListed }) => !isListed);
  return {
    summary: { totalTools: found.length, totalServers: serversOf(found).length },
    toolsByServer: serversOf(shown).map((serverName) => ({
      serverName,
      toolCount: found.filter(({ sourceKey }) => sourceKey === serverName).length,
      tools: shown
        .filter(({ sourceKey }) => sourceKey === serverName)
        .map((entry) => (isFull ? fullForm(entry, total) : shortForm(entry))),
    })),
    ...(missing.length > 0 && { unavailableServers: missing.map(missingServer), warnings: missing.map(missingText) }),
    ...(left > 0 && {
      more: `${counted(left, 'more tool')}. Call again with offset ${offset + shown.length}, or narrow it with "server" or "query".`,
    }),
  };
}

function missingServer({ key, state, reason }: AwaySource) {
  return { serverName: key, state, reason };
}

function missingText(source: AwaySource): string {
  return `The tools of "${source.key}" are missing: ${awayText([source])}.`;
}

function serversOf(entries: readonly Entry[]): string[] {
  return [...new Set(entries.map(({ sourceKey }) => sourceKey))];
}

function fullForm(entry: Entry, total: number): object {
  return {
    name: entry.item.name,
    description: entry.item.description,
    namespacedName: canonicalName(entry),
    serverName: entry.sourceKey,
    refId: refIdOf(entry),
    context: { tokens: tokensOf(entry), percentTotal: Math.round((tokensOf(entry) / total) * 1000) / 10 },
  };
}

function shortForm(entry: Entry): object {
  const text = [...entry.item.description.replace(/\s+/g, ' ').trim()];
  const description =
    text.length > SHORT_DESCRIPTION ? `${text.slice(0, SHORT_DESCRIPTION - 1).join('')}…` : text.join('');
  return { namespacedName: canonicalName(entry), ...(description !== '' && { description }) };
}

/** By the name of the server, or a pattern. Throws if no server has it. */
function serverFilter(given: Arguments, all: readonly Entry[]): (entry: Entry) => boolean {
  if (given.server === undefined) return () => true;
  const server = readText(given, 'server', 1_000);
  const isMeant = (key: string) => key === server || matchesPattern(server, key);
  const keys = serversOf(all);
  if (!keys.some(isMeant))
    throw invalid(`No server "${server}" has tools now.${didYouMean(server, keys)} Servers: ${keys.join(', ')}.`);
  return ({ sourceKey }) => isMeant(sourceKey);
}

/** Every word has to be in the name or in the description. */
function wordFilter(given: Arguments): (entry: Entry) => boolean {
  if (given.query === undefined) return () => true;
  const words = readText(given, 'query', 1_000)
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return (entry) => {
    const text = `${canonicalName(entry)} ${entry.name} ${entry.item.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
}
