/**
 * Decides which agent may use which item, in the same order for every kind of item, for listing and for calling. First,
 * an item that is denied by name stays denied. Second, the agent must have access to the server. Third, the agent's own
 * list for the server decides; without one the list for all agents, and without that the default. Finally, an item
 * allowed so far may still depend on conditions.
 */
import { getOrMake, memo } from '../base/memo.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { isCategory, isOfCategory } from '../catalog/category.ts';
import { BUILT_IN, type Entry, matchesServer, type Owner } from '../catalog/entry.ts';
import {
  type AgentLimits,
  type CallLimitsSection,
  inheritLimits,
  resolveCallLimits,
  resolveToolLimits,
} from '../config/call-limits.ts';
import type { AgentPolicy, ByKind, Condition, PolicyConfig, ServerLists } from '../config/policy.ts';
import { hasArguments } from './argument-match.ts';
import type { Circumstances } from './circumstances.ts';
import { isAbout, isTime, lacks, lacksExpression } from './condition.ts';
import { isNormalUri, meaningsOf, readingsOf, spellingsOf } from './uri-spelling.ts';

/** One step of a decision. */
export interface Finding {
  /** The key in the configuration. */
  readonly rule: string;
  readonly verdict: 'allow' | 'deny' | 'passes';
  readonly text: string;
}

/** Whether something is allowed, and why. */
export interface Decision {
  readonly allowed: boolean;
  /** In order; the last one decides. */
  readonly findings: readonly Finding[];
}

/** The parts of an entry that say which server it belongs to, and what it is. */
type ServerPart = Pick<Entry, 'kind' | 'sourceId' | 'sourceKey' | 'namespace'>;

/** The rules for one agent, and for all others with the same policy. */
export interface Rules {
  readonly policy: PolicyConfig;
  /** Its own policy first, then those that it extends, each once. Empty if it has none. */
  readonly lineage: readonly AgentPolicy[];
  /** Those that are enforced. */
  readonly conditions: readonly Condition[];
  /** Conditions that are only tried. */
  readonly tried: readonly Condition[];
  /** Whether all of this is only tried. */
  readonly isDryRun: boolean;
  /** What the rules say about each server, computed when it is first needed. */
  readonly servers: Map<string, ServerRules>;
}

/** The names in a list of the configuration. */
interface RuleList {
  readonly rule: string;
  readonly names: ReadonlySet<string>;
  /** The names that are patterns. */
  readonly patterns: readonly string[];
  /** The names that are categories. */
  readonly categories: readonly string[];
  /** All ways to write the names that are URIs. Empty for tools and prompts. */
  readonly spellings: ReadonlySet<string>;
}

/** What the rules say about one kind of items of one server. */
interface ServerRules {
  /** What is denied by name. */
  readonly denied: readonly RuleList[];
  /** Whether the agent has access to the server at all. */
  readonly access: Finding;
  /** The agent's own lists for it; empty if it has none. */
  readonly overrides: readonly RuleList[];
  readonly exposed: RuleList | null;
  readonly fallback: Finding;
}

/** Rules by the policy of the agent: many agents have the same one. */
const rulesOf = memo((_: PolicyConfig) => new Map<AgentPolicy | null, Rules>());

/** An agent has the policy of its name, or else the first whose pattern matches. */
export function rulesFor(policy: PolicyConfig, agent: string): Rules {
  const { agents } = policy;
  const own =
    agents.find(({ name }) => name === agent) ?? agents.find(({ name }) => matchesPattern(name, agent)) ?? null;
  return getOrMake(rulesOf(policy), own, () => {
    const lineage = own === null ? [] : lineageOf(own, agents);
    const conditions = [...policy.conditions, ...lineage.flatMap((one) => one.conditions)];
    return {
      policy,
      lineage,
      conditions: conditions.filter(({ dryRun }) => !dryRun),
      tried: conditions.filter(({ dryRun }) => dryRun),
      isDryRun: policy.dryRun || own?.dryRun === true,
      servers: new Map<string, ServerRules>(),
    };
  });
}

function lineageOf(own: AgentPolicy, agents: readonly AgentPolicy[]): AgentPolicy[] {
  const lineage: AgentPolicy[] = [];
  const add = (one: AgentPolicy | undefined) => {
    if (one === undefined || lineage.includes(one)) return;
    lineage.push(one);
    for (const parent of one.extends) add(agents.find(({ name }) => name === parent));
  };
  add(own);
  return lineage;
}

/** Whether the agent may use the item in these circumstances. */
export function isAllowed(rules: Rules, entry: Entry, at: Circumstances): boolean {
  return decide(rules, entry, null) && rules.conditions.every((condition) => lacks(condition, entry, at) === null);
}

