/** The section `security`: what a person has to approve, and what agents may ask for. */
import * as z from 'zod';
import { didYouMean } from '../base/text.ts';
import type { ResolveContext } from './context.ts';
import {
  byServer,
  choice,
  count,
  duration,
  flag,
  mapOf,
  type Section,
  section,
  text,
  textList,
  toolList,
} from './fields.ts';
import { type Condition, conditionShape, resolveConditions } from './policy.ts';

interface SecurityRule {
  /** Its place in the configuration. */
  readonly place: string;
  /** Names or patterns; null for all. */
  readonly agents: readonly string[] | null;
}

/** Who may approve a call, and how many of them have to. */
export interface Approvers {
  /** Whether the answer of the client counts. Null: on stdio, where the person at the client started the gateway. */
  readonly client: boolean | null;
  /** Whether the operator key counts. */
  readonly operator: boolean;
  /** The people whose own keys count. */
  readonly people: readonly string[];
  /** How many different ones have to approve. */
  readonly require: number;
}

/** A person with a key of their own. */
export interface Person {
  readonly name: string;
  /** SHA-256 hashes of their keys. */
  readonly keys: readonly string[];
}

export interface ConfirmRule extends SecurityRule {
  readonly condition: Condition;
  readonly approvers: Approvers;
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
  /** For rules without approvers of their own, and for what agents and clients ask for. */
  readonly approvers: Approvers;
  readonly people: readonly Person[];
  /** Milliseconds. */
  readonly timeout: number;
  readonly onTimeout: 'deny' | 'allow';
  readonly grants: readonly GrantRule[];
  readonly prompts: readonly PromptRule[];
}

const agents = () => textList().optional().describe('The agents that this applies to, or patterns. Default: all.');

const names = (expected: string) =>
  z.union([text(), textList()], { error: expected }).transform((value) => (Array.isArray(value) ? value : [value]));

const approvers = () =>
  names('expected "any", "client", "operator", a name, `role:NAME`, or a list of these').optional();

const required = () => count(1, 10).optional();

