/** Policies: who may use what. The decisions are made in access/policy.ts. */
import * as z from 'zod';
import { type CallLimitsSection, callLimitsSchema, limitsByTool } from './call-limits.ts';
import type { ResolveContext } from './context.ts';
import { expressionProblem } from './expression.ts';
import { byServer, camelKeys, flag, type Section, section, text, textList, toolList } from './fields.ts';

/** Patterns over a server's own names, by patterns over servers. */
export type ServerLists = Readonly<Record<string, readonly string[]>>;

/** One value for each kind of item; templates count as resources. */
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
  /** Its place in the configuration. */
  readonly place: string;
  /** The items that it is about; null for no items of that kind. */
  readonly about: ByKind<readonly string[] | null>;
  /** Minutes of the day; the second may be the smaller one. */
  readonly between: readonly [number, number] | null;
  /** 0 is Sunday. */
  readonly days: readonly number[] | null;
  readonly timezone: string;
  readonly arguments: Readonly<Record<string, readonly string[]>> | null;
  /** The same for arguments that are paths of files. */
  readonly paths: Readonly<Record<string, readonly string[]>> | null;
  readonly annotations: Partial<Hints> | null;
  /** An expression that has to hold. */
  readonly when: string | null;
  /** Whether it is only tried: decided and recorded, but not enforced. */
  readonly dryRun: boolean;
}

/** Limits as a policy gives them. Which of them apply is decided for each agent. */
export interface WrittenLimits {
  /** @internal */
  readonly limits: CallLimitsSection | null;
  /** @internal */
  readonly toolLimits: Readonly<Record<string, CallLimitsSection>> | null;
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
  /** Whether the rules for this agent are only tried. */
  readonly dryRun: boolean;
}

export interface PolicyConfig {
  readonly exposed: ByKind<ServerLists>;
  readonly denied: ByKind<ServerLists>;
  readonly conditions: readonly Condition[];
  readonly agents: readonly AgentPolicy[];
  /** Whether the whole policy is only tried: it decides and records, and lets everything pass. */
  readonly dryRun: boolean;
  /** Whether items that no list is about may be used. Null: if the agent may use tools of the server. */
  readonly allowUnknown: ByKind<boolean | null> & { readonly tool: boolean };
  /**
   * The limits of agents that have none of their own.
   * @internal
   */
  readonly defaultLimits: WrittenLimits;
}

const EVERYTHING = 'By the name of the server (or a pattern): its own names, or patterns over them.';
const TOOLS =
  'By the name of the server (or a pattern): its own names, patterns over them, or categories (`category:read`).';

const lists = (meaning: string) => byServer(textList()).optional().describe(`${meaning} ${EVERYTHING}`);
const toolLists = (meaning: string) => byServer(toolList()).optional().describe(`${meaning} ${TOOLS}`);

const CLOCK = /^([01]\d|2[0-3]):[0-5]\d$|^24:00$/;
const clock = () => text().regex(CLOCK, { error: 'expected a time of day such as "08:30"' });

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** An expression in CEL. It is compiled here, so that a mistake is reported with its line. */
const expression = () =>
  text().superRefine((written, context) => {
    const problem = expressionProblem(written);
    if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  });

const dryRun = (what: string) =>
  flag().optional().describe(`\`true\` only tries ${what}: it is decided and recorded in the audit, and not enforced.`);

const hint = (name: keyof Hints) =>
  flag().optional().describe(`The required value of the tool's annotation \`${name}\`.`);

const patternsByArgument = () =>
  z
    .record(z.string(), z.union([text(), textList()], { error: 'expected a pattern or a list of patterns' }), {
      error: 'expected a map from arguments to patterns',
    })
    .optional();

