/** What `toolgate explain` shows of a gateway: why an agent may use something or not. */
import { confirmationsFor } from '../../access/confirm.ts';
import { type EntryDecision, explainName } from '../../access/explain.ts';
import { agentLimits } from '../../access/policy.ts';
import { awayOwners, awayText } from '../../catalog/away.ts';
import { type Category, categoryOf } from '../../catalog/category.ts';
import type { Entry } from '../../catalog/entry.ts';
import type { Kind } from '../../catalog/item.ts';
import { type CallLimits, limitsFor } from '../../config/call-limits.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { openLocalDoor } from '../local.ts';

export interface ExplainRequest {
  /** An item, by any of its names. */
  readonly name: string;
  readonly agent: string;
}

export interface Explanation {
  readonly name: string;
  readonly kind: Kind;
  readonly server: string;
  readonly upstreamName: string;
  /** Of a tool. */
  readonly category?: Category;
  readonly agent: string;
  readonly allowed: boolean;
  readonly active: boolean;
  /** By who or what has them: only those that are set. */
  readonly limits: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** The rules that make its calls wait for a person. */
  readonly approvals: readonly string[];
  readonly findings: EntryDecision['findings'];
  /** Why it cannot be used now, whatever the policy says. */
  readonly unavailable?: string;
}

export function explainItem(gateway: Gateway, { name, agent }: ExplainRequest): Explanation[] {
  const { catalog, config } = gateway;
  const door = openLocalDoor(gateway, 'default', agent);
  const view = door.caller.view();
  door.close();
  return explainName(catalog, config.policy, agent, name, new Date()).map(({ entry, allowed, findings }) => {
    const away = awayText(awayOwners(catalog, catalog.entries[entry.kind].has(entry.name) ? [] : [entry]));
    return {
      name: entry.name,
      kind: entry.kind,
      server: entry.sourceKey,
      upstreamName: entry.item.name,
      ...(entry.kind === 'tool' && { category: categoryOf(entry) }),
      agent,
      allowed,
      active: view.entries[entry.kind].has(entry.name),
      limits: limitsOn(gateway, agent, entry),
      approvals: confirmationsFor(config.security.confirm, agent, entry).map(({ place }) => place),
      findings,
      ...(away !== '' && { unavailable: away }),
    };
  });
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
