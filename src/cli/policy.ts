/** `toolgate policy test`: holds the policy against a table of expected decisions. No server is started. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { decideRequest, type RequestDecision } from '../access/decide-request.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { withMacros } from '../calls/macros/macros.ts';
import { buildCatalog, type Catalog, type Contribution } from '../catalog/catalog.ts';
import { type Kind, kindWords, type Offer, readItems } from '../catalog/item.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { loadPolicyTests, type PolicyTest } from '../config/policy-tests.ts';
import { requireProfile } from '../plans/plan.ts';
import { toBytes } from '../protocol/json.ts';
import { openOfferStore } from '../store/offers.ts';
import { onlyName, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { paint, plain, printResult } from './terminal.ts';

export const policy = withVerbs('policy', { test });

/** A row of the table, and what the policy decided. */
interface TestedRow {
  readonly row: PolicyTest;
  readonly decided: RequestDecision | { readonly decision: 'unknown'; readonly rule: null; readonly why: string };
  readonly ok: boolean;
}

async function test(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const path = onlyName(args, 'toolgate policy test FILE');
  const config = await loadConfig(loadOptions(options, io));
  const rows = await loadPolicyTests(path, io.cwd());
  const servers = knownServers(config);
  const named = rows.map((row) => ({ row, server: serverOf(row.item, servers) }));
  const catalog = catalogWith(config, servers, named);
  const results = named.map(({ row, server }) => decide(catalog, config, row, server));
  const failed = results.filter(({ ok }) => !ok).length;
  const lines = [
    ...results.map((result, i) => toText(result, i, io)),
    failed === 0
      ? `${counted(rows.length, 'decision')} as expected`
      : `${failed} of ${counted(rows.length, 'decision')} differ`,
  ];
  const json = { failed, tests: results.map(toJson) };
  printResult(options, json, lines.join('\n'), io);
  return failed === 0 ? 0 : 1;
}

interface TestedServer {
  readonly key: string;
  readonly namespace: string;
  /** What it offered last; null if that is not known. */
  readonly offer: Offer | null;
}

function knownServers(config: Config): TestedServer[] {
  const offers = openOfferStore(config.dataDir);
  return [
    ...config.servers.map(({ key, namespace, launchHash }) => ({
      key,
      namespace,
      offer: offers.read(launchHash)?.offer ?? null,
    })),
    ...config.folders.named.map(({ key, namespace }) => ({ key, namespace, offer: null })),
    ...foldersIn(config.dataDir).map((key) => ({ key, namespace: key, offer: null })),
  ];
}

/** The namespaces of folders of tools in the data folder. */
function foldersIn(dataDir: string): string[] {
  const folder = join(dataDir, 'tools');
  if (!existsSync(folder)) return [];
  const found = readdirSync(folder, { withFileTypes: true });
  return found.filter((one) => one.isDirectory() && !one.name.startsWith('.')).map(({ name }) => name);
}

/** A name as `server.name`, taken apart. */
interface OwnName {
  readonly server: TestedServer;
  readonly name: string;
}

/** Null if the name does not begin with that of a server. */
function serverOf(item: string, servers: readonly TestedServer[]): OwnName | null {
  const starts = servers
    .flatMap((server) => [server.key, server.namespace].map((start) => ({ server, start: `${start}.` })))
    .filter(({ start }) => start !== '.' && item.startsWith(start))
    .sort((a, b) => b.start.length - a.start.length);
  const [found] = starts;
  return found === undefined ? null : { server: found.server, name: item.slice(found.start.length) };
}

interface NamedRow {
  readonly row: PolicyTest;
  readonly server: OwnName | null;
}

/** What the servers offered last. The items of a server of which nothing is known are those that the table names. */
function catalogWith(config: Config, servers: readonly TestedServer[], rows: readonly NamedRow[]): Catalog {
  const contributions = servers.map((server, i): Contribution => {
    const { key, namespace, offer } = server;
    const own = rows.filter((row) => row.server?.server === server);
    return { id: i + 1, key, namespace, present: true, offer: offer ?? offerOf(own) };
  });
  return buildCatalog(1, withMacros(config.macros, contributions), [], config);
}

function offerOf(rows: readonly NamedRow[]): Offer {
  const pages = (['tool', 'resource', 'prompt'] as const).map((kind: Kind) => {
    const { list, identity } = kindWords[kind];
    const names = new Set(rows.filter(({ row }) => row.kind === kind).map(({ server }) => server!.name));
    const definitions = [...names].map((name) => ({ name, inputSchema: { type: 'object' }, [identity]: name }));
    return readItems(kind, toBytes({ [list]: definitions }));
  });
  return { items: pages.flatMap(({ items }) => items), problems: [], instructions: '' };
}

function decide(catalog: Catalog, config: Config, row: PolicyTest, own: OwnName | null): TestedRow {
  const { agent, claims, task, kind, item } = row;
  try {
    if (task !== null) requireProfile(task, config.tasks.rules());
    const decided = decideRequest(catalog, config, {
      subject: { agent, claims, task },
      now: row.time ?? Date.now(),
      kind,
      name: kind === 'resource' ? uriOf(catalog, item, own) : item,
      arguments: row.arguments,
    });
    const ok = decided.decision === row.expect && (row.rule === null || row.rule === decided.rule);
    return { row, decided, ok };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { row, decided: { decision: 'unknown', rule: null, why: messageOf(error) }, ok: false };
  }
}

/** The exposed URI of a server's own one. */
function uriOf({ claims }: Catalog, item: string, own: OwnName | null): string {
  if (own === null) return item;
  const { server, name } = own;
  for (const entry of claims.resource.values())
    if (entry !== null && entry.sourceKey === server.key && entry.item.name === name) return entry.name;
  return server.namespace === '' ? name : `${server.namespace}_${name}`;
}

function toText({ row, decided, ok }: TestedRow, i: number, io: CommandIo): string {
  const mark = ok ? paint('green', '✓', io) : paint('red', '✗', io);
  const by = (rule: string | null) => (rule === null ? '' : ` by ${rule}`);
  const name = row.name === '' ? `${row.agent}: ${row.item}` : `${row.name} (${row.agent}: ${row.item})`;
  const is = `${decided.decision}${by(decided.rule)}${decided.why === null ? '' : `: ${decided.why}`}`;
  const wanted = ok ? is : `expected ${row.expect}${by(row.rule)}, but it is ${is}`;
  return `${mark} ${i + 1}. ${plain(name)}: ${plain(wanted)}`;
}

function toJson({ row, decided, ok }: TestedRow) {
  const { name, agent, kind, item, expect, rule } = row;
  return {
    name,
    agent,
    [kind]: item,
    expect,
    rule,
    ...{ decision: decided.decision, by: decided.rule, why: decided.why },
    ok,
  };
}
