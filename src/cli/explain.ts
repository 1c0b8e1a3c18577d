/** `toolgate explain`: why an agent may use something or not. */
import { confirmationsFor } from '../access/confirm.ts';
import { type EntryDecision, explainName } from '../access/explain.ts';
import { agentLimits } from '../access/policy.ts';
import { GatewayError } from '../base/errors.ts';
import { awayOwners, awayText } from '../catalog/away.ts';
import { categoryOf } from '../catalog/category.ts';
import type { Entry } from '../catalog/entry.ts';
import { type CallLimits, limitsFor } from '../config/call-limits.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { withGateway } from './session.ts';
import { cell, paint, plain, printResult, table } from './terminal.ts';

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
      limits: limitsOn(gateway, agent, one.entry),
      approvals: confirmationsFor(config.security.confirm, agent, one.entry).map(({ place }) => place),
      away: awayText(awayOwners(catalog, catalog.entries[one.entry.kind].has(one.entry.name) ? [] : [one.entry])),
    }));
    const json = explanations.map((one) => toJson(one, agent));
    printResult(options, json, explanations.map((one) => toText(one, agent, io)).join('\n\n'), io);
    return explanations.every(({ allowed }) => allowed) ? 0 : 1;
  });
}

interface Explanation extends EntryDecision {
  readonly active: boolean;
  /** By who or what has them: only those that are set. */
  readonly limits: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The rules that make its calls wait for a person. */
  readonly approvals: readonly string[];
  /** Why it cannot be used now, whatever the policy says; empty if it can. */
  readonly away: string;
}

function toJson({ entry, allowed, active, limits, approvals, findings, away }: Explanation, agent: string) {
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
    limits,
    approvals,
    findings,
    ...(away !== '' && { unavailable: away }),
  };
}

function toText(explanation: Explanation, agent: string, io: CommandIo): string {
  const { entry, allowed, active, limits, approvals, findings, away } = explanation;
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
    ...(allowed
      ? Object.entries(limits).map(([owner, set]) => `  Limits of ${plain(owner)}: ${plain(limitText(set))}.`)
      : []),
    ...(away !== '' ? [`  It cannot be used now: ${plain(away)}.`] : []),
    ...(allowed && !active && away === '' ? ['  It is not active: switch it on first.'] : []),
  ].join('\n');
}

function categoryText(entry: Entry): string {
  const { domain, effect, by } = categoryOf(entry);
  if (by === 'nothing') return `${domain}/${effect}, because nothing says what it does`;
  return `${domain}/${effect}, by its ${by}`;
}

function describe({ kind, name, sourceKey, item }: Entry, io: CommandIo): string {
  const own = item.name === name ? '' : ` "${cell(item.name)}"`;
  return `${paint('bold', cell(name), io)} (${kind}${own} of "${cell(sourceKey)}")`;
}

/** The limits that calls of an item have, apart from those that every server has by default. */
function limitsOn({ config }: Gateway, agent: string, { kind, sourceKey, namespace, item }: Entry) {
  const own = agentLimits(config.policy, agent);
  const server = [...config.servers, ...config.folders.named].find(({ key }) => key === sourceKey);
  const isTool = kind === 'tool';
  const all = {
    'the agent': own?.all,
    'the agent for this tool': isTool
      ? limitsFor(own?.tools ?? [], `${sourceKey}.${item.name}`, `${namespace}.${item.name}`)
      : null,
    'the tool': isTool ? limitsFor(server?.tools ?? [], item.name) : null,
    'the server': server?.limits,
  };
  return Object.fromEntries(
    Object.entries(all)
      .map(([owner, limits]) => [owner, limits == null ? {} : setLimits(limits)] as const)
      .filter(([, limits]) => Object.keys(limits).length > 0),
  );
}

/** `queue` has a default, which says nothing; so has the concurrency of a server. */
function setLimits(limits: CallLimits): Readonly<Record<string, unknown>> {
  const shown = Object.entries(limits).filter(
    ([name, value]) =>
      value !== null &&
      name !== 'queue' &&
      name !== 'tool' &&
      !(name === 'concurrency' && value === DEFAULT_CONCURRENCY),
  );
  return Object.fromEntries(
    shown.map(([name, value]) => [name, name === 'rate' ? (value as { text: string }).text : value]),
  );
}

const DEFAULT_CONCURRENCY = 256;

/** `rate 5/s, callsPerDay 100`; times are in milliseconds. */
function limitText(limits: Readonly<Record<string, unknown>>): string {
  const unit = (name: string) => (/timeout|cache/i.test(name) ? ' ms' : /^max/.test(name) ? ' bytes' : '');
  return Object.entries(limits)
    .map(([name, value]) => `${name} ${String(value)}${unit(name)}`)
    .join(', ');
}
