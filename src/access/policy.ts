/**
 * Who may use what. One order of decision for every kind of item, for listing and for calling: what is denied by name stays
 * denied; then the server has to be one of the agent's, then the agent's own list for it decides, then the list for all,
 * then the default. What is allowed so far may still depend on conditions.
 */
import { BUILT_IN, type Entry } from '../catalog/entry.ts';
import { matchesPattern } from '../catalog/pattern.ts';
import type { AgentPolicy, ByKind, Condition, PolicyConfig, ServerLists } from '../config/policy.ts';
import { isAbout, lacks } from './condition.ts';

/** One step of a decision. */
export interface Finding {
  /** The place in the configuration. */
  readonly rule: string;
  readonly verdict: 'allow' | 'deny' | 'passes';
  readonly text: string;
}

export interface Decision {
  readonly allowed: boolean;
  /** In their order; the last one decides. */
  readonly findings: readonly Finding[];
}

/** The rules that hold for one agent. */
export interface Rules {
  readonly policy: PolicyConfig;
  readonly agent: string;
  /** Its own policy first, then those that it extends, each once. Empty where it has none. */
  readonly lineage: readonly AgentPolicy[];
  readonly conditions: readonly Condition[];
}

/** An agent has the policy of its name, or else the first whose pattern fits. */
export function rulesFor(policy: PolicyConfig, agent: string): Rules {
  const { agents } = policy;
  const own = agents.find(({ name }) => name === agent) ?? agents.find(({ name }) => matchesPattern(name, agent));
  const lineage: AgentPolicy[] = [];
  const add = (one: AgentPolicy | undefined) => {
    if (one === undefined || lineage.includes(one)) return;
    lineage.push(one);
    for (const parent of one.extends) add(agents.find(({ name }) => name === parent));
  };
  add(own);
  const conditions = [...policy.conditions, ...lineage.flatMap((one) => one.conditions)];
  return { policy, agent, lineage, conditions };
}

/** Whether the agent may use the item at this time. */
export function isAllowed(rules: Rules, entry: Entry, now: Date): boolean {
  for (const step of STEPS) {
    const finding = step(rules, entry);
    if (finding.verdict === 'deny') return false;
    if (finding.verdict === 'allow') break;
  }
  return rules.conditions.every((condition) => lacks(condition, entry, now) === null);
}

/** The same, with every step on the way. */
export function explain(rules: Rules, entry: Entry, now: Date): Decision {
  const findings: Finding[] = [];
  for (const step of STEPS) {
    const finding = step(rules, entry);
    findings.push(finding);
    if (finding.verdict === 'deny') return { allowed: false, findings };
    if (finding.verdict === 'allow') break;
  }
  for (const condition of rules.conditions) {
    if (!isAbout(condition, entry)) continue;
    const lacking = lacks(condition, entry, now);
    const text = lacking ?? (condition.arguments === null ? 'is met' : 'is met, if the arguments of a call fit');
    findings.push({ rule: condition.place, verdict: lacking === null ? 'passes' : 'deny', text });
    if (lacking !== null) return { allowed: false, findings };
  }
  return { allowed: true, findings };
}

type Step = (rules: Rules, entry: Entry) => Finding;

/** In this order; the last one always decides. */
const STEPS: readonly Step[] = [byDenial, byServer, byOverride, byExposure, byDefault];

/** What the protocol calls the kinds in the configuration. */
const plural = { tool: 'tools', resource: 'resources', prompt: 'prompts' } as const;

function groupOf({ kind }: Entry): keyof ByKind<unknown> {
  return kind === 'template' ? 'resource' : kind;
}

function byDenial({ policy, lineage }: Rules, entry: Entry): Finding {
  const group = groupOf(entry);
  const rule = `denied_${plural[group]}`;
  if (listFor(policy.denied[group], entry)?.some((name) => matchesPattern(name, entry.item.name)) === true)
    return { rule, verdict: 'deny', text: `lists "${entry.item.name}"` };
  for (const { name, deniedServers, denied } of lineage) {
    if (namesServer(deniedServers, entry))
      return { rule: `agent_policies.${name}.denied_servers`, verdict: 'deny', text: `lists "${entry.sourceKey}"` };
    if (listFor(denied[group], entry)?.some((pattern) => matchesPattern(pattern, entry.item.name)) === true)
      return { rule: `agent_policies.${name}.${rule}`, verdict: 'deny', text: `lists "${entry.item.name}"` };
  }
  // Toolgate's own tools are switched on by `controls`; nobody has to list them.
  if (entry.sourceId === BUILT_IN) return { rule: 'controls', verdict: 'allow', text: 'offers this tool' };
  return { rule, verdict: 'passes', text: 'denies it to nobody' };
}

