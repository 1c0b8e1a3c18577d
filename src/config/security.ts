/** The section `security`: what a person has to approve, and what agents may ask for. */

import * as z from 'zod';
import { byServer, choice, duration, flag, type Section, section, textList, toolList } from './fields.ts';
import { type Condition, conditionShape, resolveConditions } from './policy.ts';

interface SecurityRule {
  /** Its place in the configuration. */
  readonly place: string;
  /** Names or patterns; null for all. */
  readonly agents: readonly string[] | null;
}

export interface ConfirmRule extends SecurityRule {
  readonly condition: Condition;
}

export interface GrantRule extends SecurityRule {
  readonly tools: readonly string[];
  /** Milliseconds. */
  readonly duration: number;
  /** Whether a person decides. */
  readonly approval: boolean;
}

export interface PromptRule extends SecurityRule {
  readonly tools: readonly string[];
  readonly action: 'allow' | 'deny' | 'ask';
}

export interface SecurityConfig {
  readonly confirm: readonly ConfirmRule[];
  /** Null: the operator; on stdio also the person at the client, who started the gateway. */
  readonly approvers: 'any' | 'client' | 'operator' | null;
  /** Milliseconds. */
  readonly timeout: number;
  readonly onTimeout: 'deny' | 'allow';
  readonly grants: readonly GrantRule[];
  readonly prompts: readonly PromptRule[];
}

const agents = () => textList().optional().describe('The agents that this applies to, or patterns. Default: all.');

const confirmSchema = section(
  { ...conditionShape, agents: agents() },
  {
    id: 'Confirm',
    description: 'Calls that wait until a person has approved them: those that match all keys.',
  },
);

const grantSchema = section(
  {
    agents: agents(),
    tools: toolList().describe('The tools that may be asked for: `server.tool`, patterns over that, or categories.'),
    duration: duration(1).prefault('1h').describe('How long the tools may be used.'),
    approval: flag().prefault(true).describe('`false` grants them at once to any agent that gives a reason.'),
  },
  { id: 'Grant', description: 'What agents can get for a limited time by asking with `request_access`.' },
);

const promptSchema = section(
  {
    agents: agents(),
    tools: textList().describe('Tools of the client, such as `Bash` or `mcp__git__*`, or patterns.'),
    action: choice(['allow', 'deny', 'ask']).describe(
      'What `approval_prompt` answers: yes, no, or what a person decides.',
    ),
  },
  {
    id: 'Prompt',
    description: 'How the permission prompts of a client are answered; the first match counts.',
  },
);

const securityShape = {
  dangerous_tools: byServer(toolList())
    .optional()
    .describe(
      'Tools whose every call waits for a person. By the name of the server: its own names, patterns, or categories.',
    ),
  confirm: z
    .array(confirmSchema, { error: 'expected a list of rules' })
    .optional()
    .describe('Further calls that wait for a person.'),
  approvers: choice(['any', 'client', 'operator'])
    .optional()
    .describe(
      'Who decides. `operator`: the holder of the operator key. `client`: the person at the client, if the client can ask; ' +
        'over HTTP anyone who has the token of an agent can answer in its place. `any`: the first of them to answer. ' +
        'Default: `operator` over HTTP, `any` on standard input and output.',
    ),
  approval_timeout: duration(1).prefault('5m').describe('How long a call waits for a person.'),
  on_timeout: choice(['deny', 'allow']).prefault('deny').describe('What happens to a call that nobody decided on.'),
  grants: z
    .array(grantSchema, { error: 'expected a list of grants' })
    .optional()
    .describe('What agents may ask for with `request_access`. Default: anything, by approval.'),
  prompts: z
    .array(promptSchema, { error: 'expected a list of rules' })
    .optional()
    .describe('How `approval_prompt` answers. Default: a person decides.'),
  reachable_config: choice(['warn', 'refuse', 'allow'])
    .prefault('warn')
    .describe(
      'What happens if an argument of a server, or a folder of tools, is a folder with this file, `data_dir` or the key ' +
        'of the secrets in it, so that an agent may be able to change them: `warn` at every start and in `doctor`, ' +
        '`refuse` the configuration, or `allow` it.',
    ),
};

export const securitySchema = section(securityShape);

const GRANT_DURATION = 3_600_000;

export function resolveSecurity(security: Section<typeof securityShape>): SecurityConfig {
  const { confirm, grants, prompts } = security;
  const dangerous = Object.entries(security.dangerousTools ?? {}).flatMap(([server, names]) =>
    names.map((name) => `${server}.${name}`),
  );
  const conditions = resolveConditions(confirm ?? [], 'security.confirm');
  return {
    confirm: [
      ...(dangerous.length === 0 ? [] : [confirmAll(dangerous)]),
      ...conditions.map((condition, i) => ({ place: condition.place, agents: confirm![i]!.agents, condition })),
    ],
    approvers: security.approvers,
    timeout: security.approvalTimeout,
    onTimeout: security.onTimeout,
    grants: grants?.map((grant, i) => ({ place: `security.grants[${i}]`, ...grant })) ?? [
      { place: 'security.grants', agents: null, tools: ['*'], duration: GRANT_DURATION, approval: true },
    ],
    prompts: (prompts ?? []).map((prompt, i) => ({ place: `security.prompts[${i}]`, ...prompt })),
  };
}

/** Every call of these tools. */
function confirmAll(tools: readonly string[]): ConfirmRule {
  const place = 'security.dangerous_tools';
  const about = { tool: tools, resource: null, prompt: null };
  const condition = {
    place,
    about,
    between: null,
    days: null,
    timezone: 'UTC',
    arguments: null,
    paths: null,
    annotations: null,
  };
  return { place, agents: null, condition };
}
