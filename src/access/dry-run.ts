/** What a policy that is only tried would have decided on a call that it lets pass. */
import type { Catalog } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Message } from '../protocol/message.ts';
import { hasArguments } from './argument-match.ts';
import { lacks } from './condition.ts';
import { explainEntry, explainUri } from './explain.ts';
import { argumentProblem, isGrantedTo, type Permission } from './permission.ts';

/** A decision that was recorded and not enforced. */
export interface TriedDecision {
  readonly decision: 'deny' | 'confirm';
  /** The key in the configuration. */
  readonly rule: string;
  readonly why: string;
}

/** Whether some of the rules are only tried. */
export function triesRules({ rules }: Permission): boolean {
  return rules.isDryRun || rules.tried.length > 0;
}

/**
 * The rule that would have denied the call; null if it is allowed. `uri` is what a template was filled to, as the server
 * knows it; null for other items.
 */
export function triedDenial(
  permission: Permission,
  catalog: Catalog,
  entry: Entry,
  uri: string | null,
  message: Message,
): TriedDecision | null {
  const { rules, circumstances } = permission;
  if (rules.isDryRun) {
    const { allowed, findings } =
      uri === null ? explainEntry(catalog, rules, entry, circumstances) : explainUri(rules, entry, uri, circumstances);
    const last = findings.at(-1);
    if (!allowed && last !== undefined && !isGrantedTo(permission, entry))
      return { decision: 'deny', rule: last.rule, why: last.text };
  }
  for (const condition of rules.isDryRun ? [...rules.conditions, ...rules.tried] : rules.tried) {
    const why =
      lacks(condition, entry, circumstances) ??
      (hasArguments(condition) ? argumentProblem(condition, circumstances, entry, message)?.reason : null);
    if (why != null) return { decision: 'deny', rule: condition.place, why };
  }
  return null;
}
