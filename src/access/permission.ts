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
import {
  type Circumstances,
  circumstancesAt,
  decideWith,
  looksAtArguments,
  type Subject,
  unmetWithout,
} from './circumstances.ts';
import { expressionText, isAbout, isTime, isTimed } from './condition.ts';
import { isAllowed, isBarred, isUriAllowed, mayUse, opensSome, type Rules, rulesFor } from './policy.ts';
import { isNormalUri, meaningsOf, spellingsOf } from './uri-spelling.ts';

export interface Permission {
  readonly rules: Rules;
  readonly circumstances: Circumstances;
  /** Equal for subjects to whom the same is open. What arguments are allowed may still differ. */
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
  subject: Subject,
  now: number,
  grants: readonly Grant[] = [],
): Permission | null {
  if (policy === null) return null;
  const current = grants.filter(({ until }) => until > now);
  const granted = current.map(({ tool }) => tool).sort();
  const rules = rulesFor(policy, subject.agent);
  const circumstances = circumstancesAt(subject, now);
  const timed = rules.conditions.filter(isTimed);
  const states = [
    ...timed.map((one) => isTime(one, circumstances.now)),
    ...rules.conditions.flatMap(({ when }) => (when === null ? [] : unmetWithout(when, circumstances) === null)),
  ];
  return {
    rules,
    circumstances,
    granted,
    key: JSON.stringify([rules.lineage.map(({ name }) => name), states, granted]),
    freshUntil: Math.min(
      timed.length === 0 ? Number.POSITIVE_INFINITY : nextMinute(now),
      ...current.map(({ until }) => until),
    ),
    onArguments: rules.isDryRun ? [] : rules.conditions.filter(hasArguments),
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
  if (permission === null || permission.rules.isDryRun) return true;
  return isAllowed(permission.rules, entry, permission.circumstances) || isGrantedTo(permission, entry);
}

/** Whether it was granted for a limited time, and is not denied by name. */
export function isGrantedTo({ rules, granted }: Permission, entry: Entry): boolean {
  if (granted.length === 0 || entry.kind !== 'tool') return false;
  return granted.includes(canonicalName(entry)) && !isBarred(rules, entry);
}

/** Throws if the policy wants other arguments. The message may name the item, because the caller sees it. */
export function requireArguments({ onArguments, circumstances }: Permission, entry: Entry, message: Message): void {
  for (const condition of onArguments) {
    const problem = argumentProblem(condition, circumstances, entry, message);
    if (problem === null) continue;
    const text = `The policy does not allow this call of "${entry.name}": ${problem.text}.`;
    throw new GatewayError('arguments_denied', text, { rule: condition.place, why: problem.reason });
  }
}

/** What the arguments of a call lack. */
export interface ArgumentProblem {
  /** For the agent. It does not have the expression, which may be about others too. */
  readonly text: string;
  /** For the operator. */
  readonly reason: string;
}

/** Null if the arguments meet the condition, or if it is not about them. */
export function argumentProblem(
  condition: Condition,
  circumstances: Circumstances,
  entry: Entry,
  message: Message,
): ArgumentProblem | null {
  if (!isAbout(condition, entry) || (entry.kind !== 'tool' && entry.kind !== 'prompt')) return null;
  const text = misfit(condition, message);
  if (text !== null) return { text, reason: text };
  const { when } = condition;
  if (when === null || !looksAtArguments(condition)) return null;
  const { reason } = decideWith(when, circumstances, message);
  return reason === null
    ? null
    : { text: 'a condition on its arguments is not met', reason: expressionText(when, reason) };
}

const permitted = rememberNarrowed<PolicyConfig>();

/** The catalog without what the policy forbids. */
export function narrowToPermission(catalog: Catalog, permission: Permission | null): Catalog {
  if (permission === null || permission.rules.isDryRun) return catalog;
  return permitted(catalog, permission.rules.policy, permission.key, () => {
    const forbidden = forbiddenEntries(catalog, permission);
    // A resource that is forbidden by its own name must not be readable through a template, in no spelling.
    const hidden = new Map<number, Set<string>>();
    for (const { kind, sourceId, item } of forbidden)
      if (kind === 'resource')
        for (const one of spellingsOf(item.name)) getOrMake(hidden, sourceId, () => new Set()).add(one);
    const { rules, circumstances } = permission;
    return narrow(catalog, {
      keep: (entry) => !forbidden.has(entry),
      hides: (template) => opensSome(rules, template),
      isClosed(template, uri) {
        const others = hidden.get(template.sourceId);
        if (others !== undefined && (!isNormalUri(uri) || hasAny(others, meaningsOf(uri)))) return true;
        return !isUriAllowed(rules, template, uri, circumstances);
      },
      away: (all, hasItems) =>
        all.filter((source) => (source.isKnown ? hasItems(source) : mayUse(rules, source, circumstances))),
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