function byServer({ lineage, agent }: Rules, entry: Entry): Finding {
  if (lineage.length === 0) return { rule: 'agent_policies', verdict: 'passes', text: `has no policy for "${agent}"` };
  const listing = lineage.filter(({ allowedServers }) => allowedServers !== null);
  const allowing = listing.find(({ allowedServers }) => namesServer(allowedServers!, entry));
  const rule = `agent_policies.${(allowing ?? listing[0] ?? lineage[0]!).name}.allowed_servers`;
  if (allowing !== undefined) return { rule, verdict: 'passes', text: `lists "${entry.sourceKey}"` };
  if (listing.length === 0) return { rule, verdict: 'passes', text: 'is not set: all servers are allowed' };
  return { rule, verdict: 'deny', text: `does not list "${entry.sourceKey}"` };
}

const overrideKeys = { tool: 'tool_overrides', resource: 'resource_overrides', prompt: 'prompt_overrides' } as const;

function byOverride({ lineage }: Rules, entry: Entry): Finding {
  const group = groupOf(entry);
  const key = overrideKeys[group];
  const own = lineage.filter(({ overrides }) => listFor(overrides[group], entry) !== null);
  const [first] = own;
  if (first === undefined)
    return { rule: key, verdict: 'passes', text: `says nothing of "${entry.sourceKey}" for this agent` };
  const listing = own.find(({ overrides }) =>
    listFor(overrides[group], entry)!.some((pattern) => matchesPattern(pattern, entry.item.name)),
  );
  const rule = `agent_policies.${(listing ?? first).name}.${key}.${entry.sourceKey}`;
  if (listing !== undefined) return { rule, verdict: 'allow', text: `lists "${entry.item.name}"` };
  return { rule, verdict: 'deny', text: `does not list "${entry.item.name}"` };
}

function byExposure({ policy }: Rules, entry: Entry): Finding {
  const group = groupOf(entry);
  const key = `exposed_${plural[group]}`;
  const list = listFor(policy.exposed[group], entry);
  if (list === null) return { rule: key, verdict: 'passes', text: `says nothing of "${entry.sourceKey}"` };
  const rule = `${key}.${entry.sourceKey}`;
  if (list.some((pattern) => matchesPattern(pattern, entry.item.name)))
    return { rule, verdict: 'allow', text: `lists "${entry.item.name}"` };
  return { rule, verdict: 'deny', text: `does not list "${entry.item.name}"` };
}

function byDefault({ policy }: Rules, entry: Entry): Finding {
  const group = groupOf(entry);
  const allowed = policy.allowUnknown[group];
  return {
    rule: `default_policy.allow_unknown_${plural[group]}`,
    verdict: allowed ? 'allow' : 'deny',
    text: `is ${allowed}`,
  };
}

/** The names for the item's server in such a list; null where it says nothing of that. */
function listFor(lists: ServerLists, entry: Entry): readonly string[] | null {
  const { sourceKey, namespace } = entry;
  const found = Object.keys(lists).filter((server) => isServer(server, sourceKey, namespace));
  return found.length === 0 ? null : found.flatMap((server) => lists[server]!);
}

function namesServer(servers: readonly string[], { sourceKey, namespace }: Entry): boolean {
  return servers.some((server) => isServer(server, sourceKey, namespace));
}

/** Servers go by their key, or by their namespace. */
export function isServer(pattern: string, key: string, namespace: string): boolean {
  return matchesPattern(pattern, key) || (namespace !== '' && matchesPattern(pattern, namespace));
}

/** Whether the name of something inside a template's reach is denied to the agent. */
export function deniesName(rules: Rules, template: Entry, uri: string): boolean {
  return byDenial(rules, { ...template, item: { ...template.item, name: uri } }).verdict === 'deny';
}
