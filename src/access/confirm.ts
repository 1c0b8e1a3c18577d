/** Which calls need a person's approval. In doubt, a rule applies. */
import { memo } from '../base/memo.ts';
import { matchesPattern } from '../base/pattern.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Approvers, ConfirmRule } from '../config/security.ts';
import type { Message } from '../protocol/message.ts';
import { touches } from './argument-match.ts';
import { isAbout, lacks } from './condition.ts';

/** The rules about an item, the strictest first. Computed once: most items have none. */
const rulesAbout = memo((rules: readonly ConfirmRule[]) =>
  memo((entry: Entry) => rules.filter(({ condition }) => isAbout(condition, entry)).sort(byStrictness)),
);

/** More people who have to approve, and then fewer who may, are stricter. Otherwise the order stays. */
function byStrictness({ approvers: a }: ConfirmRule, { approvers: b }: ConfirmRule): number {
  return b.require - a.require || approverCount(a) - approverCount(b);
}

function approverCount({ client, operator, people }: Approvers): number {
  return people.length + Number(operator) + Number(client !== false);
}

/** The strictest rule that demands approval for the call; null if none does. */
export function confirmationFor(
  rules: readonly ConfirmRule[],
  agent: string,
  entry: Entry,
  message: Message,
): ConfirmRule | null {
  const about = rulesAbout(rules)(entry);
  if (about.length === 0) return null;
  const now = new Date();
  const applies = ({ agents, condition }: ConfirmRule) =>
    concerns(agents, agent) && lacks(condition, entry, now) === null && touches(condition, message);
  return about.find(applies) ?? null;
}

/** The rules that may demand approval, for some arguments and at some time of day. */
export function confirmationsFor(rules: readonly ConfirmRule[], agent: string, entry: Entry): readonly ConfirmRule[] {
  return rulesAbout(rules)(entry).filter(({ agents }) => concerns(agents, agent));
}

/** Whether a rule for these agents applies to this one. Null means all agents. */
export function concerns(agents: readonly string[] | null, agent: string): boolean {
  return agents === null || agents.some((one) => matchesPattern(one, agent));
}
