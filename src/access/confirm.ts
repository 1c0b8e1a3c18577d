/** Which calls need a person's approval. In doubt, a rule applies. */
import { memo } from '../base/memo.ts';
import { matchesPattern } from '../base/pattern.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Approvers, ConfirmRule } from '../config/security.ts';
import type { Message } from '../protocol/message.ts';
import { touches } from './argument-match.ts';
import { type Circumstances, circumstancesAt, decideWith, type Subject } from './circumstances.ts';
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

/** The strictest rules that demand approval for a call: the one that is enforced, and the one that is only tried. */
export interface Confirmation {
  readonly rule: ConfirmRule | null;
  readonly tried: ConfirmRule | null;
}

const NO_CONFIRMATION: Confirmation = { rule: null, tried: null };

/** The rules that demand approval for the call. */
export function confirmationFor(
  rules: readonly ConfirmRule[],
  subject: Subject,
  entry: Entry,
  message: Message,
  now = Date.now(),
): Confirmation {
  const about = rulesAbout(rules)(entry);
  if (about.length === 0) return NO_CONFIRMATION;
  const at = circumstancesAt(subject, now);
  const found = (dryRun: boolean) =>
    about.find((rule) => rule.condition.dryRun === dryRun && applies(rule, at, entry, message)) ?? null;
  return { rule: found(false), tried: found(true) };
}

/** Whether a rule demands approval for the call. An expression that cannot be decided counts as true. */
function applies({ agents, condition }: ConfirmRule, at: Circumstances, entry: Entry, message: Message): boolean {
  if (!concerns(agents, at.subject.agent)) return false;
  const { when } = condition;
  if (when === null) return lacks(condition, entry, at) === null && touches(condition, message);
  if (lacks({ ...condition, when: null }, entry, at) !== null || !touches(condition, message)) return false;
  return decideWith(when, at, message).holds !== false;
}

/** The rules that may demand approval, for some arguments and at some time of day. */
export function confirmationsFor(rules: readonly ConfirmRule[], agent: string, entry: Entry): readonly ConfirmRule[] {
  return rulesAbout(rules)(entry).filter(({ agents }) => concerns(agents, agent));
}

/** Whether a rule for these agents applies to this one. Null means all agents. */
export function concerns(agents: readonly string[] | null, agent: string): boolean {
  return agents === null || agents.some((one) => matchesPattern(one, agent));
}