/** Whether the item or its server is denied by name. A grant does not override that. */
export function isBarred(rules: Rules, entry: Entry): boolean {
  const { denied, access } = serverRules(rules, entry);
  return (
    denied.some((one) => denies(one, entry)) || (access.verdict === 'deny' && access.rule.endsWith('.denied_servers'))
  );
}

/**
 * Whether the rules could allow anything of a server whose items are not known yet. If any condition is not met now, the
 * answer is no: the condition may be about all that the server has.
 */
export function mayUse(rules: Rules, { id, key, namespace }: Owner, at: Circumstances): boolean {
  const isMet = (condition: Condition) =>
    isTime(condition, at.now) && (hasArguments(condition) || lacksExpression(condition, at) === null);
  if (!rules.conditions.every(isMet)) return false;
  return (['tool', 'resource', 'prompt'] as const).some((kind) => {
    const server = { kind, sourceId: id, sourceKey: key, namespace };
    const { denied, access, overrides, exposed, fallback } = serverRules(rules, server);
    if (denied.some(({ patterns }) => patterns.includes('*'))) return false;
    if (access.verdict === 'deny') return false;
    if (overrides.length > 0) return overrides.some(({ names }) => names.size > 0);
    return exposed === null ? fallback.verdict === 'allow' : exposed.names.size > 0;
  });
}

/** Like `isAllowed`, with every step of the decision. */
export function explain(rules: Rules, entry: Entry, at: Circumstances): Decision {
  const findings: Finding[] = [];
  if (!decide(rules, entry, findings)) return { allowed: false, findings };
  for (const condition of [...rules.tried, ...rules.conditions]) {
    if (!isAbout(condition, entry)) continue;
    const lacking = lacks(condition, entry, at);
    const text = lacking ?? (!hasArguments(condition) ? 'is met' : 'is met, if the arguments of a call fit');
    const isPassed = lacking === null || condition.dryRun;
    const note = condition.dryRun ? ' (dry run)' : '';
    findings.push({ rule: condition.place, verdict: isPassed ? 'passes' : 'deny', text: text + note });
    if (!isPassed) return { allowed: false, findings };
  }
  return { allowed: true, findings };
}

/** The decision without conditions. Adds each step to `findings`, unless that is null. */
function decide(rules: Rules, entry: Entry, findings: Finding[] | null): boolean {
  const { denied, access, overrides, exposed, fallback } = serverRules(rules, entry);
  const { name } = entry.item;
  const key = plural[groupOf(entry)];
  const denial = denied.find((one) => denies(one, entry));
  if (denial !== undefined) {
    findings?.push(listed(denial, entry, true, 'deny'));
    return false;
  }
  findings?.push({ rule: `denied_${key}`, verdict: 'passes', text: 'does not list it' });

  findings?.push(access);
  if (access.verdict !== 'passes') return access.verdict === 'allow';

  const listing = overrides.find((one) => lists(one, name, entry));
  const [own] = overrides;
  if (own !== undefined) {
    findings?.push(listed(listing ?? own, entry, listing !== undefined));
    return listing !== undefined;
  }
  findings?.push({
    rule: overrideKeys[groupOf(entry)],
    verdict: 'passes',
    text: 'is not set for this agent and server',
  });

  if (exposed !== null) {
    const allowed = lists(exposed, name, entry);
    findings?.push(listed(exposed, entry, allowed));
    return allowed;
  }
  findings?.push(
    { rule: `exposed_${key}`, verdict: 'passes', text: `does not mention "${entry.sourceKey}"` },
    fallback,
  );
  return fallback.verdict === 'allow';
}

function listed(
  listing: RuleList,
  entry: Entry,
  isIn: boolean,
  verdict: 'allow' | 'deny' = isIn ? 'allow' : 'deny',
): Finding {
  const { name } = entry.item;
  // A list of categories does not show why it includes this tool.
  const category =
    isIn && !listsName(listing, name) ? listing.categories.find((one) => isOfCategory(one, entry)) : null;
  const by = category == null ? '' : ` by "${category}"`;
  return { rule: listing.rule, verdict, text: `${isIn ? 'lists' : 'does not list'} "${name}"${by}` };
}

function lists(listing: RuleList, name: string, entry: Entry): boolean {
  return listsName(listing, name) || listing.categories.some((one) => isOfCategory(one, entry));
}

/** In doubt a URI is denied: in any of its spellings. */
function denies(listing: RuleList, entry: Entry): boolean {
  const { name } = entry.item;
  return lists(listing, name, entry) || (entry.kind === 'resource' && mayMean(listing, name));
}

