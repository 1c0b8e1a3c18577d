/** Random policies, and an independent implementation of the decision. */
import fc from 'fast-check';
import type { Kind } from '../../src/catalog/item.ts';

export const SERVERS = ['git', 'hub', 'db'] as const;
export const AGENTS = ['alice', 'bob', 'ci-1', 'nobody'] as const;
const POLICIES = ['alice', 'bob', 'ci-*', 'reader'] as const;

/** The names that servers offer, by kind. Templates match more than the listed resources. */
export const NAMES = {
  tool: ['read', 'read_all', 'write', 'drop'],
  resource: ['note://1', 'note://2', 'log://today'],
  template: ['note://{id}', 'memo://{id}'],
  prompt: ['greet', 'part'],
} as const satisfies Record<Kind, readonly string[]>;

type Lists = Record<string, string[]>;

export interface RandomPolicy {
  exposed_tools?: Lists;
  exposed_resources?: Lists;
  exposed_prompts?: Lists;
  denied_tools?: Lists;
  denied_resources?: Lists;
  denied_prompts?: Lists;
  agent_policies?: Record<string, RandomAgentPolicy>;
  default_policy?: {
    allow_unknown_tools?: boolean;
    allow_unknown_resources?: boolean;
    allow_unknown_prompts?: boolean;
  };
}

interface RandomAgentPolicy {
  extends?: string[];
  allowed_servers?: string[];
  denied_servers?: string[];
  tool_overrides?: Lists;
  resource_overrides?: Lists;
  prompt_overrides?: Lists;
  denied_tools?: Lists;
  denied_resources?: Lists;
  denied_prompts?: Lists;
}

const serverName = fc.constantFrom(...SERVERS, 'h*', '*', 'gone');
const names = {
  tools: fc.constantFrom(...NAMES.tool, 'read*', '*', '?rop', 'none'),
  resources: fc.constantFrom(...NAMES.resource, ...NAMES.template, 'note:*', 'note://7', 'memo://?*', '*', 'none://'),
  prompts: fc.constantFrom(...NAMES.prompt, '*e*', 'none'),
};
const listsOf = (name: fc.Arbitrary<string>) =>
  fc.dictionary(serverName, fc.uniqueArray(name, { maxLength: 3 }), { maxKeys: 3, noNullPrototype: true });
const rare = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 1 });

const agentPolicy = fc.record(
  {
    allowed_servers: fc.uniqueArray(serverName, { maxLength: 3 }),
    denied_servers: fc.uniqueArray(serverName, { maxLength: 1 }),
    tool_overrides: listsOf(names.tools),
    resource_overrides: listsOf(names.resources),
    prompt_overrides: listsOf(names.prompts),
    denied_tools: listsOf(names.tools),
    denied_resources: listsOf(names.resources),
    denied_prompts: listsOf(names.prompts),
  },
  { requiredKeys: [] },
);

/** Each extends only later ones, so that there is no cycle. */
const agentPolicies = fc
  .tuple(
    fc.tuple(...POLICIES.map(() => rare(agentPolicy))),
    fc.tuple(...POLICIES.map(() => fc.subarray([...POLICIES], { maxLength: 2 }))),
  )
  .map(([policies, parents]) => {
    const there = POLICIES.filter((_, i) => policies[i] !== undefined);
    const entries = POLICIES.flatMap((name, i) => {
      const own = policies[i];
      if (own === undefined) return [];
      const later = parents[i]!.filter((parent) => there.indexOf(parent) > there.indexOf(name));
      return [[name, later.length === 0 ? own : { ...own, extends: later }] as const];
    });
    return Object.fromEntries(entries);
  });