const confirmSchema = section(
  {
    ...conditionShape,
    agents: agents(),
    approvers: approvers().describe('Who decides on these calls. Default: `security.approvers`.'),
    require: required().describe('How many different people have to approve. Default: `security.require`.'),
  },
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

const PERSON_NAME = /^(?!(?:any|client|operator)$)[A-Za-z0-9][\w.@-]{0,63}$/;
const WRONG_PERSON =
  'is not a valid name here: use at most 64 letters, digits, "_", ".", "@" and "-", begin with a letter or digit, and do not use "any", "client" or "operator"';
const HASH = /^[0-9a-f]{64}$/i;

const personSchema = section(
  {
    key_sha256: names('expected a SHA-256 hash in hexadecimal digits, or a list of them').describe(
      'The SHA-256 hash of their key, or several. `toolgate approvals key` prints it.',
    ),
  },
  { id: 'Person', description: 'A person who approves calls.' },
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
  approvers: approvers().describe(
    'Who decides: `operator` (the holder of the operator key), names from `people`, `role:NAME`, `client`, or a list of ' +
      'these. `client` is the person at the client, if the client can ask; over HTTP anyone who has the token of an agent ' +
      'can answer in its place. `any`: the first of them all to answer. Default: `operator` and everybody in `people`; on ' +
      'standard input and output also `client`.',
  ),
  require: required().describe('How many different people have to approve a call. Default: 1.'),
  people: mapOf('people', z.string().regex(PERSON_NAME, { error: WRONG_PERSON }), personSchema)
    .optional()
    .describe('People who approve with a key of their own, by name.'),
  roles: mapOf('lists of names', z.string().regex(PERSON_NAME, { error: WRONG_PERSON }), textList())
    .optional()
    .describe('Names of people by role. Rules name a role as `role:NAME`.'),
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

export function resolveSecurity(security: Section<typeof securityShape>, { add }: ResolveContext): SecurityConfig {
  const { confirm, grants, prompts } = security;
  const dangerous = Object.entries(security.dangerousTools ?? {}).flatMap(([server, names]) =>
    names.map((name) => `${server}.${name}`),
  );
  const conditions = resolveConditions(confirm ?? [], 'security.confirm');
  const people = Object.entries(security.people ?? {}).map(([name, { keySha256 }]) => ({
    name,
    keys: keySha256.map((key) => key.toLowerCase()),
  }));
  for (const { name, keys } of people)
    if (keys.length === 0 || !keys.every((key) => HASH.test(key)))
      add(['security', 'people', name, 'key_sha256'], 'is not a SHA-256 hash of 64 hexadecimal digits');
  for (const [role, names] of Object.entries(security.roles ?? {}))
    for (const name of names)
      if (!people.some((person) => person.name === name))
        add(['security', 'roles', role], `names "${name}", who is not in security.people`);
  const known = { people: people.map(({ name }) => name), roles: security.roles ?? {} };
  const own = resolveApprovers(security.approvers, security.require ?? 1, known, (key, message) =>
    add(['security', key], message),
  );
  return {
    confirm: [
      ...(dangerous.length === 0 ? [] : [confirmAll(dangerous, own)]),
      ...conditions.map((condition, i) => {
        const rule = confirm![i]!;
        const require = rule.require ?? own.require;
        const addAt = (key: string, message: string) => add(['security', 'confirm', i, key], message);
        const isOwn = rule.approvers !== null || rule.require !== null;
        return {
          place: condition.place,
          agents: rule.agents,
          condition,
          approvers: isOwn ? resolveApprovers(rule.approvers ?? security.approvers, require, known, addAt) : own,
        };
      }),
    ],
    approvers: own,
    people,
    timeout: security.approvalTimeout,
    onTimeout: security.onTimeout,
    grants: grants?.map((grant, i) => ({ place: `security.grants[${i}]`, ...grant })) ?? [
      { place: 'security.grants', agents: null, tools: ['*'], duration: GRANT_DURATION, approval: true },
    ],
    prompts: (prompts ?? []).map((prompt, i) => ({ place: `security.prompts[${i}]`, ...prompt })),
  };
}

interface KnownPeople {
  readonly people: readonly string[];
  readonly roles: Readonly<Record<string, readonly string[]>>;
}

function resolveApprovers(
  written: readonly string[] | null,
  require: number,
  { people, roles }: KnownPeople,
  add: (key: string, message: string) => void,
): Approvers {
  const all = written?.includes('any') === true;
  const isDefault = written === null || all;
  const chosen = new Set(isDefault ? people : []);
  for (const name of written ?? []) {
    if (['any', 'client', 'operator'].includes(name)) continue;
    const role = name.startsWith('role:') ? name.slice('role:'.length) : null;
    if (role === null && people.includes(name)) chosen.add(name);
    else if (role !== null && Object.hasOwn(roles, role)) for (const one of roles[role]!) chosen.add(one);
    else if (role === null)
      add('approvers', `has "${name}", who is not in security.people.${didYouMean(name, people)}`);
    else add('approvers', `has "${name}", but security.roles has no "${role}".${didYouMean(role, Object.keys(roles))}`);
  }
  const client = written === null ? null : all || written.includes('client');
  const operator = isDefault || written.includes('operator');
  const possible = chosen.size + (operator ? 1 : 0) + (client === true ? 1 : 0);
  if (possible < require)
    add('require', `asks for the approval of ${require} people, but only ${possible} can approve. Name more of them`);
  return { client, operator, people: [...chosen], require };
}

/** Every call of these tools. */
function confirmAll(tools: readonly string[], approvers: Approvers): ConfirmRule {
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
    when: null,
    dryRun: false,
  };
  return { place, agents: null, condition, approvers };
}
