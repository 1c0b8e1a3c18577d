/** Conditions of a policy: on the time of day, on annotations of tools, on arguments of calls. */
import { getOrMake } from '../base/memo.ts';
import { matchesPattern } from '../base/pattern.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { annotationsOf } from '../catalog/item.ts';
import type { Condition, Hints } from '../config/policy.ts';
import { decodeString, readElements, readMembers, type Span } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { isMeant } from './toolset.ts';

export function isAbout({ about }: Condition, entry: Entry): boolean {
  if (entry.sourceId === BUILT_IN) return false;
  const names = about[entry.kind === 'template' ? 'resource' : entry.kind];
  return names?.some((name) => isMeant(name, entry)) === true;
}

/** Why the condition is not met for the item at this time; null if it is met, apart from arguments. */
export function lacks(condition: Condition, entry: Entry, now: Date): string | null {
  if (!isAbout(condition, entry)) return null;
  if (!isTime(condition, now)) return `is not met: it is ${clockText(condition, now)}`;
  if (condition.annotations === null || entry.kind !== 'tool') return null;
  const hints = hintsOf(entry);
  for (const [name, wanted] of Object.entries(condition.annotations)) {
    const is = hints[name as keyof Hints];
    if (is !== wanted) return `is not met: ${name} is ${is}`;
  }
  return null;
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

export function isTimed({ between, days }: Condition): boolean {
  return between !== null || days !== null;
}

export function isTime(condition: Condition, now: Date): boolean {
  if (!isTimed(condition)) return true;
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

/** What is wrong with the first argument that does not meet the condition; null if all do. */
export function misfit(condition: Condition, { bytes, argumentsStart, argumentsEnd }: Message): string | null {
  for (const [path, patterns] of Object.entries(condition.arguments ?? {})) {
    const span = argumentsStart < 0 ? null : findArgument(bytes, argumentsStart, argumentsEnd, path);
    if (span === null || !valueFits(bytes, span, patterns))
      return `"${path}" has to be given and match ${patterns.map((one) => `"${one}"`).join(' or ')}`;
  }
  return null;
}

/**
 * Finds an argument by its whole name, or else step by step along the dots. A name that is given twice, even in
 * different case, is not found, because the server could use the other one.
 */
function findArgument(bytes: Buffer, start: number, end: number, path: string): Span | null {
  const members = readMembers(bytes, start, end);
  const sole = (name: string) => {
    const folded = name.toLowerCase();
    const found = members?.filter(({ key }) => key.toLowerCase() === folded) ?? [];
    return found.length === 1 && found[0]!.key === name ? found[0]! : null;
  };
  const exact = sole(path);
  const dot = path.indexOf('.');
  if (exact !== null || dot < 0) return exact;
  const outer = sole(path.slice(0, dot));
  return outer === null ? null : findArgument(bytes, outer.start, outer.end, path.slice(dot + 1));
}

/**
 * Whether the arguments of a call may meet the condition: all of them are given and match. Names that are given twice
 * and paths with ".." could mean anything, so they match.
 */
export function touches(condition: Condition, { bytes, argumentsStart, argumentsEnd }: Message): boolean {
  return Object.entries(condition.arguments ?? {}).every(([path, patterns]) => {
    if (argumentsStart < 0) return false;
    const found = findAll(bytes, argumentsStart, argumentsEnd, path);
    return found.length > 1 || (found[0] !== undefined && mayFit(bytes, found[0], patterns));
  });
}

/** Every argument that the name could mean, in upper or lower case. */
function findAll(bytes: Buffer, start: number, end: number, path: string): Span[] {
  const members = readMembers(bytes, start, end) ?? [];
  const named = (name: string) => members.filter(({ key }) => key.toLowerCase() === name.toLowerCase());
  const dot = path.indexOf('.');
  if (dot < 0) return named(path);
  const inner = named(path.slice(0, dot)).flatMap((outer) =>
    findAll(bytes, outer.start, outer.end, path.slice(dot + 1)),
  );
  return [...named(path), ...inner];
}

function mayFit(bytes: Buffer, { start, end }: Span, patterns: readonly string[]): boolean {
  const elements = bytes[start] === 0x5b ? readElements(bytes, start, end) : null;
  if (elements !== null) return elements.some((element) => mayFit(bytes, element, patterns));
  const text = bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('utf8', start, end);
  return climbs(text) || patterns.some((pattern) => matchesPattern(pattern, text));
}

/** Every element of a list has to match, and the list must not be empty. */
function valueFits(bytes: Buffer, { start, end }: Span, patterns: readonly string[]): boolean {
  const elements = bytes[start] === 0x5b ? readElements(bytes, start, end) : null;
  if (elements !== null) return elements.length > 0 && elements.every((element) => valueFits(bytes, element, patterns));
  const text = bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('utf8', start, end);
  return patterns.some((pattern) => matchesPattern(pattern, text) && (pattern === text || !climbs(text)));
}

/** Whether a path has a "..", with which it could leave the folder that a `*` was meant for. */
function climbs(text: string): boolean {
  return /(^|[\\/])\.\.([\\/]|$)/.test(text);
}