export const randomPolicy: fc.Arbitrary<RandomPolicy> = fc.record(
  {
    exposed_tools: listsOf(names.tools),
    exposed_resources: listsOf(names.resources),
    exposed_prompts: listsOf(names.prompts),
    denied_tools: listsOf(names.tools),
    denied_resources: listsOf(names.resources),
    denied_prompts: listsOf(names.prompts),
    agent_policies: agentPolicies,
    default_policy: fc.record(
      {
        allow_unknown_tools: fc.boolean(),
        allow_unknown_resources: fc.boolean(),
        allow_unknown_prompts: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
  },
  { requiredKeys: [] },
);

const glob = (pattern: string, text: string) =>
  new RegExp(
    `^${pattern
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  ).test(text);
const anyFits = (patterns: readonly string[], text: string) => patterns.some((pattern) => glob(pattern, text));

/** 1. agent may use the server; 2. agent override for that server; 3. global exposed list; 4. default policy. */
export function naivelyAllowed(policy: RandomPolicy, agent: string, server: string, kind: Kind, name: string): boolean {
  if (Object.keys(policy).length === 0) return true;
  const what = kind === 'tool' ? 'tool' : kind === 'prompt' ? 'prompt' : 'resource';
  const policies = policy.agent_policies ?? {};
  const ownName = Object.hasOwn(policies, agent) ? agent : Object.keys(policies).find((one) => glob(one, agent));
  const chain = ownName === undefined ? [] : withParents(policies, ownName);

  const about = (lists: Lists | undefined): string[] | undefined => {
    const found = Object.entries(lists ?? {}).filter(([one]) => glob(one, server));
    return found.length === 0 ? undefined : found.flatMap(([, list]) => list);
  };
  const denied = [policy, ...chain].flatMap((one) => about(one[`denied_${what}s`]) ?? []);
  if (anyFits(denied, name)) return false;
  if (chain.some((one) => anyFits(one.denied_servers ?? [], server))) return false;

  const allowed = chain.map((one) => one.allowed_servers).filter((list) => list !== undefined);
  if (allowed.length > 0 && !anyFits(allowed.flat(), server)) return false;

  const overrides = chain.map((one) => about(one[`${what}_overrides`])).filter((list) => list !== undefined);
  if (overrides.length > 0) return anyFits(overrides.flat(), name);

  const exposed = about(policy[`exposed_${what}s`]);
  if (exposed !== undefined) return anyFits(exposed, name);

  const isPolicy =
    policy.exposed_tools !== undefined || Object.keys(policies).length > 0 || policy.default_policy !== undefined;
  const opensUnknown = policy.default_policy?.allow_unknown_tools ?? !isPolicy;
  if (what === 'tool') return opensUnknown;

  // Resources and prompts are closed where the tools of the server are, unless something says otherwise.
  const said = policy.default_policy?.[`allow_unknown_${what}s`];
  if (said !== undefined) return said;
  if ([policy, ...chain].some((one) => about(one.denied_tools)?.includes('*'))) return false;
  const own = chain.map((one) => about(one.tool_overrides)).filter((list) => list !== undefined);
  if (own.length > 0) return own.flat().length > 0;
  const exposedTools = about(policy.exposed_tools);
  return exposedTools === undefined ? opensUnknown : exposedTools.length > 0;
}

/**
 * Whether a URI in its usual spelling, which the server does not list, may be read: a template that makes it is allowed,
 * or a list has the URI itself. What is denied by name stays denied.
 */
export function naivelyReadable(policy: RandomPolicy, agent: string, server: string, uri: string): boolean {
  const isNamed = naivelyAllowed(withDefault(policy, false), agent, server, 'resource', uri);
  if (isDenied(policy, agent, server, uri)) return false;
  return NAMES.template
    .filter((template) => uri.startsWith(template.slice(0, template.indexOf('{'))))
    .some(
      (template) =>
        naivelyAllowed(policy, agent, server, 'template', template) ||
        (isNamed && !isDenied(policy, agent, server, template)),
    );
}

/** Whether it is denied by name regardless of the lists. Checked with a policy that would otherwise allow it. */
function isDenied(policy: RandomPolicy, agent: string, server: string, uri: string): boolean {
  const open = withDefault(policy, true);
  delete open.exposed_resources;
  for (const one of Object.values(open.agent_policies ?? {})) {
    delete one.allowed_servers;
    delete one.denied_servers;
    delete one.resource_overrides;
  }
  return !naivelyAllowed(open, agent, server, 'resource', uri);
}

function withDefault(policy: RandomPolicy, allows: boolean): RandomPolicy {
  return { ...structuredClone(policy), default_policy: { ...policy.default_policy, allow_unknown_resources: allows } };
}

function withParents(policies: Record<string, RandomAgentPolicy>, name: string): RandomAgentPolicy[] {
  const own = policies[name]!;
  return [own, ...(own.extends ?? []).flatMap((parent) => withParents(policies, parent))];
}
