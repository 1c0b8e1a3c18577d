/** How much an agent may use: what its policy says, then those that it extends, key by key; else what holds for all. */
import { type AgentLimits, resolveLimits, resolveToolLimits } from '../config/limits.ts';
import type { LimitsFile } from '../config/limits-schema.ts';
import type { PolicyConfig } from '../config/policy.ts';
import { rulesFor } from './policy.ts';

/** Null where it has no limits. */
export function agentLimits(policy: PolicyConfig | null, agent: string): AgentLimits | null {
  if (policy === null) return null;
  const { lineage } = rulesFor(policy, agent);
  const { defaultLimits } = policy;
  const limits = merged(lineage.map((one) => one.limits)) ?? defaultLimits.limits;
  const toolLimits = mergedByTool(lineage.map((one) => one.toolLimits)) ?? defaultLimits.toolLimits;
  if (limits === null && toolLimits === null) return null;
  return { all: limits === null ? null : resolveLimits(limits), tools: resolveToolLimits(toolLimits ?? {}) };
}

/** What stands first beats what comes after it. */
function merged(all: readonly (LimitsFile | null)[]): LimitsFile | null {
  const given = all.filter((one) => one !== null);
  return given.length === 0 ? null : Object.assign({}, ...given.reverse());
}

function mergedByTool(all: readonly (Readonly<Record<string, LimitsFile>> | null)[]) {
  const given = all.filter((one) => one !== null);
  if (given.length === 0) return null;
  const tools = new Set(given.flatMap((one) => Object.keys(one)));
  return Object.fromEntries([...tools].map((tool) => [tool, merged(given.map((one) => one[tool] ?? null))!]));
}
