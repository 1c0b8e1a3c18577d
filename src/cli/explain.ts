/** `toolgate explain`: why an agent may use something or not. */
import { confirmationsFor } from '../access/confirm.ts';
import { type EntryDecision, explainName } from '../access/explain.ts';
import { GatewayError } from '../base/errors.ts';
import { categoryOf } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { withGateway } from './session.ts';
import { paint, plain, printResult, table } from './terminal.ts';

export async function explain(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name] = args;
  if (name === undefined || options.agent === undefined)
    throw new GatewayError('usage', 'Name an item and an agent: toolgate explain NAME --agent NAME.');
  const { agent } = options;
  return withGateway(options, io, async (gateway) => {
    const { catalog, config } = gateway;
    const view = openLocalDoor(gateway, 'default', agent).caller.view();
    const explanations = explainName(catalog, config.policy, agent, name, new Date()).map((one) => ({
      ...one,
      active: view.entries[one.entry.kind].has(one.entry.name),
      approvals: confirmationsFor(config.security.confirm, agent, one.entry).map(({ place }) => place),
    }));
    const json = explanations.map((one) => toJson(one, agent));
    printResult(options, json, explanations.map((one) => toText(one, agent, io)).join('\n\n'), io);
    return explanations.every(({ allowed }) => allowed) ? 0 : 1;
  });
}

interface Explanation extends EntryDecision {
  readonly active: boolean;
  /** The rules that make its calls wait for a person. */
  readonly approvals: readonly string[];
}

function toJson({ entry, allowed, active, approvals, findings }: Explanation, agent: string) {
  const { name, kind, sourceKey, item } = entry;
  const category = kind === 'tool' ? { category: categoryOf(entry) } : {};
  return {
    name,
    kind,
    server: sourceKey,
    upstreamName: item.name,
    ...category,
    agent,
    allowed,
    active,
    approvals,
    findings,
  };
}

function toText({ entry, allowed, active, approvals, findings }: Explanation, agent: string, io: CommandIo): string {
  const verdict = allowed ? paint('green', 'allowed', io) : paint('red', 'denied', io);
  const rows = findings.map(({ rule, verdict, text }, i) => [
    `  ${i + 1}.`,
    paint('bold', plain(rule), io),
    `${plain(text)}${verdict === 'passes' ? '' : paint('dim', `: ${verdict === 'deny' ? 'denied' : 'allowed'}`, io)}`,
  ]);
  return [
    `${describe(entry, io)} for ${plain(JSON.stringify(agent))}: ${verdict}`,
    ...(findings.length === 0 ? ['  There is no policy: every agent may use everything.'] : [table(rows)]),
    ...(entry.kind === 'tool' ? [`  Category: ${categoryText(entry)}.`] : []),
    ...(allowed && approvals.length > 0 ? [`  Calls need an approval: ${plain(approvals.join(', '))}.`] : []),
    ...(allowed && !active ? ['  It is not active: switch it on first.'] : []),
  ].join('\n');
}

function categoryText(entry: Entry): string {
  const { domain, effect, by } = categoryOf(entry);
  if (by === 'nothing') return `${domain}/${effect}, because nothing says what it does`;
  return `${domain}/${effect}, by its ${by}`;
}

function describe({ kind, name, sourceKey, item }: Entry, io: CommandIo): string {
  const own = item.name === name ? '' : ` "${item.name}"`;
  return `${paint('bold', plain(name), io)} ${plain(`(${kind}${own} of "${sourceKey}")`)}`;
}
