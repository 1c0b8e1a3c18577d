/**
 * Finds the least set of tools that a task needs, with the reason for each. Rules are data: a task starts with one
 * profile, and every rule that matches adds to it. A plan is a pure function of task, rules and catalog.
 */
import { GatewayError } from '../base/errors.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isCategory, isOfCategory } from '../catalog/category.ts';
import { BUILT_IN, type Entry, matchesServer } from '../catalog/entry.ts';
import type { ServerLists } from '../config/policy.ts';
import type { Task } from '../config/task.ts';
import type { TaskProfile, TaskRule, TaskRules } from '../config/tasks.ts';

/** A tool that a task needs. */
export interface PlannedTool {
  /** The key of its server. */
  readonly server: string;
  /** The server's own name for it. */
  readonly tool: string;
  /** Null if a rule names the tool and its server could not be asked. */
  readonly entry: Entry | null;
  readonly reasons: readonly string[];
}

/** The tools that a task needs, with reasons. */
export interface Plan {
  readonly task: Task;
  /** The profile that it starts with; null for none. */
  readonly profile: string | null;
  /** The names of the rules that match. */
  readonly rules: readonly string[];
  readonly tools: readonly PlannedTool[];
  /** What rules name and a connected server does not offer: one sentence each. */
  readonly missing: readonly string[];
  /** Why the plan may hold less than the task needs: no rule matches, an unknown type, a rule that adds nothing. One sentence each. */
  readonly notes: readonly string[];
}

/** What a plan has to know about a server. */
export interface PlannedServer {
  readonly key: string;
  readonly namespace: string;
  /** Whether its offer is known. */
  readonly present: boolean;
}

interface NeededTools {
  readonly reason: string;
  readonly tools: ServerLists;
  readonly isShipped: boolean;
}

/**
 * The tools that a task needs, according to rules and profiles. `servers` says which of them could not be asked.
 *
 * @example
 * const task = taskFromValue({ description: 'Fix the login page', type: 'frontend' });
 * const plan = planTask(task, gateway.config.tasks.rules(), gateway.catalog, gateway.statuses());
 */
export function planTask(task: Task, rules: TaskRules, catalog: Catalog, servers: readonly PlannedServer[] = []): Plan {
  const profile = profileOf(task, rules);
  const matching = rules.rules.flatMap((rule) => {
    const reason = reasonOf(rule, task);
    return reason === null ? [] : [{ rule, reason }];
  });
  const groups: NeededTools[] = profile === null ? [] : [groupOf(profile, `profile "${profile.name}"`)];
  for (const { rule, reason } of matching) {
    const why = whyOf(rule, reason);
    groups.push({ reason: why, tools: rule.tools, isShipped: rule.isShipped });
    for (const name of rule.profiles) {
      const more = rules.profiles.find((one) => one.name === name);
      if (more !== undefined) groups.push(groupOf(more, why));
    }
  }
  const tools = [...offered(groups, catalog), ...unchecked(groups, catalog, servers)];
  const used = new Set(tools.flatMap(({ reasons }) => reasons));
  const idle = matching.filter(({ rule, reason }) => !used.has(whyOf(rule, reason)));
  return {
    task,
    profile: profile?.name ?? null,
    rules: matching.map(({ rule }) => rule.name),
    tools,
    missing: missing(groups, catalog, servers),
    notes: [
      ...unknownType(task, rules),
      ...(matching.length > 0 || isChosen(task, profile) ? [] : [noRule(profile)]),
      ...idle.map(
        ({ rule }) => `The rule "${rule.name}" matches and adds nothing: no server has a tool that it names.`,
      ),
    ],
  };
}

function whyOf({ name }: TaskRule, reason: string): string {
  return `rule "${name}": ${reason}`;
}

function noRule(profile: TaskProfile | null): string {
  const gets = profile === null ? 'no tools' : `only what the profile "${profile.name}" has`;
  return `No rule matches this task, so it gets ${gets}. Name a type, describe the task in other words, or add a rule.`;
}

/** A type that no profile and no rule knows is probably misspelt. */
function unknownType({ type }: Task, { profiles, rules }: TaskRules): string[] {
  if (type === '') return [];
  const known = [...profiles.flatMap(({ name, types }) => [name, ...types]), ...rules.flatMap(({ types }) => types)];
  if (known.some((one) => matchesPattern(one.toLowerCase(), type.toLowerCase()))) return [];
  const names = [...new Set(known)].filter((one) => !isPattern(one));
  const hint = didYouMean(type, names) || (names.length === 0 ? '' : ` Known types: ${names.join(', ')}.`);
  return [`The type "${type}" is unknown: no profile and no rule names it.${hint}`];
}

function groupOf({ tools, isShipped }: TaskProfile, reason: string): NeededTools {
  return { reason, tools, isShipped };
}

/** Throws if the task names a profile that does not exist. */
export function requireProfile({ profile }: Task, { profiles }: TaskRules): void {
  if (profile === '' || profiles.some(({ name }) => name === profile)) return;
  const names = profiles.map(({ name }) => name);
  const hint = didYouMean(profile, names) || ` There are ${names.join(', ') || 'none'}.`;
  throw new GatewayError('request_invalid', `There is no task profile "${profile}".${hint}`);
}