export const conditionShape = {
  tools: toolList()
    .optional()
    .describe(
      'The tools that this applies to: `server.tool`, exposed names, patterns over either, or categories. Default: all.',
    ),
  resources: textList()
    .optional()
    .describe('The resources, likewise. Default: all, unless `tools` or `prompts` is set.'),
  prompts: textList().optional().describe('The prompts, likewise. Default: all, unless `tools` or `resources` is set.'),
  between: z
    .tuple([clock(), clock()], { error: 'expected two times of day such as ["08:00", "18:00"]' })
    .optional()
    .describe(
      'The times of day between which they may be used; if the second is earlier, the range goes past midnight.',
    ),
  days: z
    .array(z.enum(DAYS, { error: `expected one of ${DAYS.join(', ')}` }), { error: 'expected a list of days' })
    .optional()
    .describe('The days on which they may be used, `mon` to `sun`.'),
  timezone: text()
    .refine(isTimeZone, { error: 'is not the name of a time zone, such as "Europe/Berlin"' })
    .prefault('UTC')
    .describe('The time zone of `between` and `days`.'),
  arguments: patternsByArgument().describe(
    'Patterns that arguments must match, by name (`options.path` for a nested one) or a pattern over names: one pattern, or several of which one must match.',
  ),
  paths: patternsByArgument().describe(
    'The same for paths of files, which are compared in their usual spelling: `./.env`, `.env/` and `a/../.env` are `.env`.',
  ),
  annotations: section({
    readOnlyHint: hint('readOnlyHint'),
    destructiveHint: hint('destructiveHint'),
    idempotentHint: hint('idempotentHint'),
    openWorldHint: hint('openWorldHint'),
  })
    .optional()
    .describe(
      'Annotations that a tool must have. Missing ones have the defaults of the protocol: not read-only, destructive.',
    ),
  when: expression()
    .optional()
    .describe(
      'An expression in CEL that must hold. It can use `agent`, `claims` (of a JWT), `task`, `now` and `args` (the arguments).',
    ),
  dry_run: dryRun('this rule'),
};

const conditionSchema = section(conditionShape, {
  id: 'Condition',
  description: 'Circumstances under which something may be used.',
});

export type ConditionSection = Section<typeof conditionShape>;

const conditions = () => z.array(conditionSchema, { error: 'expected a list of conditions' }).optional();

const limits = (whose: string) =>
  callLimitsSchema.optional().describe(`How much ${whose} may use, all tools together.`);
const toolLimits = () =>
  limitsByTool(callLimitsSchema).optional().describe('The same for individual tools, by `server.tool` or a pattern.');

const agentPolicySchema = section(
  {
    description: text().prefault('').describe('Who or what the agent is.'),
    extends: textList().optional().describe('Other entries of `agent_policies` whose rules also apply to this agent.'),
    allowed_servers: textList().optional().describe('The servers that the agent may use, or patterns. Default: all.'),
    denied_servers: textList()
      .optional()
      .describe('Servers that the agent may not use, even if another rule allows them.'),
    tool_overrides: toolLists('The tools of the agent, instead of `exposed_tools`.'),
    resource_overrides: lists('The resources and templates of the agent, instead of `exposed_resources`.'),
    prompt_overrides: lists('The prompts of the agent, instead of `exposed_prompts`.'),
    denied_tools: toolLists('Tools that the agent may not use, even if another rule allows them.'),
    denied_resources: lists('Resources that the agent may not use.'),
    denied_prompts: lists('Prompts that the agent may not use.'),
    conditions: conditions().describe('Conditions under which the agent may use something.'),
    dry_run: dryRun('the rules for this agent, those for all agents included'),
    limits: limits('the agent'),
    tool_limits: toolLimits(),
  },
  { id: 'AgentPolicy', description: 'What one agent may use.' },
);

const defaultPolicySchema = section({
  allow_unknown_tools: flag()
    .optional()
    .describe('Whether tools of servers that no list names may be used. Default: false as soon as there is a policy.'),
  allow_unknown_resources: flag()
    .optional()
    .describe('The same for resources. Default: only those of servers of which the agent may use tools.'),
  allow_unknown_prompts: flag().optional().describe('The same for prompts, with the same default.'),
  limits: limits('each agent that has no limits'),
  tool_limits: toolLimits(),
});

export const policyShape = {
  exposed_tools: toolLists('The tools that agents may use.'),
  exposed_resources: lists('The resources and templates that agents may use.'),
  exposed_prompts: lists('The prompts that agents may use.'),
  denied_tools: toolLists('Tools that no agent may use.'),
  denied_resources: lists('Resources that no agent may use.'),
  denied_prompts: lists('Prompts that no agent may use.'),
  conditions: conditions().describe('Conditions under which agents may use something.'),
  dry_run: dryRun('the whole policy'),
  agent_policies: z
    .record(z.string(), agentPolicySchema, { error: 'expected a map of policies' })
    .optional()
    .describe('What individual agents may use, by name or pattern.'),
  default_policy: defaultPolicySchema.optional().describe('What applies if no list does.'),
};

type AgentPolicySection = z.output<typeof agentPolicySchema>;
type DefaultPolicySection = z.output<typeof defaultPolicySchema>;

const POLICY_KEYS = camelKeys(policyShape);

