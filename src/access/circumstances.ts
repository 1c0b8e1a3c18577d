/**
 * What conditions look at besides the item: whom the policy decides about, the time, and the arguments of a call, for
 * expressions. An expression that cannot be decided does not hold.
 */
import { messageOf } from '../base/errors.ts';
import { getOrMake, memo } from '../base/memo.ts';
import { isObject } from '../base/objects.ts';
import type { Config } from '../config/config.ts';
import { type Expression, expressionOf } from '../config/expression.ts';
import type { ValueSize } from '../config/expression-cost.ts';
import type { Condition } from '../config/policy.ts';
import type { Task } from '../config/task.ts';
import { decodeString, readElements, readMembers, type Span } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';

/** What a JWT says about its holder. */
export type TokenClaims = Readonly<Record<string, unknown>>;

/** Whom a policy decides about. */
export interface Subject {
  readonly agent: string;
  /** Null if its credential has none. */
  readonly claims: TokenClaims | null;
  /** Null if it works on none. */
  readonly task: Task | null;
}

export interface Circumstances {
  readonly subject: Subject;
  readonly now: Date;
}

const MINUTE = 60_000;

/** Expressions see full minutes, so that lists and calls agree until the next one. */
export function circumstancesAt(subject: Subject, now: number): Circumstances {
  return { subject, now: new Date(Math.floor(now / MINUTE) * MINUTE) };
}

/** An agent without claims and without a task. */
export function plainSubject(agent: string): Subject {
  return { agent, claims: null, task: null };
}

/** Values that an expression looks at, and how much they are. */
interface Values extends ValueSize {
  readonly map: ReadonlyMap<string, unknown>;
}

const NO_VALUES: Values = { map: new Map(), values: 0, bytes: 0 };
const NO_TASK: Task = { service: '', type: '', description: '', profile: '' };

/** Whether the expression needs the arguments of a call. */
export function looksAtArguments({ when }: Condition): boolean {
  return when !== null && expressionOf(when).uses.has('args');
}

export function looksAtTime({ when }: Condition): boolean {
  return when !== null && expressionOf(when).uses.has('now');
}

/** Whether any rule of the configuration looks at claims. */
export function looksAtClaims({ policy, security }: Pick<Config, 'policy' | 'security'>): boolean {
  const own = policy === null ? [] : [...policy.conditions, ...policy.agents.flatMap(({ conditions }) => conditions)];
  const all = [...own, ...security.confirm.map(({ condition }) => condition)];
  return all.some(({ when }) => when !== null && expressionOf(when).uses.has('claims'));
}

const decided = memo((_: Circumstances) => new Map<string, string | null>());

/** Why the expression does not hold, without arguments; null if it does. Decided once for the same circumstances. */
export function unmetWithout(when: string, circumstances: Circumstances): string | null {
  return getOrMake(
    decided(circumstances),
    when,
    () => unmet(expressionOf(when), circumstances, () => NO_VALUES).reason,
  );
}

/** Whether an expression holds, does not, or could not be decided, and why. */
interface ExpressionResult {
  readonly holds: boolean | null;
  readonly reason: string | null;
}

/** The same with the arguments of a call. */
export function decideWith(when: string, circumstances: Circumstances, message: Message): ExpressionResult {
  const expression = expressionOf(when);
  return unmet(expression, circumstances, () => readValues(expression, message));
}

function unmet(expression: Expression, { subject, now }: Circumstances, read: () => Values): ExpressionResult {
  const { uses } = expression;
  try {
    const claims = uses.has('claims') && subject.claims !== null ? claimValues(subject.claims) : NO_VALUES;
    const args = uses.has('args') ? read() : NO_VALUES;
    if (expression.takesLong(args, claims)) throw new Error('the arguments or claims are too large for it');
    const { agent, task } = subject;
    const holds = expression.decide({ agent, claims: claims.map, task: task ?? NO_TASK, now, args: args.map });
    return { holds, reason: holds ? null : 'is false' };
  } catch (error) {
    return { holds: null, reason: `cannot be decided: ${messageOf(error)}` };
  }
}

const claimValues = memo((claims: TokenClaims): Values => {
  let count = 0;
  const convert = (value: unknown): unknown => {
    count++;
    if (Array.isArray(value)) return value.map(convert);
    return isObject(value) ? new Map(Object.entries(value).map(([key, one]) => [key, convert(one)])) : value;
  };
  const map = convert(claims) as ReadonlyMap<string, unknown>;
  return { map, values: count, bytes: JSON.stringify(claims).length };
});

const MOST_LEVELS = 32;
/** More are not read, because reading them alone would hold up other calls. */
const MOST_VALUES = 20_000;
/** Bytes. What is nested is gone through once for each level. */
const MOST_SCANNED = 16 * 1024 * 1024;

/**
 * The arguments of a call. Servers read them in different ways, so there must be only one way to read what the expression
 * is about: no key twice, none that differs from a name in the expression only by case, and none with a dot that may mean
 * a nested one. Throws otherwise.
 */
function readValues({ names }: Expression, message: Message): Values {
  const { bytes, argumentsStart: start, argumentsEnd: end } = message;
  if (start < 0) return NO_VALUES;
  const lower = namesIgnoringCase(names);
  let count = 0;
  let scanned = 0;
  const read = (at: Span, level: number): unknown => {
    if (++count > MOST_VALUES) throw new Error(`the arguments have more than ${MOST_VALUES} values`);
    if (level > MOST_LEVELS) throw new Error(`the arguments are nested deeper than ${MOST_LEVELS} levels`);
    const first = bytes[at.start];
    scanned += at.end - at.start;
    if (scanned > MOST_SCANNED) throw new Error('the arguments are too large');
    if (first === 0x22) return decodeString(bytes, at.start, at.end);
    if (first === 0x5b) return readElements(bytes, at.start, at.end, MOST_VALUES)!.map((one) => read(one, level + 1));
    if (first !== 0x7b) return readScalar(bytes.toString('latin1', at.start, at.end));
    const map = new Map<string, unknown>();
    for (const member of readMembers(bytes, at.start, at.end, MOST_LEVELS, MOST_VALUES)!) {
      const { key } = member;
      if (map.has(key)) throw new Error(`the argument ${JSON.stringify(key)} is given twice`);
      const [head = ''] = key.toLowerCase().split('.', 1);
      if (lower.has(head) && !names.has(key))
        throw new Error(`the argument ${JSON.stringify(key)} may mean another one that the expression names`);
      map.set(key, read(member, level + 1));
    }
    return map;
  };
  const args = read({ start, end }, 0);
  if (!(args instanceof Map)) throw new Error('the arguments are not an object');
  return { map: args, values: count, bytes: end - start };
}

const namesIgnoringCase = memo(
  (names: ReadonlySet<string>): ReadonlySet<string> => new Set([...names].map((name) => name.toLowerCase())),
);

/** A number that is not exact in JavaScript becomes a large integer, if it is one. */
function readScalar(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'number' || Number.isSafeInteger(value) || !/^-?\d{1,19}$/.test(text)) return value;
  return BigInt(text);
}
