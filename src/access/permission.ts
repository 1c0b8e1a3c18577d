/** What the policy lets one agent use now, and the catalog as it looks through that. */

import { GatewayError } from '../base/errors.ts';
import type { Catalog, Claims } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import type { Condition, PolicyConfig } from '../config/policy.ts';
import type { Message } from '../protocol/message.ts';
import { isAbout, isTime, isTimed, misfit } from './condition.ts';
import { deniesName, isAllowed, isBarred, type Rules, rulesFor } from './policy.ts';
import { canonicalName } from './toolset.ts';

export interface Permission {
  readonly rules: Rules;
  readonly now: Date;
  /** Equal for agents who may use the same. */
  readonly key: string;
  /** When the time of day may have changed it, in milliseconds since 1970. */
  readonly freshUntil: number;
  /** What it may use for a while all the same, as `server.tool`. */
  readonly granted: readonly string[];
  /** Those that look at the arguments of a call. */
  readonly onArguments: readonly Condition[];
}

const MINUTE = 60_000;

/** A tool that an agent was given for a while. */
export interface Grant {
  /** As `server.tool`. */
  readonly tool: string;
  /** In milliseconds since 1970. */
  readonly until: number;
}

/** Null where there is no policy. */
export function permissionAt(
  policy: PolicyConfig | null,
  agent: string,
  now: number,
  grants: readonly Grant[] = [],
): Permission | null {
  if (policy === null) return null;
  const current = grants.filter(({ until }) => until > now);
  const granted = current.map(({ tool }) => tool).sort();
  const rules = rulesFor(policy, agent);
  const date = new Date(now);
  const timed = rules.conditions.filter(isTimed);
  return {
    rules,
    now: date,
    granted,
    key: JSON.stringify([rules.lineage.map(({ name }) => name), timed.map((one) => isTime(one, date)), granted]),
    freshUntil: Math.min(
      timed.length === 0 ? Number.POSITIVE_INFINITY : nextMinute(now),
      ...current.map(({ until }) => until),
    ),
    onArguments: rules.conditions.filter((one) => one.arguments !== null),
  };
}

/** Conditions on the time of day change with it. */
export function nextMinute(now: number): number {
  return (Math.floor(now / MINUTE) + 1) * MINUTE;
}

export function hasTimes({ conditions, agents }: PolicyConfig): boolean {
  return [...conditions, ...agents.flatMap((agent) => agent.conditions)].some(isTimed);
}

export function permits(permission: Permission | null, entry: Entry): boolean {
  if (permission === null) return true;
  const { rules, granted, now } = permission;
  return isAllowed(rules, entry, now) || (granted.length > 0 && isGranted(granted, entry) && !isBarred(rules, entry));
}

function isGranted(granted: readonly string[], entry: Entry): boolean {
  return entry.kind === 'tool' && granted.includes(canonicalName(entry));
}

/** Throws where the policy wants other arguments. The tool itself may be known: the caller sees it. */
export function requireArguments({ onArguments }: Permission, entry: Entry, message: Message): void {
  for (const condition of onArguments) {
    if (!isAbout(condition, entry) || (entry.kind !== 'tool' && entry.kind !== 'prompt')) continue;
    const wrong = misfit(condition, message);
    if (wrong === null) continue;
    const text = `The policy does not allow this call of "${entry.name}": ${wrong}.`;
    throw new GatewayError('arguments_denied', text);
  }
}

// Callers with the same permission look at the same catalog, so that what hangs on it is made once for all of them.
const made = new WeakMap<Catalog, WeakMap<PolicyConfig, Map<string, Catalog>>>();

/** The catalog without what the policy forbids: as if that were not there at all. */
export function permitted(catalog: Catalog, permission: Permission | null): Catalog {
  if (permission === null) return catalog;
  const { key, rules } = permission;
  const byPolicy = made.get(catalog) ?? new WeakMap<PolicyConfig, Map<string, Catalog>>();
  const known = byPolicy.get(rules.policy) ?? new Map<string, Catalog>();
  const narrowed = known.get(key) ?? narrow(catalog, permission);
  made.set(catalog, byPolicy.set(rules.policy, known.set(key, narrowed)));
  return narrowed;
}

function narrow(catalog: Catalog, permission: Permission): Catalog {
  const entries = {} as Record<Kind, ReadonlyMap<string, Entry>>;
  const claims = {} as Record<Kind, ReadonlyMap<string, Entry | null>>;
  const sources = new Set<string>();
  for (const kind of KINDS) {
    const left = [...catalog.claims[kind]].filter(([, entry]) => entry === null || permits(permission, entry));
    claims[kind] = new Map(kind === 'tool' ? whole(left) : left);
    entries[kind] = new Map([...catalog.entries[kind]].filter(([name]) => claims[kind].has(name)));
    for (const entry of claims[kind].values()) if (entry !== null) sources.add(entry.sourceKey).add(entry.namespace);
  }
  sources.delete('');
  const hidden = hiddenResources(catalog.claims, claims);
  return Object.freeze({
    ...catalog,
    entries: Object.freeze(entries),
    claims: Object.freeze(claims),
    sources,
    isClosed: (template: Entry, uri: string) =>
      hidden.has(`${template.sourceId} ${uri}`) || deniesName(permission.rules, template, uri),
  });
}

/** Without tools that are made of others, where one of those is missing. */
function whole(tools: readonly (readonly [string, Entry | null])[]): readonly (readonly [string, Entry | null])[] {
  if (!tools.some(([, entry]) => entry?.item.uses !== undefined)) return tools;
  const names = new Set(tools.map(([, entry]) => (entry === null ? '' : canonicalName(entry))));
  return tools.filter(([, entry]) => entry?.item.uses?.every((name) => names.has(name)) !== false);
}

/** What is hidden by its own name is not to be had through a template either. */
function hiddenResources(all: Claims, left: Claims): Set<string> {
  const hidden = new Set<string>();
  for (const [name, entry] of all.resource)
    if (entry !== null && !left.resource.has(name)) hidden.add(`${entry.sourceId} ${entry.item.name}`);
  return hidden;
}