/** Null if the file has no policy. Then everything is allowed. */
export function resolvePolicy(file: Section<typeof policyShape>, context: ResolveContext): PolicyConfig | null {
  if (POLICY_KEYS.every((key) => file[key] === null)) return null;
  const policies = file.agentPolicies ?? {};
  const agents = Object.entries(policies).map(([name, policy]) => resolveAgentPolicy(name, policy));
  checkLineage(agents, context);
  const { defaultPolicy } = file;
  // A file that only denies, limits or restricts something does not mean to close everything else.
  const isClosed =
    file.exposedTools !== null ||
    Object.values(policies).some((policy) => !hasOnlyLimits(policy)) ||
    (defaultPolicy !== null && !hasOnlyLimits(defaultPolicy));
  return {
    exposed: {
      tool: file.exposedTools ?? {},
      resource: file.exposedResources ?? {},
      prompt: file.exposedPrompts ?? {},
    },
    denied: deniedBy(file),
    conditions: resolveConditions(file.conditions ?? [], 'conditions'),
    agents,
    dryRun: file.dryRun ?? false,
    allowUnknown: {
      tool: defaultPolicy?.allowUnknownTools ?? !isClosed,
      resource: defaultPolicy?.allowUnknownResources ?? null,
      prompt: defaultPolicy?.allowUnknownPrompts ?? null,
    },
    defaultLimits: { limits: defaultPolicy?.limits ?? null, toolLimits: defaultPolicy?.toolLimits ?? null },
  };
}

function deniedBy(
  rules: Pick<AgentPolicySection, 'deniedTools' | 'deniedResources' | 'deniedPrompts'>,
): ByKind<ServerLists> {
  return { tool: rules.deniedTools ?? {}, resource: rules.deniedResources ?? {}, prompt: rules.deniedPrompts ?? {} };
}

/** Whether a policy has limits and no rules. A rule that is `true` is only a default that was filled in. */
function hasOnlyLimits(policy: AgentPolicySection | DefaultPolicySection): boolean {
  const {
    limits,
    toolLimits,
    description: _,
    extends: __,
    dryRun: ___,
    ...rules
  } = policy as Partial<AgentPolicySection>;
  return (
    (limits !== null || toolLimits !== null) &&
    Object.values<unknown>(rules).every((rule) => rule === null || rule === true)
  );
}

function resolveAgentPolicy(name: string, policy: AgentPolicySection): AgentPolicy {
  return {
    name,
    extends: policy.extends ?? [],
    allowedServers: policy.allowedServers,
    deniedServers: policy.deniedServers ?? [],
    overrides: {
      tool: policy.toolOverrides ?? {},
      resource: policy.resourceOverrides ?? {},
      prompt: policy.promptOverrides ?? {},
    },
    denied: deniedBy(policy),
    conditions: resolveConditions(policy.conditions ?? [], `agent_policies.${name}.conditions`),
    dryRun: policy.dryRun ?? false,
    limits: policy.limits,
    toolLimits: policy.toolLimits,
  };
}

export function resolveConditions(conditions: readonly ConditionSection[], place: string): Condition[] {
  return conditions.map(({ tools, resources, prompts, between, days, timezone, annotations, ...rest }, i) => {
    // A condition that names nothing is about everything.
    const all = tools === null && resources === null && prompts === null ? ['*'] : null;
    return {
      place: `${place}[${i}]`,
      about: { tool: tools ?? all, resource: resources ?? all, prompt: prompts ?? all },
      between: between && [minutes(between[0]), minutes(between[1])],
      days: days?.map((day) => DAYS.indexOf(day)) ?? null,
      timezone,
      arguments: rest.arguments && asLists(rest.arguments),
      paths: rest.paths && asLists(rest.paths),
      annotations: annotations && withoutNulls(annotations),
      when: rest.when,
      dryRun: rest.dryRun ?? false,
    };
  });
}

function minutes(clock: string): number {
  const [hours, rest] = clock.split(':').map(Number);
  return hours! * 60 + rest!;
}

function asLists(patterns: Readonly<Record<string, string | readonly string[]>>): Record<string, readonly string[]> {
  return Object.fromEntries(
    Object.entries(patterns).map(([name, wanted]) => [name, typeof wanted === 'string' ? [wanted] : wanted]),
  );
}

function withoutNulls(hints: { readonly [Name in keyof Hints]: boolean | null }): Partial<Hints> {
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== null));
}

function checkLineage(agents: readonly AgentPolicy[], { add }: ResolveContext): void {
  const byName = new Map(agents.map((agent) => [agent.name, agent]));
  for (const { name, extends: parents } of agents) {
    const path = ['agent_policies', name, 'extends'];
    for (const [i, parent] of parents.entries())
      if (!byName.has(parent)) add([...path, i], `there is no policy "${parent}" to extend`);
    if (ancestors(name, byName).has(name)) add(path, 'leads back to this policy. Break the cycle');
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
