/** Which calls have to be approved by a person. Where it is not certain whether a rule fits, it does. */

import { matchesPattern } from '../base/pattern.ts';
import type { Entry } from '../catalog/entry.ts';
import type { ConfirmRule } from '../config/security.ts';
import type { Message } from '../protocol/message.ts';
import { isAbout, lacks, touches } from './condition.ts';

// Most tools need no approval, and that is found out once for each of them.
const found = new WeakMap<readonly ConfirmRule[], WeakMap<Entry, readonly ConfirmRule[]>>();

/** The first rule that wants it; null where none does. */
export function confirmationFor(
  rules: readonly ConfirmRule[],
  agent: string,
  entry: Entry,
  message: Message,
): ConfirmRule | null {
  const about = rulesAbout(rules, entry);
  if (about.length === 0) return null;
  const now = new Date();
  const fits = ({ agents, condition }: ConfirmRule) =>
    concerns(agents, agent) && lacks(condition, entry, now) === null && touches(condition, message);
  return about.find(fits) ?? null;
}

/** Those that may want it, whatever the arguments and the time of day. */
export function confirmationsFor(rules: readonly ConfirmRule[], agent: string, entry: Entry): readonly ConfirmRule[] {
  return rulesAbout(rules, entry).filter(({ agents }) => concerns(agents, agent));
}

/** Whether a rule for these agents is about this one. */
export function concerns(agents: readonly string[] | null, agent: string): boolean {
  return agents === null || agents.some((one) => matchesPattern(one, agent));
}

function rulesAbout(rules: readonly ConfirmRule[], entry: Entry): readonly ConfirmRule[] {
  const known = found.get(rules) ?? new WeakMap<Entry, readonly ConfirmRule[]>();
  found.set(rules, known);
  const before = known.get(entry);
  if (before !== undefined) return before;
  const about = rules.filter(({ condition }) => isAbout(condition, entry));
  known.set(entry, about);
  return about;
}
