/**
 * From a task to the least set of tools that it needs, with the reason for each. Rules are data: a task begins with one
 * profile, and every rule that fits adds to it.
 */

import { GatewayError } from '../base/errors.ts';
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { didYouMean } from '../base/similar.ts';
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
  /** What it is; null where its server could not be asked, and a rule names it. */
  readonly entry: Entry | null;
  readonly reasons: readonly string[];
}

/** The tools that a task needs, with reasons. */
export interface Plan {
  readonly task: Task;
  /** What it began with; null for nothing. */
  readonly profile: string | null;
  /** The rules that fit, by name. */
  readonly rules: readonly string[];
  readonly tools: readonly PlannedTool[];
  /** What rules name and a server, though it is there, does not offer: a sentence for each. */
  readonly missing: readonly string[];
}

/** A server as a plan has to know it. */
export interface PlannedServer {
  readonly key: string;
  readonly namespace: string;
  /** Whether what it offers is known. */
  readonly present: boolean;
}

interface NeededTools {
  readonly reason: string;
  readonly tools: ServerLists;
  readonly isShipped: boolean;
}

/**
 * The tools that a task needs, by rules and profiles. `servers` tells which of them could not be asked.
 *
 * @example
 * const task = taskFromValue({ description: 'Fix the login page', type: 'frontend' });
 * const plan = planTask(task, gateway.config.tasks.rules(), gateway.catalog, gateway.statuses());
 */
export function planTask(task: Task, rules: TaskRules, catalog: Catalog, servers: readonly PlannedServer[] = []): Plan {
  const profile = profileOf(task, rules);
  const fitting = rules.rules.flatMap((rule) => {
    const reason = reasonOf(rule, task);
    return reason === null ? [] : [{ rule, reason }];
  });
  const grants: NeededTools[] = profile === null ? [] : [granted(profile, `profile "${profile.name}"`)];
  for (const { rule, reason } of fitting) {
    const why = `rule "${rule.name}": ${reason}`;
    grants.push({ reason: why, tools: rule.tools, isShipped: rule.isShipped });
    for (const name of rule.profiles) {
      const more = rules.profiles.find((one) => one.name === name);
      if (more !== undefined) grants.push(granted(more, why));
    }
  }
  return {
    task,
    profile: profile?.name ?? null,
    rules: fitting.map(({ rule }) => rule.name),
    tools: [...known(grants, catalog), ...unchecked(grants, catalog, servers)],
    missing: missing(grants, catalog, servers),
  };
}

function granted({ tools, isShipped }: TaskProfile, reason: string): NeededTools {
  return { reason, tools, isShipped };
}

/** Throws where the task names a profile that there is not. */
export function requireProfile({ profile }: Task, { profiles }: TaskRules): void {
  if (profile === '' || profiles.some(({ name }) => name === profile)) return;
  const names = profiles.map(({ name }) => name);
  const hint = didYouMean(profile, names) || ` There are ${names.join(', ') || 'none'}.`;
  throw new GatewayError('request_invalid', `There is no task profile "${profile}".${hint}`);
}

/** The one that it names, or its type, or that for all others. One that is not there, or no more, is nothing. */
function profileOf({ profile, type }: Task, { profiles }: TaskRules): TaskProfile | null {
  if (profile !== '') return profiles.find(({ name }) => name === profile) ?? null;
  const folded = type.toLowerCase();
  const typed = profiles.find(
    ({ name, types }) => folded !== '' && [name, ...types].some((one) => one.toLowerCase() === folded),
  );
  return typed ?? profiles.find(({ name }) => name === 'default') ?? null;
}

/** Why a rule holds for a task; null where it does not. One that asks for nothing holds for all. */
function reasonOf({ services, types, keywords }: TaskRule, task: Task): string | null {
  if (services.length + types.length + keywords.length === 0) return 'holds for every task';
  const type = task.type.toLowerCase();
  if (type !== '' && types.some((one) => matchesPattern(one.toLowerCase(), type))) return `the type is "${task.type}"`;
  const service = task.service.toLowerCase();
  const parts = [service, ...wordsOf(task.service)];
  const isService =
    service !== '' && services.some((one) => parts.some((part) => matchesPattern(one.toLowerCase(), part)));
  if (isService) return `the service is "${task.service}"`;
  const said = wordsOf(task.description);
  for (const keyword of keywords) {
    const found = phraseIn(said, keyword);
    if (found !== null) return `the description says "${found}"`;
  }
  return null;
}

/** Small letters; `userApi-v2` has the words user, api and v2. */
function wordsOf(text: string): string[] {
  return text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

/** The words that a keyword is found as; null where it is not. Its words stand side by side, and are whole ones. */
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

function known(grants: readonly NeededTools[], { claims }: Catalog): PlannedTool[] {
  return [...claims.tool.values()].flatMap((entry) => {
    if (entry === null || entry.sourceId === BUILT_IN) return [];
    const reasons = grants.filter(({ tools }) => lists(tools, entry)).map(({ reason }) => reason);
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

/** A server that could not be asked may well have what the rules name. */
function unchecked(
  grants: readonly NeededTools[],
  { claims }: Catalog,
  servers: readonly PlannedServer[],
): PlannedTool[] {
  const asked = new Set([...claims.tool.values()].map((entry) => entry?.sourceKey));
  return servers
    .filter(({ key, present }) => !present && !asked.has(key))
    .flatMap(({ key, namespace }) => {
      const found = new Map<string, string[]>();
      for (const { tools, reason } of grants)
        for (const [server, names] of Object.entries(tools)) {
          if (!matchesServer(server, key, namespace)) continue;
          for (const name of names.filter((one) => !isPattern(one) && !isCategory(one)))
            found.set(name, [...new Set([...(found.get(name) ?? []), reason])]);
        }
      return [...found].map(([tool, reasons]) => ({ server: key, tool, entry: null, reasons }));
    });
}

function missing(grants: readonly NeededTools[], { claims }: Catalog, servers: readonly PlannedServer[]): string[] {
  const found = new Set<string>();
  const entries = [...claims.tool.values()].filter((entry) => entry !== null);
  for (const { tools, reason, isShipped } of grants) {
    if (isShipped) continue;
    for (const [server, names] of Object.entries(tools)) {
      const meant = servers.filter(({ key, namespace }) => matchesServer(server, key, namespace));
      if (meant.length === 0 || meant.some(({ present }) => !present)) continue;
      const own = entries
        .filter(({ sourceKey, namespace }) => matchesServer(server, sourceKey, namespace))
        .map(({ item }) => item.name);
      for (const name of names)
        if (!isCategory(name) && !own.some((one) => matchesPattern(name, one)))
          found.add(`"${name}" of "${server}" (${reason}) is not there.${didYouMean(name, own)}`);
    }
  }
  return [...found];
}
