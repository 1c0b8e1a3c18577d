/** `toolgate list`. */
import {
  categoryOf,
  didYouMean,
  type Entry,
  type Gateway,
  GatewayError,
  type Kind,
  openLocalDoor,
  type ServerStatus,
} from '../internal.ts';
import { agents } from './agents.ts';
import type { Options } from './commands.ts';
import { namespaces } from './namespaces.ts';
import { withGateway } from './session.ts';
import { showStats } from './stats.ts';
import { brief, columns, jsonText, paint, plain, table } from './terminal.ts';
import { toolsets } from './toolsets.ts';

const kinds: Readonly<Record<string, readonly Kind[]>> = {
  tools: ['tool'],
  resources: ['resource', 'template'],
  prompts: ['prompt'],
};

export async function list(args: readonly string[], options: Options): Promise<number> {
  const what = args[0] ?? 'tools';
  const names = ['servers', ...Object.keys(kinds), 'toolsets', 'namespaces', 'agents'];
  if (!names.includes(what)) {
    throw new GatewayError(
      'usage',
      `"${what}" cannot be listed.${didYouMean(what, names)} Choose from ${names.join(', ')}.`,
    );
  }
  if (options.stats === true) return showStats(what, options);
  if (options.url !== undefined) throw new GatewayError('usage', '--url says where to ask for --stats; add that.');
  if (what === 'agents') return agents(['list'], options);
  if (what === 'namespaces') return namespaces(['list'], options);
  if (what === 'toolsets') return toolsets(['list'], options);
  const show = async (gateway: Gateway) => {
    if (what === 'servers') printServers(gateway, options.json === true);
    else printEntries(gateway, kinds[what]!, options);
    return 0;
  };
  return withGateway(options, show, false);
}

function printServers(gateway: Gateway, json: boolean): void {
  const statuses = gateway.statuses();
  if (json) {
    print(statuses.map(({ stderr: _, ...status }) => status));
    return;
  }
  const rows = statuses.map((status) => [
    paint('bold', status.key),
    status.isolation === undefined ? status.kind : `${status.kind} (${status.isolation})`,
    paint(status.present ? 'green' : 'red', status.state),
    `since ${localTime(status.since)}`,
    brief(`${status.detail}${restartsOf(status)}`, columns() - 55),
  ]);
  if (rows.length === 0) process.stdout.write('No servers are configured.\n');
  const lines = table(rows).split('\n');
  for (const [i, status] of statuses.entries())
    process.stdout.write(`${[lines[i], ...lastWords(status)].join('\n')}\n`);
}

/** What a folder of tools wrote to its standard error before it ended. */
function lastWords({ kind, state, stderr }: ServerStatus): string[] {
  if (kind !== 'folder' || (state !== 'crash_loop' && state !== 'down')) return [];
  const lines = plain(stderr.trimEnd()).split('\n').slice(-5);
  return lines.map((line) => paint('dim', `    ${line}`));
}

/** The time of day, and the day where that is another one. */
function localTime(time: string): string {
  const [day, clock] = new Date(time).toLocaleString('sv-SE').split(' ');
  return day === new Date().toLocaleDateString('sv-SE') ? clock! : `${day} ${clock}`;
}

/** How often it had to be started again, and why the last time. */
function restartsOf({ restarts, history }: ServerStatus): string {
  if (restarts === 0) return '';
  const failure = history.findLast(({ state }) => state === 'down' || state === 'crash_loop');
  return ` (restarts: ${restarts}, the last one: ${failure?.detail ?? 'long ago'})`;
}

function printEntries(gateway: Gateway, wanted: readonly Kind[], { agent, json }: Options): void {
  const door = openLocalDoor(gateway, 'default', agent ?? null);
  const active = door.caller.view();
  const entries = wanted.flatMap((kind) => [...active.catalog.entries[kind].values()]);
  const isActive = (entry: Entry) => active.entries[entry.kind].has(entry.name);
  if (json === true) {
    print(
      entries.map((entry) => ({
        name: entry.name,
        kind: entry.kind,
        server: entry.sourceKey,
        active: isActive(entry),
        ...(entry.kind === 'tool' && { category: categoryOf(entry) }),
        description: entry.item.description,
      })),
    );
    return;
  }
  const width = Math.max(20, columns() - Math.max(0, ...entries.map((entry) => entry.name.length)) - 5);
  const rows = entries.map((entry) => [
    `${isActive(entry) ? paint('green', '*') : ' '} ${brief(entry.name, Number.POSITIVE_INFINITY)}`,
    paint('dim', brief(entry.item.description, width)),
  ]);
  process.stdout.write(rows.length === 0 ? 'There is nothing.\n' : `${table(rows)}\n`);
}

function print(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}