/** The profile that the task names, or else that of its type, or else the default one. Null if it does not exist. */
function profileOf(task: Task, { profiles }: TaskRules): TaskProfile | null {
  if (task.profile !== '') return profiles.find(({ name }) => name === task.profile) ?? null;
  const typed = profiles.find((one) => isChosen(task, one));
  return typed ?? profiles.find(({ name }) => name === 'default') ?? null;
}

/** Whether the task asks for this profile, by its name or by its type. */
function isChosen({ profile, type }: Task, chosen: TaskProfile | null): boolean {
  if (chosen === null) return false;
  if (profile !== '') return chosen.name === profile;
  const folded = type.toLowerCase();
  return folded !== '' && [chosen.name, ...chosen.types].some((one) => one.toLowerCase() === folded);
}

/** Why a rule matches a task; null if it does not. A rule without conditions matches every task. */
function reasonOf({ services, types, keywords }: TaskRule, task: Task): string | null {
  if (services.length + types.length + keywords.length === 0) return 'matches every task';
  const type = task.type.toLowerCase();
  if (type !== '' && types.some((one) => matchesPattern(one.toLowerCase(), type))) return `the type is "${task.type}"`;
  const service = task.service.toLowerCase();
  const parts = [service, ...wordsOf(task.service)];
  const isService =
    service !== '' && services.some((one) => parts.some((part) => matchesPattern(one.toLowerCase(), part)));
  if (isService) return `the service is "${task.service}"`;
  const words = wordsOf(task.description);
  for (const keyword of keywords) {
    const found = phraseIn(words, keyword);
    if (found !== null) return `the description says "${found}"`;
  }
  return null;
}

/** In lower case; `userApi-v2` has the words user, api and v2. */
function wordsOf(text: string): string[] {
  return text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

/** The words of a text that match a keyword; null if none do. They have to be whole words, next to each other. */
function phraseIn(words: readonly string[], keyword: string): string | null {
  const wanted = keyword
    .toLowerCase()
    .split(/[^\p{L}\p{N}*?]+/u)
    .filter((word) => word !== '');
  if (wanted.length === 0) return null;
  for (let at = 0; at + wanted.length <= words.length; at++) {
    const found = words.slice(at, at + wanted.length);
    if (wanted.every((pattern, i) => matchesPattern(pattern, found[i]!))) return found.join(' ');
  }
  return null;
}

function offered(groups: readonly NeededTools[], { claims }: Catalog): PlannedTool[] {
  return [...claims.tool.values()].flatMap((entry) => {
    if (entry === null || entry.sourceId === BUILT_IN) return [];
    const reasons = groups.filter(({ tools }) => lists(tools, entry)).map(({ reason }) => reason);
    if (reasons.length === 0) return [];
    return [{ server: entry.sourceKey, tool: entry.item.name, entry, reasons: [...new Set(reasons)] }];
  });
}

function lists(tools: ServerLists, entry: Entry): boolean {
  return Object.entries(tools).some(
    ([server, names]) =>
      matchesServer(server, entry.sourceKey, entry.namespace) &&
      names.some((name) => matchesPattern(name, entry.item.name) || isOfCategory(name, entry)),
  );
}

/** Tools that rules name, of servers that could not be asked. Those servers may have them. */
function unchecked(
  groups: readonly NeededTools[],
  { claims }: Catalog,
  servers: readonly PlannedServer[],
): PlannedTool[] {
  const asked = new Set([...claims.tool.values()].map((entry) => entry?.sourceKey));
  return servers
    .filter(({ key, present }) => !present && !asked.has(key))
    .flatMap(({ key, namespace }) => {
      const found = new Map<string, string[]>();
      for (const { tools, reason } of groups)
        for (const [server, names] of Object.entries(tools)) {
          if (!matchesServer(server, key, namespace)) continue;
          for (const name of names.filter((one) => !isPattern(one) && !isCategory(one)))
            found.set(name, [...new Set([...(found.get(name) ?? []), reason])]);
        }
      return [...found].map(([tool, reasons]) => ({ server: key, tool, entry: null, reasons }));
    });
}

function missing(groups: readonly NeededTools[], { claims }: Catalog, servers: readonly PlannedServer[]): string[] {
  const found = new Set<string>();
  const entries = [...claims.tool.values()].filter((entry) => entry !== null);
  for (const { tools, reason, isShipped } of groups) {
    if (isShipped) continue;
    for (const [server, names] of Object.entries(tools)) {
      const meant = servers.filter(({ key, namespace }) => matchesServer(server, key, namespace));
      if (meant.length === 0 || meant.some(({ present }) => !present)) continue;
      const own = entries
        .filter(({ sourceKey, namespace }) => matchesServer(server, sourceKey, namespace))
        .map(({ item }) => item.name);
      for (const name of names)
        if (!isCategory(name) && !own.some((one) => matchesPattern(name, one)))
          found.add(`"${name}" of "${server}" (${reason}) does not exist.${didYouMean(name, own)}`);
    }
  }
  return [...found];
}
