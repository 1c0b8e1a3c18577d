/** Policies as the gateway works with them. What is decided by them, and in which order, is in access/policy.ts. */
import type { Issue } from './issues.ts';
import type { LimitsFile } from './limits-schema.ts';
import { type AgentPolicyFile, type ConditionFile, DAYS, type PolicyFile } from './policy-schema.ts';

/** Patterns over a server's own names, by patterns over servers. */
export type ServerLists = Readonly<Record<string, readonly string[]>>;

/** One for each kind; templates go with resources. */
export interface ByKind<T> {
  readonly tool: T;
  readonly resource: T;
  readonly prompt: T;
}

export interface Hints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

export interface Condition {
  /** Where it stands in the configuration. */
  readonly place: string;
  /** What it is about; null for nothing of the kind. */
  readonly about: ByKind<readonly string[] | null>;
  /** Minutes of the day; the second may be the smaller one. */
  readonly between: readonly [number, number] | null;
  /** 0 is Sunday. */
  readonly days: readonly number[] | null;
  readonly timezone: string;
  readonly arguments: Readonly<Record<string, readonly string[]>> | null;
  readonly annotations: Partial<Hints> | null;
}

/** Limits as they are written: which of them hold is decided for each agent. */
export interface WrittenLimits {
  /** @internal */
  readonly limits: LimitsFile | null;
  /** @internal */
  readonly toolLimits: Readonly<Record<string, LimitsFile>> | null;
}

export interface AgentPolicy extends WrittenLimits {
  readonly name: string;
  readonly extends: readonly string[];
  /** Null for all. */
  readonly allowedServers: readonly string[] | null;
  readonly deniedServers: readonly string[];
  readonly overrides: ByKind<ServerLists>;
  readonly denied: ByKind<ServerLists>;
  readonly conditions: readonly Condition[];
}

export interface PolicyConfig {
  readonly exposed: ByKind<ServerLists>;
  readonly denied: ByKind<ServerLists>;
  readonly conditions: readonly Condition[];
  readonly agents: readonly AgentPolicy[];
  /** Whether items that no list is about may be used. */
  readonly allowUnknown: ByKind<boolean>;
  /**
   * Those of agents without their own.
   * @internal
   */
  readonly defaultLimits: WrittenLimits;
}

const KEYS = [
  'exposed_tools',
  'exposed_resources',
  'exposed_prompts',
  'denied_tools',
  'denied_resources',
  'denied_prompts',
  'conditions',
  'agent_policies',
  'default_policy',
] as const satisfies readonly (keyof PolicyFile)[];

/** Null where the file has none: then everything is allowed. */
export function resolvePolicy(file: PolicyFile, issues: Issue[]): PolicyConfig | null {
  if (KEYS.every((key) => file[key] === undefined)) return null;
  const agents = Object.entries(file.agent_policies ?? {}).map(([name, policy]) => resolveAgent(name, policy));
  checkLineage(agents, issues);
  const { default_policy: fallback } = file;
  // Who only denies something, limits it, or asks for a condition, did not mean to close everything else.
  const isClosed =
    file.exposed_tools !== undefined ||
    Object.values(file.agent_policies ?? {}).some((policy) => !isOnlyLimits(policy)) ||
    (fallback !== undefined && !isOnlyLimits(fallback));
  return {
    exposed: {
      tool: file.exposed_tools ?? {},
      resource: file.exposed_resources ?? {},
      prompt: file.exposed_prompts ?? {},
    },
    denied: { tool: file.denied_tools ?? {}, resource: file.denied_resources ?? {}, prompt: file.denied_prompts ?? {} },
    conditions: resolveConditions(file.conditions, 'conditions'),
    agents,
    allowUnknown: {
      tool: fallback?.allow_unknown_tools ?? !isClosed,
      resource: fallback?.allow_unknown_resources ?? true,
      prompt: fallback?.allow_unknown_prompts ?? true,
    },
    defaultLimits: writtenLimits(fallback ?? {}),
  };
}

interface LimitsPart {
  readonly limits?: LimitsFile | undefined;
  readonly tool_limits?: Readonly<Record<string, LimitsFile>> | undefined;
}

function writtenLimits({ limits, tool_limits }: LimitsPart): WrittenLimits {
  return { limits: limits ?? null, toolLimits: tool_limits ?? null };
}

/** What says nothing about what may be used; `true` is what is filled in. */
function isOnlyLimits({ limits, tool_limits, ...rest }: LimitsPart & Readonly<Record<string, unknown>>): boolean {
  const { description: _, extends: __, ...rules } = rest;
  const isLimited = limits !== undefined || tool_limits !== undefined;
  return isLimited && Object.values(rules).every((rule) => rule === undefined || rule === true);
}

function resolveAgent(name: string, policy: AgentPolicyFile): AgentPolicy {
  return {
    name,
    extends: policy.extends ?? [],
    allowedServers: policy.allowed_servers ?? null,
    deniedServers: policy.denied_servers ?? [],
    overrides: {
      tool: policy.tool_overrides ?? {},
      resource: policy.resource_overrides ?? {},
      prompt: policy.prompt_overrides ?? {},
    },
    denied: {
      tool: policy.denied_tools ?? {},
      resource: policy.denied_resources ?? {},
      prompt: policy.denied_prompts ?? {},
    },
    conditions: resolveConditions(policy.conditions, `agent_policies.${name}.conditions`),
    ...writtenLimits(policy),
  };
}

export function resolveConditions(conditions: readonly ConditionFile[] | undefined, place: string): Condition[] {
  return (conditions ?? []).map(({ tools, resources, prompts, between, days, ...rest }, i) => {
    // What names nothing is about everything.
    const all = tools === undefined && resources === undefined && prompts === undefined ? ['*'] : null;
    return {
      place: `${place}[${i}]`,
      about: { tool: tools ?? all, resource: resources ?? all, prompt: prompts ?? all },
      between: between === undefined ? null : [minutes(between[0]), minutes(between[1])],
      days: days?.map((day) => DAYS.indexOf(day)) ?? null,
      timezone: rest.timezone,
      arguments:
        rest.arguments === undefined
          ? null
          : Object.fromEntries(
              Object.entries(rest.arguments).map(([name, wanted]) => [
                name,
                typeof wanted === 'string' ? [wanted] : wanted,
              ]),
            ),
      annotations: rest.annotations === undefined ? null : withoutUndefined(rest.annotations),
    };
  });
}

function minutes(clock: string): number {
  const [hours, rest] = clock.split(':').map(Number);
  return hours! * 60 + rest!;
}

function withoutUndefined(hints: { [K in keyof Hints]?: boolean | undefined }): Partial<Hints> {
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined));
}

function checkLineage(agents: readonly AgentPolicy[], issues: Issue[]): void {
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  for (const { name, extends: parents } of agents) {
    const path = ['agent_policies', name, 'extends'];
    for (const [i, parent] of parents.entries()) {
      if (!byName.has(parent)) issues.push({ path: [...path, i], message: `there is no policy "${parent}" to extend` });
    }
    if (ancestors(name, byName).has(name)) issues.push({ path, message: 'leads back to this policy. Break the ring' });
  }
}

function ancestors(name: string, byName: ReadonlyMap<string, AgentPolicy>): Set<string> {
  const found = new Set<string>();
  const open = [...(byName.get(name)?.extends ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    open.push(...(byName.get(next)?.extends ?? []));
  }
  return found;
}
