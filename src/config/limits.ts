/** How much calls may take, after reading. What is null is not limited. */
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { DEFAULT_QUEUE, type LimitsFile, type RateLimit, type ToolLimitsFile } from './limits-schema.ts';

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
  /** Milliseconds that a result is good for; null where it is not kept. */
  readonly cache: number | null;
}

/** Those of one agent, for all of its calls and for those of some tools. */
export interface AgentLimits {
  readonly all: CallLimits | null;
  /** By `server.tool`. */
  readonly tools: readonly ToolLimits[];
}

export function resolveLimits(written: Partial<LimitsFile>): CallLimits {
  return {
    timeout: written.timeout ?? null,
    totalTimeout: written.total_timeout ?? null,
    concurrency: written.concurrency ?? null,
    queue: written.queue ?? DEFAULT_QUEUE,
    rate: written.rate ?? null,
    callsPerDay: written.calls_per_day ?? null,
    maxArguments: written.max_arguments ?? null,
    maxResult: written.max_result ?? null,
  };
}

export function resolveToolLimits(written: Readonly<Record<string, Partial<ToolLimitsFile>>> = {}): ToolLimits[] {
  return Object.entries(written).map(([tool, limits]) => ({
    ...resolveLimits(limits),
    tool,
    cache: limits.cache ?? null,
  }));
}

/** The limits that say most about a tool of any of these names: its very name, else the longest pattern. */
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
