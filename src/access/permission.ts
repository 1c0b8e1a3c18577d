/** What the policy lets one agent use now, and the catalog narrowed to that. */
import { GatewayError } from '../base/errors.ts';
import { getOrMake } from '../base/memo.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { KINDS } from '../catalog/item.ts';
import { narrow, rememberNarrowed } from '../catalog/narrow.ts';
import type { Condition, PolicyConfig } from '../config/policy.ts';
import type { Message } from '../protocol/message.ts';
import { hasArguments, misfit } from './argument-match.ts';
import { isAbout, isTime, isTimed } from './condition.ts';
import { isAllowed, isBarred, isUriAllowed, mayUse, opensSome, type Rules, rulesFor } from './policy.ts';
import { isNormalUri, meaningsOf, spellingsOf } from './uri-spelling.ts';

export interface Permission {
  readonly rules: Rules;
  readonly now: Date;
  /** Equal for agents with the same permission. */
  readonly key: string;
  /** When it may change with the time of day, in milliseconds since 1970. */
  readonly freshUntil: number;
  /** Tools granted for a limited time, as `server.tool`. */
  readonly granted: readonly string[];
  /** Conditions on the arguments of a call. */
  readonly onArguments: readonly Condition[];
}

const MINUTE = 60_000;

/** A tool that was granted to an agent for a limited time. */
export interface Grant {
  /** As `server.tool`. */
  readonly tool: string;
  /** In milliseconds since 1970. */
  readonly until: number;
}

/** Null if there is no policy. */
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
    onArguments: rules.conditions.filter(hasArguments),
  };
}

/** Conditions on the time of day may change at every full minute. */
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

/** Throws if the policy wants other arguments. The message may name the item, because the caller sees it. */
export function requireArguments({ onArguments }: Permission, entry: Entry, message: Message): void {
  for (const condition of onArguments) {
    if (!isAbout(condition, entry) || (entry.kind !== 'tool' && entry.kind !== 'prompt')) continue;
    const problem = misfit(condition, message);
    if (problem === null) continue;
    const text = `The policy does not allow this call of "${entry.name}": ${problem}.`;
    throw new GatewayError('arguments_denied', text, { rule: condition.place });
  }
}

const permitted = rememberNarrowed<PolicyConfig>();

/** The catalog without what the policy forbids. */
export function narrowToPermission(catalog: Catalog, permission: Permission | null): Catalog {
  if (permission === null) return catalog;
  return permitted(catalog, permission.rules.policy, permission.key, () => {
    const forbidden = forbiddenEntries(catalog, permission);
    // A resource that is forbidden by its own name must not be readable through a template, in no spelling.
    const hidden = new Map<number, Set<string>>();
    for (const { kind, sourceId, item } of forbidden)
      if (kind === 'resource')
        for (const one of spellingsOf(item.name)) getOrMake(hidden, sourceId, () => new Set()).add(one);
    const { rules, now } = permission;
    return narrow(catalog, {
      keep: (entry) => !forbidden.has(entry),
      hides: (template) => opensSome(rules, template),
      isClosed(template, uri) {
        const others = hidden.get(template.sourceId);
        if (others !== undefined && (!isNormalUri(uri) || hasAny(others, meaningsOf(uri)))) return true;
        return !isUriAllowed(rules, template, uri, now);
      },
      away: (all, hasItems) =>
        all.filter((source) => (source.isKnown ? hasItems(source) : mayUse(permission.rules, source, permission.now))),
    });
  });
}

function forbiddenEntries({ claims }: Catalog, permission: Permission): Set<Entry> {
  const all = KINDS.flatMap((kind) => [...claims[kind].values()]).filter((entry) => entry !== null);
  const forbidden = new Set(all.filter((entry) => !permits(permission, entry)));
  // A macro needs all of its tools.
  const macros = all.filter((entry) => entry.item.uses !== undefined);
  if (macros.length === 0) return forbidden;
  const allowed = new Set(all.filter((entry) => entry.kind === 'tool' && !forbidden.has(entry)).map(canonicalName));
  for (const macro of macros) if (macro.item.uses?.every((name) => allowed.has(name)) === false) forbidden.add(macro);
  return forbidden;
}

function hasAny(all: ReadonlySet<string>, some: ReadonlySet<string>): boolean {
  for (const one of some) if (all.has(one)) return true;
  return false;
}