function mayMean(listing: RuleList, uri: string): boolean {
  for (const meaning of meaningsOf(uri)) if (listing.spellings.has(meaning) || listsName(listing, meaning)) return true;
  return false;
}

/** In doubt a URI is not listed: a pattern has to match whatever a server reads. */
function listsUri({ names, patterns }: RuleList, uri: string): boolean {
  if (names.has(uri)) return true;
  if (patterns.length === 0 || !isNormalUri(uri)) return false;
  const readings = readingsOf(uri);
  return patterns.some((pattern) => readings.every((reading) => matchesPattern(pattern, reading)));
}

function listsName({ names, patterns }: RuleList, name: string): boolean {
  return names.has(name) || (patterns.length > 0 && patterns.some((pattern) => matchesPattern(pattern, name)));
}

/** The kinds of items as they are called in the configuration. */
const plural = { tool: 'tools', resource: 'resources', prompt: 'prompts' } as const;
const overrideKeys = { tool: 'tool_overrides', resource: 'resource_overrides', prompt: 'prompt_overrides' } as const;

function groupOf({ kind }: ServerPart): keyof ByKind<unknown> {
  return kind === 'template' ? 'resource' : kind;
}

function serverRules(rules: Rules, entry: ServerPart): ServerRules {
  const group = groupOf(entry);
  const key = `${group} ${entry.sourceId} ${entry.sourceKey}\n${entry.namespace}`;
  return getOrMake(rules.servers, key, () => findServerRules(rules, entry, group));
}

function findServerRules(rules: Rules, entry: ServerPart, group: keyof ByKind<unknown>): ServerRules {
  const { policy, lineage } = rules;
  const { sourceKey } = entry;
  const listing = (rule: string, lists: ServerLists): RuleList[] => {
    const names = listFor(lists, entry);
    if (names === null) return [];
    const categories = names.filter(isCategory);
    const uris = group === 'resource' ? names : [];
    const spellings = new Set(uris.flatMap((uri) => [...spellingsOf(uri)]));
    return [{ rule, names: new Set(names), patterns: names.filter(isPattern), categories, spellings }];
  };
  const denials = `denied_${plural[group]}`;
  const override = overrideKeys[group];
  const exposed = `exposed_${plural[group]}`;
  const unknown = policy.allowUnknown[group];
  // Where the tools of a server are closed, the rest of it is closed too, unless a rule opens it.
  const allowed = unknown ?? opensTools(rules, entry);
  return {
    denied: [
      ...listing(`${denials}.${sourceKey}`, policy.denied[group]),
      ...lineage.flatMap(({ name, denied }) =>
        listing(`agent_policies.${name}.${denials}.${sourceKey}`, denied[group]),
      ),
    ],
    access: accessTo(entry, lineage),
    overrides: lineage.flatMap(({ name, overrides }) =>
      listing(`agent_policies.${name}.${override}.${sourceKey}`, overrides[group]),
    ),
    exposed: listing(`${exposed}.${sourceKey}`, policy.exposed[group])[0] ?? null,
    fallback: {
      rule: `default_policy.allow_unknown_${plural[group]}`,
      verdict: allowed ? 'allow' : 'deny',
      text:
        unknown === null
          ? `is not set, and the agent may use ${allowed ? '' : 'no '}tools of "${sourceKey}"`
          : `is ${allowed}`,
    },
  };
}

/** Whether the rules could allow a tool of the server. */
function opensTools(rules: Rules, entry: ServerPart): boolean {
  const { denied, overrides, exposed, fallback } = serverRules(rules, { ...entry, kind: 'tool' });
  if (denied.some(({ patterns }) => patterns.includes('*'))) return false;
  if (overrides.length > 0) return overrides.some(({ names }) => names.size > 0);
  return exposed === null ? fallback.verdict === 'allow' : exposed.names.size > 0;
}

