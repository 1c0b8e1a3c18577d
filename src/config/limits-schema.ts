/** How much calls may take, as users write it: the same keys for a server, a tool and an agent. */

import * as z from 'zod';
import { isCategory } from '../catalog/category.ts';
import { count, duration, size, strictMap } from './fields.ts';

const RATE = /^(\d{1,9})\/(s|m|h)$/;
const PERIODS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** `"30/m"`: so many calls in so long. */
export interface RateLimit {
  readonly count: number;
  /** Milliseconds. */
  readonly period: number;
  /** As it was written. */
  readonly text: string;
}

function rate() {
  const error = 'expected a rate such as "5/s", "30/m" or "1000/h"';
  return z
    .string({ error })
    .regex(RATE, { error })
    .transform((text, context): RateLimit => {
      const [, amount, unit] = RATE.exec(text) ?? [];
      if (Number(amount) < 1) context.addIssue({ code: 'custom', message: 'must allow at least one call' });
      return { count: Number(amount), period: PERIODS[unit ?? ''] ?? 1, text };
    });
}

const MOST_CALLS = 1_000_000;

/** How many calls may wait where nothing else is said. */
export const DEFAULT_QUEUE = 256;

const countShape = {
  rate: rate()
    .optional()
    .describe('How many calls in a second, minute or hour: `"5/s"`, `"30/m"`, `"1000/h"`. Beyond it they are refused.'),
  calls_per_day: count(1, 1_000_000_000)
    .optional()
    .describe('How many calls from midnight to midnight (UTC). Beyond it they are refused.'),
  max_arguments: size().optional().describe('Size of the arguments of one call. Beyond it the call is refused.'),
  max_result: size()
    .optional()
    .describe('Size of one result. Beyond it the result is cut, and the rest can be read as a resource.'),
};

/** Beside the time-outs of a server. */
export const serverLimitShape = {
  concurrency: count(1, MOST_CALLS)
    .optional()
    .describe(
      'How many calls the server works on at one time, of all callers together. Default: 256, or `folders.concurrency` beside `folder`.',
    ),
  queue: count(0, MOST_CALLS)
    .prefault(DEFAULT_QUEUE)
    .describe('How many more calls wait for their turn, each for at most its `timeout`. Beyond it they are refused.'),
  ...countShape,
};

const limitShape = {
  timeout: duration(1).optional().describe('How long one call may go without a sign of life.'),
  total_timeout: duration(1).optional().describe('How long one call may take in all.'),
  concurrency: count(1, MOST_CALLS).optional().describe('How many calls at one time.'),
  queue: count(0, MOST_CALLS)
    .optional()
    .describe(`How many more calls wait for their turn, where \`concurrency\` is set. Default: ${DEFAULT_QUEUE}.`),
  ...countShape,
};

export const limitsSchema = strictMap(limitShape).meta({
  id: 'Limits',
  description: 'How much calls may take.',
});

export const toolLimitsSchema = strictMap({
  ...limitShape,
  cache: duration(1)
    .optional()
    .describe(
      'Answers equal calls with the same result for this long. Only for tools that change nothing and answer all callers alike.',
    ),
}).meta({ id: 'ToolLimits', description: 'How much calls of a tool may take.' });

export type LimitsFile = z.output<typeof limitsSchema>;
export type ToolLimitsFile = z.output<typeof toolLimitsSchema>;

/** Limits by the names of tools, or patterns over them. */
export function limitsByTool<Schema extends z.ZodType>(schema: Schema) {
  // One that nobody looks up would limit nothing.
  const tool = z
    .string()
    .refine((name) => !isCategory(name), { error: 'limits go by names and patterns, not categories' });
  return z.record(tool, schema, {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'expected a map from names or patterns of tools to limits' : undefined,
  });
}
