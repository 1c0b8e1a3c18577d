/** `toolgate explain`: why an agent may use something, or may not. */
import {
  categoryOf,
  confirmationsFor,
  type Entry,
  type EntryDecision,
  explainName,
  GatewayError,
  openLocalDoor,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { withGateway } from './session.ts';
import { jsonText, paint, plain, table } from './terminal.ts';

export async function explain(args: readonly string[], options: Options): Promise<number> {
  const [name] = args;
  if (name === undefined || options.agent === undefined)
    throw new GatewayError('usage', 'Explain what, and for whom? toolgate explain NAME --agent NAME.');
  const { agent } = options;
  return withGateway(options, async (gateway) => {
    const { catalog, config } = gateway;
    const view = openLocalDoor(gateway, 'default', agent).caller.view();
    const explanations = explainName(catalog, config.policy, agent, name, new Date()).map((one) => ({
      ...one,
      active: view.entries[one.entry.kind].has(one.entry.name),
      approvals: confirmationsFor(config.security.confirm, agent, one.entry).map(({ place }) => place),
    }));
    if (options.json === true)
      process.stdout.write(
        `${jsonText(
          explanations.map((one) => asJson(one, agent)),
          2,
        )}\n`,
      );
    else process.stdout.write(`${explanations.map((one) => show(one, agent)).join('\n\n')}\n`);
    return explanations.every(({ allowed }) => allowed) ? 0 : 1;
  });
}

interface Explanation extends EntryDecision {
  readonly active: boolean;
  /** The rules by which calls wait for a person. */
  readonly approvals: readonly string[];
}

function asJson({ entry, allowed, active, approvals, findings }: Explanation, agent: string) {
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

function show({ entry, allowed, active, approvals, findings }: Explanation, agent: string): string {
  const verdict = allowed ? paint('green', 'allowed') : paint('red', 'denied');
  const rows = findings.map(({ rule, verdict, text }, i) => [
    `  ${i + 1}.`,
    paint('bold', plain(rule)),
    `${plain(text)}${verdict === 'passes' ? '' : paint('dim', `: ${verdict === 'deny' ? 'denied' : 'allowed'}`)}`,
  ]);
  return [
    `${describe(entry)} for ${plain(JSON.stringify(agent))}: ${verdict}`,
    ...(findings.length === 0 ? ['  There is no policy: everybody may use everything.'] : [table(rows)]),
    ...(entry.kind === 'tool' ? [`  Its category: ${categoryText(entry)}.`] : []),
    ...(allowed && approvals.length > 0 ? [`  A person approves calls of it: ${plain(approvals.join(', '))}.`] : []),
    ...(allowed && !active ? ['  It is not active until it is switched on.'] : []),
  ].join('\n');
}

function categoryText(entry: Entry): string {
  const { domain, effect, by } = categoryOf(entry);
  if (by === 'nothing') return `${domain}/${effect}, because nothing says what it does`;
  return `${domain}/${effect}, by its ${by}`;
}

function describe({ kind, name, sourceKey, item }: Entry): string {
  const own = item.name === name ? '' : ` "${item.name}"`;
  return `${paint('bold', plain(name))} ${plain(`(${kind}${own} of "${sourceKey}")`)}`;
}
