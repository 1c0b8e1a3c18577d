/**
 * Conditions of a policy: on the time of day, on annotations of tools, and expressions. Those on arguments are in
 * argument-match.ts.
 */
import { getOrMake } from '../base/memo.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { annotationsOf } from '../catalog/item.ts';
import type { Condition, Hints } from '../config/policy.ts';
import { type Circumstances, looksAtArguments, looksAtTime, unmetWithout } from './circumstances.ts';
import { isMeant } from './toolset.ts';

export function isAbout({ about }: Condition, entry: Entry): boolean {
  if (entry.sourceId === BUILT_IN) return false;
  const names = about[entry.kind === 'template' ? 'resource' : entry.kind];
  return names?.some((name) => isMeant(name, entry)) === true;
}

/** Why the condition is not met for the item in these circumstances; null if it is met, apart from arguments. */
export function lacks(condition: Condition, entry: Entry, circumstances: Circumstances): string | null {
  if (!isAbout(condition, entry)) return null;
  const { now } = circumstances;
  if (!isTime(condition, now)) return `is not met: it is ${clockText(condition, now)}`;
  const isLater = (entry.kind === 'tool' || entry.kind === 'prompt') && looksAtArguments(condition);
  const unmet = isLater ? null : lacksExpression(condition, circumstances);
  if (unmet !== null) return unmet;
  if (condition.annotations === null || entry.kind !== 'tool') return null;
  const hints = hintsOf(entry);
  for (const [name, wanted] of Object.entries(condition.annotations)) {
    const is = hints[name as keyof Hints];
    if (is !== wanted) return `is not met: ${name} is ${is}`;
  }
  return null;
}

/** Why the expression does not hold without arguments. */
export function lacksExpression({ when }: Condition, circumstances: Circumstances): string | null {
  const reason = when === null ? null : unmetWithout(when, circumstances);
  return reason === null ? null : expressionText(when!, reason);
}

export function expressionText(when: string, reason: string): string {
  return `is not met: \`${when}\` ${reason}`;
}

/** The annotations of a tool, with the protocol's defaults for missing ones. */
export function hintsOf({ item }: Entry): Hints {
  const { readOnlyHint: isReadOnly, destructiveHint, idempotentHint, openWorldHint } = annotationsOf(item);
  const readOnlyHint = isReadOnly ?? false;
  return {
    readOnlyHint,
    // The protocol defines these two only for tools that change something.
    destructiveHint: !readOnlyHint && (destructiveHint ?? true),
    idempotentHint: readOnlyHint || (idempotentHint ?? false),
    openWorldHint: openWorldHint ?? true,
  };
}

const formats = new Map<string, Intl.DateTimeFormat>();
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The day of the week and the minute of the day in a time zone. */
function localTime(timezone: string, now: Date): { readonly day: number; readonly minute: number } {
  const options = { weekday: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
  const format = getOrMake(
    formats,
    timezone,
    () => new Intl.DateTimeFormat('en-US', { timeZone: timezone, ...options }),
  );
  const parts = Object.fromEntries(format.formatToParts(now).map(({ type, value }) => [type, value]));
  return { day: WEEKDAYS.indexOf(parts.weekday!), minute: Number(parts.hour) * 60 + Number(parts.minute) };
}

function hasHours({ between, days }: Condition): boolean {
  return between !== null || days !== null;
}

/** Whether it depends on the time. */
export function isTimed(condition: Condition): boolean {
  return hasHours(condition) || looksAtTime(condition);
}

export function isTime(condition: Condition, now: Date): boolean {
  if (!hasHours(condition)) return true;
  const { between, days, timezone } = condition;
  const { day, minute } = localTime(timezone, now);
  const [from, to] = between ?? [0, 24 * 60];
  const isOvernight = to < from;
  // The hours after midnight belong to the day before.
  const began = isOvernight && minute < to ? (day + 6) % 7 : day;
  if (days !== null && !days.includes(began)) return false;
  return isOvernight ? minute >= from || minute < to : minute >= from && minute < to;
}

function clockText({ timezone }: Condition, now: Date): string {
  const { day, minute } = localTime(timezone, now);
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${WEEKDAYS[day]} ${pad(Math.floor(minute / 60))}:${pad(minute % 60)} in ${timezone}`;
}
