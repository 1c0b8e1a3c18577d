/** `toolgate search`: tools, resources and prompts by words, as a model would find them. */
import { GatewayError } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { countedTokensText } from '../catalog/tokens.ts';
import { type ExampleReport, MOST_SHOWN, type SearchReport } from '../doors/commands/search.ts';
import type { CommandIo } from './command-io.ts';
import { inGateway } from './in-gateway.ts';
import type { Options } from './options.ts';
import { brief, cell, columns, note, paint, print, printResult, table, warn } from './terminal.ts';

const USUAL = 10;

export async function search(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  if (options.examples === true)
    return inGateway(options, io, async (run) => showExamples(await run('search-examples', {}), options, io), {
      audit: false,
    });
  if (options.forget === true)
    return inGateway(options, io, async (run) => showForgotten(await run('search-forget', {}), options, io));
  const query = args.join(' ').trim();
  if (query === '')
    throw new GatewayError(
      'usage',
      'What do you look for? toolgate search WORDS, such as: toolgate search create issue',
    );
  const limit = readLimit(options.limit);
  const { server, agent } = options;
  const request = {
    query,
    limit,
    tokens: options.tokens === true,
    ...(server !== undefined && { server }),
    ...(agent !== undefined && { agent }),
  };
  return inGateway(options, io, async (run) => show(await run('search', request), query, options, io), {
    audit: false,
  });
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return USUAL;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= MOST_SHOWN) return limit;
  throw new GatewayError('usage', `--limit is a number from 1 to ${MOST_SHOWN}, not "${text}".`);
}

async function show(report: SearchReport, query: string, options: Options, io: CommandIo): Promise<number> {
  const { items, more, missing, problem } = report;
  for (const text of missing) warn(`something is missing: ${text}.`, io);
  if (problem != null) warn(problem, io);
  if (items.length === 0 && options.json !== true) {
    warn(`nothing matches "${query}". Try other words, or toolgate list.`, io);
    return 1;
  }
  const mark = await marker(query, io);
  const widest = items.reduce((most, { name }) => Math.max(most, cell(name).length), 0);
  const width = Math.max(20, columns(io) - widest - (options.tokens === true ? 20 : 5));
  const rows = items.map(({ name, kind, active, description, tokens }) => [
    `${active ? paint('green', '*', io) : ' '} ${mark(cell(name))}`,
    ...(options.tokens === true ? [countedTokensText(tokens)] : []),
    `${kind === 'tool' ? '' : `${kind}: `}${mark(brief(description, width))}`.trim(),
  ]);
  printResult(options, report, table(rows), io);
  const servers = Object.entries(more).map(([server, count]) => `${server} (${count})`);
  const total = Object.values(more).reduce((sum, count) => sum + count, 0);
  if (total > 0 && options.json !== true)
    print(paint('dim', `${counted(total, 'more like these')}: ${brief(servers.join(', '), columns(io) - 30)}`, io), io);
  return items.length === 0 ? 1 : 0;
}

function showForgotten(report: { readonly forgotten: number }, options: Options, io: CommandIo): number {
  const { forgotten } = report;
  const text =
    forgotten === 0 ? 'Nothing was learned.' : `Forgot the learned examples of ${counted(forgotten, 'tool')}.`;
  return printResult(options, report, text, io);
}

function showExamples(report: ExampleReport, options: Options, io: CommandIo): number {
  const rows = report.examples.map(({ tool, agent, queries }) => [
    cell(tool),
    agent === null ? 'configured' : `learned by ${cell(agent)}`,
    brief(queries.join(' · '), Math.max(20, columns(io) - 60)),
  ]);
  printResult(options, report, rows.length === 0 ? 'There are no examples.' : table(rows), io);
  if (options.json !== true && report.examples.some(({ agent }) => agent !== null))
    note(
      `What was learned is in ${report.file}. toolgate search --forget removes it; search.learn = false stops it.`,
      io,
    );
  return 0;
}

/** Marks the words of a text that the query has too, in any form. */
async function marker(query: string, io: CommandIo): Promise<(text: string) => string> {
  const { termsOf } = await import('../catalog/search/words.ts');
  const wanted = new Set(termsOf(query));
  return (text) =>
    text.replace(/[\p{L}\p{N}]+/gu, (word) =>
      termsOf(word).some((term) => wanted.has(term)) ? paint('bold', word, io) : word,
    );
}
