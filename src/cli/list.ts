/** `toolgate list`: servers, and what they offer. */
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import { counted, didYouMean } from '../base/text.ts';
import type { Kind } from '../catalog/item.ts';
import { countedTokensText, tokensText } from '../catalog/tokens.ts';
import type { ItemList, ListedItem, ListRequest } from '../doors/commands/list-items.ts';
import { TOKENIZER } from '../observe/token-meter.ts';
import type { ServerStatus } from '../sources/fleet.ts';
import { agents } from './agents.ts';
import type { CommandIo } from './command-io.ts';
import { askCommand, inGateway, type RunInGateway } from './in-gateway.ts';
import { namespaces } from './namespaces.ts';
import type { Options } from './options.ts';
import { askRunning } from './running.ts';
import { serverRows } from './server-rows.ts';
import { withGateway } from './session.ts';
import { showStats } from './stats.ts';
import { readStatus } from './status.ts';
import { brief, cell, columns, paint, printResult, table, warn } from './terminal.ts';
import { toolsets } from './toolsets.ts';

const kinds: Readonly<Record<string, readonly Kind[]>> = {
  tools: ['tool'],
  resources: ['resource', 'template'],
  prompts: ['prompt'],
};

export async function list(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const what = args[0] ?? 'tools';
  const names = ['servers', ...Object.keys(kinds), 'toolsets', 'namespaces', 'agents', 'clients'];
  if (!names.includes(what)) {
    throw new GatewayError(
      'usage',
      `"${what}" cannot be listed.${didYouMean(what, names)} Choose from ${names.join(', ')}.`,
    );
  }
  if (options.stats === true) return showStats(what, options, io);
  if (what === 'clients') return listClients(options, io);
  if (what === 'agents' && options.tokens === true) return listAgentCosts(options, io);
  if (what === 'agents') return agents(['list'], options, io);
  if (what === 'namespaces') return namespaces(['list'], options, io);
  if (what === 'toolsets') return toolsets(['list'], options, io);
  if (what === 'servers' && options.tokens === true) return listCosts(options, io);
  if (what === 'servers') return listServers(options, io);
  const request = requestOf(kinds[what]!, options);
  const work = async (run: RunInGateway) => printItems(await run('list', request), options, io);
  return inGateway(options, io, work, { audit: false });
}

function requestOf(wanted: readonly Kind[], { agent, tokens }: Options): ListRequest {
  return { kinds: wanted, ...(agent !== undefined && { agent }), ...(tokens === true && { tokens }) };
}

/** What the tools of each server cost a model if all of them are in its list. The dearest come first. */
async function listCosts(options: Options, io: CommandIo): Promise<number> {
  const work = async (run: RunInGateway) => {
    const { items, missing } = await run('list', requestOf(['tool'], options));
    for (const text of missing) warn(`something is missing: ${text}.`, io);
    const byServer = new Map<string, ListedItem[]>();
    for (const item of items) getOrMake(byServer, item.server, () => []).push(item);
    const servers = [...byServer]
      .map(([server, tools]) => ({ server, tools: tools.length, tokens: sumOf(tools) }))
      .sort((a, b) => b.tokens - a.tokens);
    const rows = servers.map(({ server, tools, tokens }) => [
      paint('bold', cell(server), io),
      counted(tools, 'tool'),
      countedTokensText(tokens),
    ]);
    return printResult(options, servers, withTotal(rows, items), io);
  };
  return inGateway(options, io, work, { audit: false });
}

/** What each agent may use, and what a new client of it sees first. */
async function listAgentCosts(options: Options, io: CommandIo): Promise<number> {
  const work = async (run: RunInGateway) => {
    const { agents: all } = await run('tokens', {});
    const rows = all.map(({ agent, tools, tokens, first }) => [
      paint('bold', cell(agent), io),
      `${counted(tools, 'tool')}, ${countedTokensText(tokens)}`,
      `at first ${counted(first.tools, 'tool')}, ${countedTokensText(first.tokens)}`,
    ]);
    return printResult(options, all, table(rows), io);
  };
  return inGateway(options, io, work, { audit: false });
}

/** The clients of a running gateway, and what they were sent. */
async function listClients(options: Options, io: CommandIo): Promise<number> {
  const report = await askRunning(options, io, async (running) => askCommand(running, 'tokens', {}));
  const clients = report?.clients ?? [];
  const rows = clients.map(({ id, client, agent, now, lists, results }) => [
    paint('dim', cell(id), io),
    brief(client ?? 'a client', 40),
    `agent ${brief(agent, 40)}`,
    `${counted(now.tools, 'tool')}, ${countedTokensText(now.tokens)}`,
    `${counted(lists.sent, 'list')} sent, ${countedTokensText(lists.tokens)}`,
    counted(lists.changes, 'change'),
    `results about ${tokensText(results.tokens)}`,
  ]);
  const none = report === null ? 'No gateway runs with this configuration.' : 'No client is connected.';
  return printResult(options, clients, rows.length === 0 ? none : table(rows), io);
}

function sumOf(items: readonly ListedItem[]): number {
  return items.reduce((sum, { tokens = 0 }) => sum + tokens, 0);
}

function withTotal(rows: readonly (readonly string[])[], items: readonly ListedItem[]): string {
  if (rows.length === 0) return 'There is nothing to list.';
  return `${table(rows)}\nAll together: ${countedTokensText(sumOf(items))} (${TOKENIZER}).`;
}

/** The servers of the gateway that runs with this configuration, if one does. Otherwise they are started for a moment. */
async function listServers(options: Options, io: CommandIo): Promise<number> {
  const running = await askRunning(options, io, readStatus);
  if (running !== null) return printServers(running.servers, options, io);
  return withGateway(options, io, async (gateway) => printServers(gateway.statuses(), options, io), { audit: false });
}

function printServers(statuses: readonly ServerStatus[], options: Options, io: CommandIo): number {
  const json = statuses.map(({ stderr: _, ...status }) => status);
  return printResult(
    options,
    json,
    statuses.length === 0 ? 'No servers are configured.' : serverRows(statuses, io),
    io,
  );
}

function printItems({ items, missing, isAnyAway, hasPolicy }: ItemList, options: Options, io: CommandIo): number {
  const widest = items.reduce((most, { name }) => Math.max(most, cell(name).length), 0);
  const width = Math.max(20, columns(io) - widest - (options.tokens === true ? 20 : 5));
  const rows = items.map(({ name, active, description, tokens }) => [
    `${active ? paint('green', '*', io) : ' '} ${cell(name)}`,
    ...(tokens === undefined ? [] : [countedTokensText(tokens)]),
    paint('dim', brief(description, width), io),
  ]);
  for (const text of missing) warn(`something is missing: ${text}.`, io);
  if (options.agent === undefined && hasPolicy && options.json !== true)
    warn('Agents may see less: this lists what there is, whatever the policy says. Add --agent NAME.', io);
  // A script must not take a failure for an empty list.
  const isFailure = items.length === 0 && isAnyAway;
  if (isFailure && options.json !== true) return 1;
  const text = rows.length === 0 ? 'There is nothing to list.' : table(rows);
  printResult(options, items, options.tokens === true ? withTotal(rows, items) : text, io);
  return isFailure ? 1 : 0;
}
