/**
 * The kinds of value that the schema consists of. If a message begins with "expected", issues.ts adds ", found …".
 */
import * as z from 'zod';
import { quotedList } from '../base/text.ts';
import { categoryProblem } from '../catalog/category.ts';
import { DURATION, MAX_DURATION, SIZE, toBytes, toMilliseconds } from './units.ts';

/** A string; `expected` is the message if the value is something else. */
export function text(expected = 'expected a string') {
  // The kernel ends arguments and variables at a NUL, so no program could receive it.
  return z
    .string({ error: expected })
    .refine((value) => !value.includes('\0'), { error: 'contains a NUL character. Remove it' });
}

export function flag() {
  return z.boolean({ error: 'expected true or false' });
}

/** One of a few words. */
export function choice<const Words extends readonly string[]>(words: Words) {
  return z.enum(words, { error: `expected ${quotedList(words)}` });
}

export function textList() {
  return z.array(text(), { error: 'expected a list of strings' });
}

/**
 * Names of tools, patterns over them, or categories. An unknown category is refused, because it would match nothing,
 * and a rule that denies it would deny nothing.
 */
export function toolList() {
  const tool = text().superRefine((name, context) => {
    const problem = categoryProblem(name);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });
  return z.array(tool, { error: 'expected a list of strings' });
}

/** Lists by the name of a server, or a pattern over servers. */
export function byServer<List extends z.ZodType>(list: List, items = 'names') {
  return z.record(z.string(), list, { error: `expected a map from servers to lists of ${items}` });
}

/** A map of strings; a key that does not match `name` gets the message `wrongName`. */
export function textMap(name: RegExp, wrongName: string) {
  return mapOf('strings', z.string().regex(name, { error: wrongName }), text());
}

/** A map whose keys the user chooses; `what` names its values in messages. */
export function mapOf<Key extends z.ZodString, Value extends z.ZodType>(what: string, key: Key, value: Value) {
  return z.record(key, value, {
    error: (issue) => (issue.code === 'invalid_type' ? `expected a map of ${what}` : undefined),
  });
}

/** A map with these keys and no others. */
export function strictMap<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: (issue) => (issue.code === 'invalid_type' ? 'expected a map' : undefined) });
}

/** A map with these keys and no others, as the gateway works with it: in camel case, with null for what is absent. */
export function section<Shape extends z.core.$ZodLooseShape>(shape: Shape, meta?: z.core.GlobalMeta) {
  const map = strictMap(shape);
  // The metadata goes in front of the transform, because its place decides the order of keys in the JSON Schema.
  return (meta === undefined ? map : map.meta(meta)).transform(camelCased(shape));
}

/** What a section of this shape becomes. */
export type Section<Shape extends z.core.$ZodLooseShape> = CamelCased<z.output<z.ZodObject<Shape, z.core.$strict>>>;

type CamelCased<Written> = {
  readonly [Key in keyof Written as CamelCase<Key & string>]-?:
    | Exclude<Written[Key], undefined>
    | (undefined extends Written[Key] ? null : never);
};

type CamelCase<Key extends string> = Key extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Key;

/** The keys of a shape as they are called in its section. */
export function camelKeys<Shape extends z.core.$ZodLooseShape>(shape: Shape): (keyof Section<Shape>)[] {
  return Object.keys(shape).map(camelCase) as (keyof Section<Shape>)[];
}

export function camelCased<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const keys = Object.keys(shape);
  return (written: z.output<z.ZodObject<Shape, z.core.$strict>>) => {
    const values = written as Readonly<Record<string, unknown>>;
    return Object.fromEntries(keys.map((key) => [camelCase(key), values[key] ?? null])) as Section<Shape>;
  };
}

function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A whole number. */
export function count(min: number, max: number) {
  const error = `expected a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** Milliseconds. */
export function duration(min: number) {
  const error = 'expected a duration such as "250ms", "30s", "10m" or "24h", or a number of milliseconds';
  return z
    .union([z.string().regex(DURATION, { error }), z.number({ error }).min(0, { error })], { error })
    .transform((value, context) => {
      const result = Math.round(toMilliseconds(value));
      if (result < min) context.addIssue({ code: 'custom', message: 'must be longer than 0' });
      if (result > MAX_DURATION) context.addIssue({ code: 'custom', message: 'must be at most "596h"' });
      return result;
    });
}

/** Bytes. */
export function size() {
  const error = 'expected a size such as "512KiB", "4MiB" or "1MB", or a number of bytes';
  return z
    .union([z.string().regex(SIZE, { error }), z.number({ error }).min(0, { error })], { error })
    .transform((value, context) => {
      const result = Math.round(toBytes(value));
      if (result < 1) context.addIssue({ code: 'custom', message: 'must be more than 0' });
      if (!Number.isSafeInteger(result)) context.addIssue({ code: 'custom', message: 'is too large' });
      return result;
    });
}
