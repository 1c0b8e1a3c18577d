/** What may be used only under conditions: at some times, by tools of some kind, with some arguments. */

import { matchesPattern } from '../base/pattern.ts';
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import type { Condition, Hints } from '../config/policy.ts';
import { decodeString, findMember, readElements, readMembers, type Span } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { isMeant } from './toolset.ts';

export function isAbout({ about }: Condition, entry: Entry): boolean {
  if (entry.sourceId === BUILT_IN) return false;
  const names = about[entry.kind === 'template' ? 'resource' : entry.kind];
  return names?.some((name) => isMeant(name, entry)) === true;
}

/** What the item lacks at this time to be used, in words; null where it lacks nothing but, maybe, arguments. */
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

// Definitions do not change, and parsing them for every agent would be felt.
const known = new WeakMap<Entry['item'], Hints>();

/** What a tool says of itself; what it does not say is as the protocol has it. */
export function hintsOf({ item }: Entry): Hints {
  const before = known.get(item);
  if (before !== undefined) return before;
  const member = findMember(item.bytes, 'annotations');
  const said = member === null ? null : readMembers(item.bytes, member.start, member.end);
  const flag = (name: keyof Hints, otherwise: boolean) => {
    const one = said?.find(({ key }) => key === name);
    const text = one === undefined ? '' : item.bytes.toString('latin1', one.start, one.end);
    return text === 'true' || (text !== 'false' && otherwise);
  };
  const readOnlyHint = flag('readOnlyHint', false);
  const hints = {
    readOnlyHint,
    // These two mean something only for tools that change things.
    destructiveHint: !readOnlyHint && flag('destructiveHint', true),
    idempotentHint: readOnlyHint || flag('idempotentHint', false),
    openWorldHint: flag('openWorldHint', true),
  };
  known.set(item, hints);
  return hints;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The day and the minute of the day there. */
function localTime(timezone: string, now: Date): { readonly day: number; readonly minute: number } {
  let format = formats.get(timezone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    formats.set(timezone, format);
  }
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
  // The hours after midnight belong to the day on which the night began.
  const began = isOvernight && minute < to ? (day + 6) % 7 : day;
  if (days !== null && !days.includes(began)) return false;
  return isOvernight ? minute >= from || minute < to : minute >= from && minute < to;
}

function clockText({ timezone }: Condition, now: Date): string {
  const { day, minute } = localTime(timezone, now);
  const pad = (n: number) => String(n).padStart(2, '0');
  return `${WEEKDAYS[day]} ${pad(Math.floor(minute / 60))}:${pad(minute % 60)} in ${timezone}`;
}

/** The first argument of the call that is not as the condition wants it, in words; null where all are. */
export function misfit(condition: Condition, { bytes, argumentsStart, argumentsEnd }: Message): string | null {
  for (const [path, patterns] of Object.entries(condition.arguments ?? {})) {
    const span = argumentsStart < 0 ? null : findArgument(bytes, argumentsStart, argumentsEnd, path);
    if (span === null || !valueFits(bytes, span, patterns))
      return `"${path}" has to be given and match ${patterns.map((one) => `"${one}"`).join(' or ')}`;
  }
  return null;
}

/**
 * By its whole name, or else step by step along the dots. A name that stands there twice, be it in another case, is none:
 * the server could take the other one.
 */
function findArgument(bytes: Buffer, start: number, end: number, path: string): Span | null {
  const members = readMembers(bytes, start, end);
  const sole = (name: string) => {
    const folded = name.toLowerCase();
    const found = members?.filter(({ key }) => key.toLowerCase() === folded) ?? [];
    return found.length === 1 && found[0]!.key === name ? found[0]! : null;
  };
  const whole = sole(path);
  const dot = path.indexOf('.');
  if (whole !== null || dot < 0) return whole;
  const outer = sole(path.slice(0, dot));
  return outer === null ? null : findArgument(bytes, outer.start, outer.end, path.slice(dot + 1));
}

/**
 * Whether the arguments of the call may be those that the condition speaks of: all of them are there and match. Names that
 * stand there twice, and paths that lead up, may mean anything and so match.
 */
export function touches(condition: Condition, { bytes, argumentsStart, argumentsEnd }: Message): boolean {
  return Object.entries(condition.arguments ?? {}).every(([path, patterns]) => {
    if (argumentsStart < 0) return false;
    const found = findAll(bytes, argumentsStart, argumentsEnd, path);
    return found.length > 1 || (found[0] !== undefined && mayFit(bytes, found[0], patterns));
  });
}

/** Whatever could be meant by the name, in any case of its letters. */
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

/** All of a list have to fit, and there has to be one. */
function valueFits(bytes: Buffer, { start, end }: Span, patterns: readonly string[]): boolean {
  const elements = bytes[start] === 0x5b ? readElements(bytes, start, end) : null;
  if (elements !== null) return elements.length > 0 && elements.every((element) => valueFits(bytes, element, patterns));
  const text = bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('utf8', start, end);
  return patterns.some((pattern) => matchesPattern(pattern, text) && (pattern === text || !climbs(text)));
}

/** Whether a path leads up and out again: `*` would let it pass. */
function climbs(text: string): boolean {
  return /(^|[\\/])\.\.([\\/]|$)/.test(text);
}