function accessTo(entry: ServerPart, lineage: readonly AgentPolicy[]): Finding {
  const { sourceId, sourceKey } = entry;
  const denying = lineage.find(({ deniedServers }) => namesServer(deniedServers, entry));
  if (denying !== undefined)
    return { rule: `agent_policies.${denying.name}.denied_servers`, verdict: 'deny', text: `lists "${sourceKey}"` };
  // Toolgate's own tools are switched on by `controls` and need not be listed.
  if (sourceId === BUILT_IN) return { rule: 'controls', verdict: 'allow', text: 'offers this tool' };
  if (lineage.length === 0) return { rule: 'agent_policies', verdict: 'passes', text: 'does not mention this agent' };
  const listing = lineage.filter(({ allowedServers }) => allowedServers !== null);
  const allowing = listing.find(({ allowedServers }) => namesServer(allowedServers!, entry));
  const rule = `agent_policies.${(allowing ?? listing[0] ?? lineage[0]!).name}.allowed_servers`;
  if (allowing !== undefined) return { rule, verdict: 'passes', text: `lists "${sourceKey}"` };
  if (listing.length === 0) return { rule, verdict: 'passes', text: 'is not set: all servers are allowed' };
  return { rule, verdict: 'deny', text: `does not list "${sourceKey}"` };
}

/** The names for the item's server; null if no list is about that server. */
function listFor(lists: ServerLists, entry: ServerPart): readonly string[] | null {
  const found = Object.keys(lists).filter((server) => namesServer([server], entry));
  return found.length === 0 ? null : found.flatMap((server) => lists[server]!);
}

function namesServer(servers: readonly string[], { sourceId, sourceKey, namespace }: ServerPart): boolean {
  // Toolgate itself is not a server: patterns do not match it.
  if (sourceId === BUILT_IN) return servers.includes(sourceKey);
  return servers.some((server) => matchesServer(server, sourceKey, namespace));
}

/** A URI that a template makes, as if its server listed it. */
export function expandedEntry(template: Entry, uri: string): Entry {
  const prefix = template.name.slice(0, template.name.length - template.item.name.length);
  return { ...template, kind: 'resource', name: `${prefix}${uri}`, item: { ...template.item, name: uri } };
}

/**
 * Whether the agent may read a URI that a template makes: the template is allowed, or a list has the URI itself. A URI
 * that is denied by name, in any spelling, stays denied. Where a server has such rules, unusual spellings are refused.
 */
export function isUriAllowed(rules: Rules, template: Entry, uri: string, at: Circumstances): boolean {
  const { denied, access, overrides, exposed } = serverRules(rules, template);
  if (denied.length > 0 && (!isNormalUri(uri) || denied.some((one) => mayMean(one, uri)))) return false;
  if (!meetsConditions(rules, template, uri, at)) return false;
  if (isAllowed(rules, template, at)) return true;
  if (denied.some((one) => denies(one, template)) || access.verdict === 'deny') return false;
  if (overrides.length > 0) return overrides.some((one) => listsUri(one, uri));
  return exposed !== null && listsUri(exposed, uri);
}

function meetsConditions({ conditions }: Rules, template: Entry, uri: string, at: Circumstances): boolean {
  if (conditions.length === 0) return true;
  const meant = [template, ...[...meaningsOf(uri)].map((one) => expandedEntry(template, one))];
  return conditions.every((condition) => meant.every((entry) => lacks(condition, entry, at) === null));
}

/** Whether some URI that the template makes may be allowed although the template is not. */
export function opensSome(rules: Rules, template: Entry): boolean {
  const { denied, access, overrides, exposed } = serverRules(rules, template);
  if (denied.some((one) => denies(one, template)) || access.verdict === 'deny') return false;
  const lists = overrides.length > 0 ? overrides : exposed === null ? [] : [exposed];
  return lists.some(({ names }) => names.size > 0);
}

/**
 * An agent's call limits: from its own policy, then from those it extends, key by key, then from the default. Null for
 * no limits.
 */
export function agentLimits(policy: PolicyConfig | null, agent: string): AgentLimits | null {
  if (policy === null) return null;
  const { lineage } = rulesFor(policy, agent);
  const { defaultLimits } = policy;
  const limits = merged(lineage.map((one) => one.limits)) ?? defaultLimits.limits;
  const toolLimits = mergedByTool(lineage.map((one) => one.toolLimits)) ?? defaultLimits.toolLimits;
  if (limits === null && toolLimits === null) return null;
  return { all: limits === null ? null : resolveCallLimits(limits), tools: resolveToolLimits(toolLimits ?? {}) };
}

/** Earlier ones win. */
function merged(all: readonly (CallLimitsSection | null)[]): CallLimitsSection | null {
  const given = all.filter((one) => one !== null);
  return given.length === 0 ? null : given.reduce(inheritLimits);
}

function mergedByTool(all: readonly (Readonly<Record<string, CallLimitsSection>> | null)[]) {
  const given = all.filter((one) => one !== null);
  if (given.length === 0) return null;
  const tools = new Set(given.flatMap((one) => Object.keys(one)));
  return Object.fromEntries([...tools].map((tool) => [tool, merged(given.map((one) => one[tool] ?? null))!]));
}
