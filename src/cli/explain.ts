/** `toolgate explain`: why an agent may use something or not. */
import { GatewayError } from '../base/errors.ts';
import type { Category } from '../catalog/category.ts';
import type { Explanation } from '../doors/commands/explain.ts';
import type { CommandIo } from './command-io.ts';
import { inGateway } from './in-gateway.ts';
import type { Options } from './options.ts';
import { cell, paint, plain, printResult, table } from './terminal.ts';

export async function explain(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name] = args;
  if (name === undefined || options.agent === undefined)
    throw new GatewayError('usage', 'Name an item and an agent: toolgate explain NAME --agent NAME.');
  const request = { name, agent: options.agent };
  return inGateway(options, io, async (run) => {
    const explanations = await run('explain', request);
    printResult(options, explanations, explanations.map((one) => toText(one, io)).join('\n\n'), io);
    return explanations.every(({ allowed }) => allowed) ? 0 : 1;
  });
}

function toText(explanation: Explanation, io: CommandIo): string {
  const { agent, category, allowed, active, limits, approvals, findings, unavailable = '' } = explanation;
  const verdict = allowed ? paint('green', 'allowed', io) : paint('red', 'denied', io);
  const rows = findings.map(({ rule, verdict, text }, i) => [
    `  ${i + 1}.`,
    paint('bold', plain(rule), io),
    `${plain(text)}${verdict === 'passes' ? '' : paint('dim', `: ${verdict === 'deny' ? 'denied' : 'allowed'}`, io)}`,
  ]);
  return [
    `${describe(explanation, io)} for ${plain(JSON.stringify(agent))}: ${verdict}`,
    ...(findings.length === 0 ? ['  There is no policy: every agent may use everything.'] : [table(rows)]),
    ...(category === undefined ? [] : [`  Category: ${categoryText(category)}.`]),
    ...(allowed && approvals.length > 0 ? [`  Calls need an approval: ${plain(approvals.join(', '))}.`] : []),
    ...(allowed
      ? Object.entries(limits).map(([owner, set]) => `  Limits of ${plain(owner)}: ${plain(limitText(set))}.`)
      : []),
    ...(unavailable !== '' ? [`  It cannot be used now: ${plain(unavailable)}.`] : []),
    ...(allowed && !active && unavailable === '' ? ['  It is not active: switch it on first.'] : []),
  ].join('\n');
}

function categoryText({ domain, effect, by }: Category): string {
  if (by === 'nothing') return `${domain}/${effect}, because nothing says what it does`;
  return `${domain}/${effect}, by its ${by}`;
}

function describe({ kind, name, server, upstreamName }: Explanation, io: CommandIo): string {
  const own = upstreamName === name ? '' : ` "${cell(upstreamName)}"`;
  return `${paint('bold', cell(name), io)} (${kind}${own} of "${cell(server)}")`;
}

/** `rate 5/s, callsPerDay 100`; times are in milliseconds. */
function limitText(limits: Readonly<Record<string, unknown>>): string {
  const unit = (name: string) => (/timeout|cache/i.test(name) ? ' ms' : /^max/.test(name) ? ' bytes' : '');
  return Object.entries(limits)
    .map(([name, value]) => `${name} ${String(value)}${unit(name)}`)
    .join(', ');
}
