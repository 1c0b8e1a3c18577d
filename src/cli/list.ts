/** `toolgate list`: servers, and what they offer. */
import { GatewayError } from '../base/errors.ts';
import { didYouMean } from '../base/text.ts';
import { categoryOf } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Kind } from '../catalog/item.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { ServerStatus } from '../sources/fleet.ts';
import { agents } from './agents.ts';
import type { CommandIo } from './command-io.ts';
import { namespaces } from './namespaces.ts';
import type { Options } from './options.ts';
import { withGateway } from './session.ts';
import { showStats } from './stats.ts';
import { brief, columns, paint, plain, printResult, table } from './terminal.ts';
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
  const show = async (gateway: Gateway) =>
    what === 'servers' ? printServers(gateway, options, io) : printEntries(gateway, kinds[what]!, options, io);
  return withGateway(options, io, show, { audit: false });
}

function printServers(gateway: Gateway, options: Options, io: CommandIo): number {
  const statuses = gateway.statuses();
  const rows = statuses.map((status) => [
    paint('bold', status.key, io),
    status.isolation === undefined ? status.kind : `${status.kind} (${status.isolation})`,
    paint(status.present ? 'green' : 'red', status.state, io),
    `since ${localTime(status.since)}`,
    brief(`${status.detail}${restartsOf(status)}`, columns(io) - 55),
  ]);
  const lines = table(rows).split('\n');
  const text = statuses.flatMap((status, i) => [lines[i], ...lastErrors(status, io)]).join('\n');
  const json = statuses.map(({ stderr: _, ...status }) => status);
  return printResult(options, json, statuses.length === 0 ? 'No servers are configured.' : text, io);
}

/** The last lines that a folder of tools wrote to its standard error before it ended. */
function lastErrors({ kind, state, stderr }: ServerStatus, io: CommandIo): string[] {
  if (kind !== 'folder' || (state !== 'crash_loop' && state !== 'down')) return [];
  const lines = plain(stderr.trimEnd()).split('\n').slice(-5);
  return lines.map((line) => paint('dim', `    ${line}`, io));
}

/** The time of day; with the date if that is not today. */
function localTime(time: string): string {
  const [day, clock] = new Date(time).toLocaleString('sv-SE').split(' ');
  return day === new Date().toLocaleDateString('sv-SE') ? clock! : `${day} ${clock}`;
}

/** How often it was restarted, and the last reason. */
function restartsOf({ restarts, history }: ServerStatus): string {
  if (restarts === 0) return '';
  const failure = history.findLast(({ state }) => state === 'down' || state === 'crash_loop');
  return ` (restarts: ${restarts}, last reason: ${failure?.detail ?? 'no longer known'})`;
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
  const width = Math.max(20, columns(io) - Math.max(0, ...entries.map((entry) => entry.name.length)) - 5);
  const rows = entries.map((entry) => [
    `${isActive(entry) ? paint('green', '*', io) : ' '} ${brief(entry.name, Number.POSITIVE_INFINITY)}`,
    paint('dim', brief(entry.item.description, width), io),
  ]);
  return printResult(options, entries.map(toJson), rows.length === 0 ? 'There is nothing to list.' : table(rows), io);
}
