/** `toolgate list`: servers, and what they offer. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { awayText } from '../catalog/away.ts';
import { categoryOf } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { loadConfig } from '../config/load.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ServerStatus } from '../sources/fleet.ts';
import { agents } from './agents.ts';
import type { CommandIo } from './command-io.ts';
import { namespaces } from './namespaces.ts';
import { loadOptions, type Options } from './options.ts';
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
  const names = ['servers', ...Object.keys(kinds), 'toolsets', 'namespaces', 'agents'];
  if (!names.includes(what)) {
    throw new GatewayError(
      'usage',
      `"${what}" cannot be listed.${didYouMean(what, names)} Choose from ${names.join(', ')}.`,
    );
  }
  if (options.stats === true) return showStats(what, options, io);
  if (options.url !== undefined) throw new GatewayError('usage', '--url is for --stats: add --stats, or leave it out.');
  if (what === 'agents') return agents(['list'], options, io);
  if (what === 'namespaces') return namespaces(['list'], options, io);
  if (what === 'toolsets') return toolsets(['list'], options, io);
  if (what === 'servers') return listServers(options, io);
  return withGateway(options, io, async (gateway) => printEntries(gateway, kinds[what]!, options, io), {
    audit: false,
  });
}

/** The servers of the gateway that runs with this configuration, if one does. Otherwise they are started for a moment. */
async function listServers(options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  const running = await askRunning(config, io, readStatus);
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

function printEntries(gateway: Gateway, wanted: readonly Kind[], options: Options, io: CommandIo): number {
  const view = openLocalDoor(gateway, 'default', options.agent ?? null).caller.view();
  const entries = wanted.flatMap((kind) => [...view.catalog.entries[kind].values()]);
  const isActive = (entry: Entry) => view.entries[entry.kind].has(entry.name);
  const toJson = (entry: Entry) => ({
    name: entry.name,
    kind: entry.kind,
    server: entry.sourceKey,
    active: isActive(entry),
    ...(entry.kind === 'tool' && { category: categoryOf(entry) }),
    description: entry.item.description,
  });
  const widest = entries.reduce((most, entry) => Math.max(most, cell(entry.name).length), 0);
  const width = Math.max(20, columns(io) - widest - 5);
  const rows = entries.map((entry) => [
    `${isActive(entry) ? paint('green', '*', io) : ' '} ${cell(entry.name)}`,
    paint('dim', brief(entry.item.description, width), io),
  ]);
  for (const source of view.catalog.away)
    if (!source.isListed) warn(`something is missing: ${awayText([source])}.`, io);
  if (options.agent === undefined && gateway.config.policy !== null && options.json !== true)
    warn('Agents may see less: this lists what there is, whatever the policy says. Add --agent NAME.', io);
  // A script must not take a failure for an empty list.
  const isFailure = entries.length === 0 && view.catalog.away.length > 0;
  if (isFailure && options.json !== true) return 1;
  printResult(options, entries.map(toJson), rows.length === 0 ? 'There is nothing to list.' : table(rows), io);
  return isFailure ? 1 : 0;
}
