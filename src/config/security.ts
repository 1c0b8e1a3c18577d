/** What a person has to approve, and what agents may ask for, after reading. */
import { type Condition, resolveConditions } from './policy.ts';
import type { SecurityFile } from './security-schema.ts';

interface Rule {
  /** Where it stands in the configuration. */
  readonly place: string;
  /** Names or patterns; null for all. */
  readonly agents: readonly string[] | null;
}

export interface ConfirmRule extends Rule {
  readonly condition: Condition;
}

export interface GrantRule extends Rule {
  readonly tools: readonly string[];
  /** Milliseconds. */
  readonly duration: number;
  /** Whether a person decides. */
  readonly approval: boolean;
}

export interface PromptRule extends Rule {
  readonly tools: readonly string[];
  readonly action: 'allow' | 'deny' | 'ask';
}

export interface SecurityConfig {
  readonly confirm: readonly ConfirmRule[];
  readonly approvers: 'any' | 'client' | 'operator';
  /** Milliseconds. */
  readonly timeout: number;
  readonly onTimeout: 'deny' | 'allow';
  readonly grants: readonly GrantRule[];
  readonly prompts: readonly PromptRule[];
}

const GRANTED = 3_600_000;

export function resolveSecurity(file: SecurityFile): SecurityConfig {
  const { dangerous_tools: dangerous = {}, confirm = [], grants, prompts = [] } = file;
  const tools = Object.entries(dangerous).flatMap(([server, names]) => names.map((name) => `${server}.${name}`));
  const conditions = resolveConditions(
    confirm.map(({ agents: _, ...condition }) => condition),
    'security.confirm',
  );
  const place = (key: string, i: number, agents: readonly string[] | undefined): Rule => ({
    place: `security.${key}[${i}]`,
    agents: agents ?? null,
  });
  return {
    confirm: [
      ...(tools.length === 0 ? [] : [{ place: 'security.dangerous_tools', agents: null, condition: about(tools) }]),
      ...conditions.map((condition, i) => ({ ...place('confirm', i, confirm[i]!.agents), condition })),
    ],
    approvers: file.approvers,
    timeout: file.approval_timeout,
    onTimeout: file.on_timeout,
    grants: grants?.map((grant, i) => ({ ...grant, ...place('grants', i, grant.agents) })) ?? [
      { place: 'security.grants', agents: null, tools: ['*'], duration: GRANTED, approval: true },
    ],
    prompts: prompts.map((prompt, i) => ({ ...prompt, ...place('prompts', i, prompt.agents) })),
  };
}

function about(tools: readonly string[]): Condition {
  return {
    place: 'security.dangerous_tools',
    about: { tool: tools, resource: null, prompt: null },
    between: null,
    days: null,
    timezone: 'UTC',
    arguments: null,
    annotations: null,
  };
}
