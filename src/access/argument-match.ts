/**
 * Conditions on the arguments of a call. Servers read arguments in different ways: a name with a dot may be one key or
 * two, of a key that is there twice one may take the first. A condition has to hold for every reading. A rule that demands
 * approval applies if it does for one of them.
 */
import { memo } from '../base/memo.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import type { Condition } from '../config/policy.ts';
import { decodeString, type JsonMember, readElements, readMembers, type Span } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { looksAtArguments } from './circumstances.ts';
import { hasNul, plainPath } from './plain-path.ts';

/** How the value of an argument is compared with patterns. */
interface Matcher {
  /** Whether it matches for certain. */
  fits(text: string, patterns: readonly string[]): boolean;
  /** Whether it may match. */
  mayFit(text: string, patterns: readonly string[]): boolean;
}

const asText: Matcher = {
  fits: (text, patterns) =>
    patterns.some((pattern) => matchesPattern(pattern, text) && (pattern === text || !climbs(text))),
  mayFit: (text, patterns) => climbs(text) || patterns.some((pattern) => matchesPattern(pattern, text)),
};

/** No system takes longer paths, and others would have to wait while they are compared. */
const LONGEST_PATH = 32_768;

const pathPatterns = memo((patterns: readonly string[]) => patterns.map(plainPath));
const smallPatterns = memo((patterns: readonly string[]) => patterns.map((one) => plainPath(one).toLowerCase()));

const asPath: Matcher = {
  fits(text, patterns) {
    if (hasNul(text) || text.length > LONGEST_PATH) return false;
    const path = plainPath(text);
    return pathPatterns(patterns).some((pattern) => matchesPattern(pattern, path));
  },
  // Some file systems do not tell small letters from capitals. A server may shorten a path before it uses it.
  mayFit(text, patterns) {
    if (hasNul(text)) return true;
    const path = plainPath(text).toLowerCase();
    return smallPatterns(patterns).some((pattern) => matchesPattern(pattern, path));
  },
};

/** What is wrong with the first argument that does not meet the condition; null if all do. */
export function misfit(condition: Condition, message: Message): string | null {
  for (const [name, patterns, matcher] of wantedBy(condition)) {
    const found = readings(message, name);
    if (found?.every((one) => valueFits(message.bytes, one, patterns, matcher))) continue;
    return `"${name}" has to be given and match ${patterns.map((one) => `"${one}"`).join(' or ')}`;
  }
  return null;
}

/** Whether the arguments of a call may meet the condition: all of them are given and match. In doubt they do. */
export function touches(condition: Condition, message: Message): boolean {
  return wantedBy(condition).every(([name, patterns, matcher]) => {
    const found = readings(message, name, true);
    return found === null || found.some((one) => mayFit(message.bytes, one, patterns, matcher));
  });
}

/** Whether the condition is about arguments. */
export function hasArguments(condition: Condition): boolean {
  return condition.arguments !== null || condition.paths !== null || looksAtArguments(condition);
}

function wantedBy({ arguments: texts, paths }: Condition): (readonly [string, readonly string[], Matcher])[] {
  return [
    ...Object.entries(texts ?? {}).map(([name, patterns]) => [name, patterns, asText] as const),
    ...Object.entries(paths ?? {}).map(([name, patterns]) => [name, patterns, asPath] as const),
  ];
}

/**
 * All values that the name could mean. Null if that cannot be told, because an object has a name twice, even in different
 * case. If `some` is not set, null also if a reading has no value.
 */
function readings(message: Message, name: string, some = false): Span[] | null {
  const { bytes, argumentsStart: start, argumentsEnd: end } = message;
  if (start < 0) return some ? [] : null;
  const found = isPattern(name)
    ? leavesNamed(bytes, { start, end }, name)
    : valuesOf(bytes, { start, end }, name, some);
  return found !== null && found.length === 0 && !some ? null : found;
}

/** The values along the dots of a name, through lists: by the whole name, and step by step. */
function valuesOf(bytes: Buffer, at: Span, name: string, some: boolean): Span[] | null {
  const elements = elementsOf(bytes, at);
  if (elements !== null)
    return joined(
      elements.map((one) => valuesOf(bytes, one, name, some)),
      some,
    );
  const members = readMembers(bytes, at.start, at.end) ?? [];
  const parts: (Span[] | null)[] = [];
  for (let dot = name.indexOf('.'); ; dot = name.indexOf('.', dot + 1)) {
    const key = dot < 0 ? name : name.slice(0, dot);
    const same = members.filter((one) => one.key.toLowerCase() === key.toLowerCase());
    if (same.length > 1 || (!some && same.length === 1 && same[0]!.key !== key)) return null;
    const [member] = same;
    if (member !== undefined) parts.push(dot < 0 ? [member] : valuesOf(bytes, member, name.slice(dot + 1), some));
    if (dot < 0) break;
  }
  return parts.length === 0 ? (some ? [] : null) : joined(parts, some);
}

function joined(parts: readonly (Span[] | null)[], some: boolean): Span[] | null {
  if (parts.some((part) => part === null)) return null;
  const all = parts.flatMap((part) => part!);
  return all.length === 0 && !some ? null : all;
}

/** All values that are neither objects nor lists, and whose names along the dots match the pattern. */
function leavesNamed(bytes: Buffer, at: Span, pattern: string, name = ''): Span[] {
  const elements = elementsOf(bytes, at);
  if (elements !== null) return elements.flatMap((one) => leavesNamed(bytes, one, pattern, name));
  const members = readMembers(bytes, at.start, at.end);
  if (members === null) return matchesPattern(pattern, name) ? [at] : [];
  const nameOf = ({ key }: JsonMember) => (name === '' ? key : `${name}.${key}`);
  return members.flatMap((member) => leavesNamed(bytes, member, pattern, nameOf(member)));
}

function elementsOf(bytes: Buffer, { start, end }: Span): Span[] | null {
  return bytes[start] === 0x5b ? readElements(bytes, start, end) : null;
}

function textOf(bytes: Buffer, { start, end }: Span): string {
  return bytes[start] === 0x22 ? decodeString(bytes, start, end) : bytes.toString('utf8', start, end);
}

function mayFit(bytes: Buffer, at: Span, patterns: readonly string[], matcher: Matcher): boolean {
  const elements = elementsOf(bytes, at);
  if (elements !== null) return elements.some((element) => mayFit(bytes, element, patterns, matcher));
  return matcher.mayFit(textOf(bytes, at), patterns);
}

/** Every element of a list has to match, and the list must not be empty. */
function valueFits(bytes: Buffer, at: Span, patterns: readonly string[], matcher: Matcher): boolean {
  const elements = elementsOf(bytes, at);
  if (elements === null) return matcher.fits(textOf(bytes, at), patterns);
  return elements.length > 0 && elements.every((element) => valueFits(bytes, element, patterns, matcher));
}

/** Whether a path has a "..", with which it could leave the folder that a `*` was meant for. */
function climbs(text: string): boolean {
  return /(^|[\\/])\.\.([\\/]|$)/.test(text);
}
