/** How much calls may take: the same keys for a server, a tool and an agent. */
import * as z from 'zod';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { isCategory } from '../catalog/category.ts';
import { count, duration, section, size } from './fields.ts';

/** Null means no limit. */
export interface CallLimits {
  /** Milliseconds without a sign of life, and in all. */
  readonly timeout: number | null;
  readonly totalTimeout: number | null;
  /** Calls at one time, and how many more wait for their turn. */
  readonly concurrency: number | null;
  readonly queue: number;
  readonly rate: RateLimit | null;
  readonly callsPerDay: number | null;
  /** Bytes. */
  readonly maxArguments: number | null;
  readonly maxResult: number | null;
}

export interface ToolLimits extends CallLimits {
  /** A name, or a pattern over names. */
  readonly tool: string;
  /** Milliseconds that a cached result is valid; null if results are not cached. */
  readonly cache: number | null;
}

/** The limits of one agent, for all of its calls and for calls of some tools. */
export interface AgentLimits {
  readonly all: CallLimits | null;
  /** By `server.tool`. */
  readonly tools: readonly ToolLimits[];
}

/** A number of calls in a period, such as `"30/m"`. */
export interface RateLimit {
  readonly count: number;
  /** Milliseconds. */
  readonly period: number;
  /** As it was written. */
  readonly text: string;
}

const RATE = /^(\d{1,9})\/(s|m|h)$/;
const PERIODS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };
const MAX_CALLS = 1_000_000;

/** How many calls may wait if the configuration does not say. */
const DEFAULT_QUEUE = 256;

export const UNLIMITED: CallLimits = {
  timeout: null,
  totalTimeout: null,
  concurrency: null,
  queue: DEFAULT_QUEUE,
  rate: null,
  callsPerDay: null,
  maxArguments: null,
  maxResult: null,
};

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

const countShape = {
  rate: rate()
    .optional()
    .describe('How many calls in a second, minute or hour: `"5/s"`, `"30/m"`, `"1000/h"`. Further calls are refused.'),
  calls_per_day: count(1, 1_000_000_000)
    .optional()
    .describe('How many calls from midnight to midnight (UTC). Further calls are refused.'),
  max_arguments: size()
    .optional()
    .describe('Maximum size of the arguments of one call. A call with larger ones is refused.'),
  max_result: size()
    .optional()
    .describe('Maximum size of one result. A larger one is cut, and the rest can be read as a resource.'),
};

/** For a server, which also has its own time-outs. */
export const serverLimitShape = {
  concurrency: count(1, MAX_CALLS)
    .optional()
    .describe(
      'How many calls the server handles at one time, of all callers together. Default: 256, or `folders.concurrency` for a `folder`.',
    ),
  queue: count(0, MAX_CALLS)
    .prefault(DEFAULT_QUEUE)
    .describe('How many more calls wait for their turn, each for at most its `timeout`. Further calls are refused.'),
  ...countShape,
};

const limitShape = {
  timeout: duration(1).optional().describe('How long one call may go without a sign of life.'),
  total_timeout: duration(1).optional().describe('How long one call may take in all.'),
  concurrency: count(1, MAX_CALLS).optional().describe('How many calls at one time.'),
  queue: count(0, MAX_CALLS)
    .optional()
    .describe(`How many more calls wait for their turn, if \`concurrency\` is set. Default: ${DEFAULT_QUEUE}.`),
  ...countShape,
};

export const callLimitsSchema = section(limitShape, { id: 'Limits', description: 'How much calls may take.' });

export const toolLimitsSchema = section(
  {
    ...limitShape,
    cache: duration(1)
      .optional()
      .describe(
        'How long equal calls are answered with the same result. Only for tools that change nothing and answer all callers alike.',
      ),
  },
  { id: 'ToolLimits', description: 'How much calls of a tool may take.' },
);

/**
 * Limits as a section gives them. The default of the queue is filled in after the limits of several sections are
 * merged.
 */
export type CallLimitsSection = z.output<typeof callLimitsSchema>;
export type ToolLimitsSection = z.output<typeof toolLimitsSchema>;

/** Limits by the names of tools, or patterns over them. */
export function limitsByTool<Schema extends z.ZodType>(schema: Schema) {
  // Nothing looks limits up by category, so they would limit nothing.
  const tool = z
    .string()
    .refine((name) => !isCategory(name), { error: 'limits go by names and patterns, not categories' });
  return z.record(tool, schema, {
    error: (issue) =>
      issue.code === 'invalid_type' ? 'expected a map from names or patterns of tools to limits' : undefined,
  });
}

/** What `own` leaves open is taken from `inherited`, key by key. */
export function inheritLimits(own: CallLimitsSection, inherited: CallLimitsSection): CallLimitsSection {
  const given = Object.entries(own).filter(([, value]) => value !== null);
  return { ...inherited, ...Object.fromEntries(given) };
}

export function resolveCallLimits(written: CallLimitsSection): CallLimits {
  return { ...written, queue: written.queue ?? DEFAULT_QUEUE };
}

export function resolveToolLimits(
  written: Readonly<Record<string, CallLimitsSection | ToolLimitsSection>>,
): ToolLimits[] {
  return Object.entries(written).map(([tool, limits]) => ({
    cache: null,
    ...limits,
    ...resolveCallLimits(limits),
    tool,
  }));
}

/** The limits that fit a tool of any of these names best: by its exact name, else by the longest pattern. */
export function limitsFor(all: readonly ToolLimits[], ...names: readonly string[]): ToolLimits | null {
  const exact = all.find(({ tool }) => names.includes(tool));
  if (exact !== undefined) return exact;
  let best: ToolLimits | null = null;
  for (const limits of all) {
    const { tool } = limits;
    if (!isPattern(tool) || !names.some((name) => matchesPattern(tool, name))) continue;
    if (best === null || tool.length > best.tool.length) best = limits;
  }
  return best;
}
