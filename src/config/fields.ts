/**
 * The kinds of value that the schema is made of. A message that begins with "expected" gets ", found …" added
 * where it is reported (issues.ts).
 */

import * as z from 'zod';
import { categoryProblem } from '../catalog/category.ts';
import { DURATION, MAX_DURATION, SIZE, toBytes, toMilliseconds } from './units.ts';

/** A string; `expected` says so in other words. */
export function text(expected = 'expected a string') {
  // No program can be given a NUL: the kernel ends arguments and variables there.
  return z
    .string({ error: expected })
    .refine((value) => !value.includes('\0'), { error: 'holds a NUL character. Remove it' });
}

export function flag() {
  return z.boolean({ error: 'expected true or false' });
}

export function textList() {
  return z.array(text(), { error: 'expected a list of strings' });
}

/** Names of tools, patterns over them, or categories. A category that is not there would match nothing, and let things pass. */
export function toolList() {
  const tool = text().superRefine((name, context) => {
    const problem = categoryProblem(name);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });
  return z.array(tool, { error: 'expected a list of strings' });
}

/** A map of strings; its keys must have the form `name`, or else they get the message `wrongName`. */
export function textMap(name: RegExp, wrongName: string) {
  return z.record(z.string().regex(name, { error: wrongName }), text(), {
    error: (issue) => (issue.code === 'invalid_type' ? 'expected a map of strings' : undefined),
  });
}

/** A map with these keys and no others. */
export function strictMap<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  return z.strictObject(shape, { error: (issue) => (issue.code === 'invalid_type' ? 'expected a map' : undefined) });
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
      if (!Number.isSafeInteger(result)) context.addIssue({ code: 'custom', message: 'is more than there can be' });
      return result;
    });
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
