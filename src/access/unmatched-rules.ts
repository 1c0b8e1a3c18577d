/**
 * Finds names and patterns of a configuration that match nothing. Nearly always one is misspelled, and then too much is
 * denied, allowed, shown or hidden.
 */
import { isPattern, matchesPattern } from '../base/pattern.ts';
import { didYouMean, quotedList } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { isCategory } from '../catalog/category.ts';
import { canonicalName, type Entry, matchesServer } from '../catalog/entry.ts';
import { KINDS, type Kind } from '../catalog/item.ts';
import { matchesTemplate } from '../catalog/template.ts';
import type { Config } from '../config/config.ts';
import { MACROS } from '../config/macros.ts';
import type { ByKind, Condition, PolicyConfig, ServerLists } from '../config/policy.ts';
import { patternHint, type ServerName } from './pattern-hint.ts';
import { hasDefinitionOf, isMeant, type ToolReference, type Toolset } from './toolset.ts';

/** A server that rules may be about. */
export interface KnownServer extends ServerName {
  /** Whether its offer is known. It is not if the server is down or disabled. */
  readonly present: boolean;
}

/** A name or pattern that matches nothing. */
export interface UnmatchedRule {
  /** The part of the configuration, or the toolset. */
  readonly about: string;
  readonly message: string;
}

export type RuledConfig = Pick<Config, 'activeToolsets' | 'policy' | 'security' | 'servers' | 'folders'>;

/** A toolset, and whether it is meant for other projects too. */
export interface CheckedToolset extends Toolset {
  readonly isForAll: boolean;
}

/** The groups of items as the configuration has them. */
const GROUPS: Readonly<Record<keyof ByKind<unknown>, readonly Kind[]>> = {
  tool: ['tool'],
  resource: ['resource', 'template'],
  prompt: ['prompt'],
};
type RuleGroup = keyof typeof GROUPS;
const GROUP_NAMES = Object.keys(GROUPS) as RuleGroup[];

export function unmatchedRules(
  config: RuledConfig,
  toolsets: readonly CheckedToolset[],
  catalog: Catalog,
  servers: readonly KnownServer[],
): UnmatchedRule[] {
  const found: UnmatchedRule[] = [];
  const entries = KINDS.flatMap((kind) => [...catalog.claims[kind].values()]).filter((entry) => entry !== null);
  const absent = servers.filter(({ present }) => !present);
  const ofKinds = (kinds: readonly Kind[]) => entries.filter(({ kind }) => kinds.includes(kind));

  const { activeToolsets, policy, security } = config;
  checkNames('active_toolsets', 'active_toolsets', activeToolsets ?? [], {
    all: ofKinds(['tool', 'resource', 'template']),
    fits: (name, entry) => matchesPattern(name, entry.name),
    write: ({ name }) => name,
  });
  for (const toolset of toolsets) checkToolset(toolset);
  if (policy !== null) checkPolicy(policy);
  for (const { condition } of security.confirm) checkCondition('security', condition);
  for (const { place, tools } of security.grants) checkNames('security', place, tools, meant('tool'));
  for (const { key, tools } of [...config.servers, ...config.folders.named])
    checkOwn(
      'limits',
      `the limits in tools of server "${key}" are for`,
      key,
      tools.map(({ tool }) => tool),
      ['tool'],
    );
  return found;

  /** The items that rules of a group mean, by any of their names. */
  function meant(group: RuleGroup): Names {
    return { all: ofKinds(GROUPS[group]), fits: isMeantOrExpanded, write: canonicalName };
  }

  function checkNames(about: string, place: string, names: readonly string[], wanted: Names): void {
    const { all, fits, write } = wanted;
    for (const name of names) {
      // A category may match tools that do not exist yet.
      if (name === '*' || isCategory(name) || all.some((entry) => fits(name, entry))) continue;
      if (absent.some((server) => mayBelong(name, server))) continue;
      const given = wanted.hint?.() ?? '';
      const hint =
        given === '' ? patternHint(name, servers, all.map(write), write === canonicalName ? '.' : '_') : given;
      found.push({ about, message: `${place} has "${name}", which matches nothing.${hint}` });
    }
  }

  function checkToolset({ name, tools, isForAll }: CheckedToolset): void {
    const all = ofKinds(['tool']);
    for (const reference of tools) {
      const { namespacedName } = reference;
      // A toolset for all projects may well name servers that this one does not have.
      if (isForAll && !servers.some((server) => mayBelong(namespacedName, server))) continue;
      checkNames(`toolset ${name}`, 'it', [namespacedName], {
        all,
        fits: isMeant,
        write: canonicalName,
        hint: () => sameDefinitionHint(name, reference, all),
      });
    }
  }

  function checkPolicy({ exposed, denied, agents, conditions, defaultLimits }: PolicyConfig): void {
    checkAll('', (group) => `exposed_${group}s`, exposed);
    checkAll('', (group) => `denied_${group}s`, denied);
    for (const condition of conditions) checkCondition('policy', condition);
    checkToolLimits('default_policy.tool_limits', defaultLimits.toolLimits);
    for (const agent of agents) {
      const prefix = `agent_policies.${agent.name}.`;
      checkServers(`${prefix}allowed_servers`, agent.allowedServers ?? []);
      checkServers(`${prefix}denied_servers`, agent.deniedServers);
      checkAll(prefix, (group) => `${group}_overrides`, agent.overrides);
      checkAll(prefix, (group) => `denied_${group}s`, agent.denied);
      for (const condition of agent.conditions) checkCondition('policy', condition);
      checkToolLimits(`${prefix}tool_limits`, agent.toolLimits);
    }
  }

  function checkCondition(about: string, { place, about: names }: Condition): void {
    for (const group of GROUP_NAMES) checkNames(about, place, names[group] ?? [], meant(group));
  }

  /** Limits of an agent name tools as `server.tool`, by the server's key or its namespace. */
  function checkToolLimits(place: string, limits: Readonly<Record<string, unknown>> | null): void {
    checkNames('limits', place, Object.keys(limits ?? {}), {
      all: ofKinds(['tool']),
      fits: (name, entry) =>
        matchesPattern(name, canonicalName(entry)) || matchesPattern(name, `${entry.namespace}.${entry.item.name}`),
      write: canonicalName,
    });
  }

  function checkAll(prefix: string, keyOf: (group: RuleGroup) => string, lists: ByKind<ServerLists>): void {
    for (const group of GROUP_NAMES) {
      const key = prefix + keyOf(group);
      checkServers(key, Object.keys(lists[group]));
      for (const [server, names] of Object.entries(lists[group]))
        checkOwn('policy', `${key}.${server} lists`, server, names, GROUPS[group]);
    }
  }

  function checkServers(key: string, patterns: readonly string[]): void {
    const keys = servers.map((server) => server.key);
    for (const pattern of patterns) {
      const isMacros = pattern === MACROS && entries.some(({ item }) => item.uses !== undefined);
      if (pattern === 'toolgate' || isMacros || serversMeant(pattern).length > 0) continue;
      const message = `${key} names the server "${pattern}", which does not exist.${didYouMean(pattern, keys)}`;
      found.push({ about: 'policy', message });
    }
  }

  /** Checks names as the server itself has them. */
  function checkOwn(
    about: string,
    place: string,
    server: string,
    names: readonly string[],
    kinds: readonly Kind[],
  ): void {
    const servers = serversMeant(server);
    if (servers.length === 0 || servers.some(({ present }) => !present)) return;
    const own = ofKinds(kinds).filter((entry) => matchesServer(server, entry.sourceKey, entry.namespace));
    for (const name of names) {
      if (isCategory(name) || own.some((entry) => matchesPattern(name, entry.item.name) || isExpanded(name, entry)))
        continue;
      const hint = didYouMean(
        name,
        own.map(({ item }) => item.name),
      );
      found.push({ about, message: `${place} "${name}", which the server does not offer.${hint}` });
    }
  }

  function serversMeant(pattern: string): KnownServer[] {
    return servers.filter(({ key, namespace }) => matchesServer(pattern, key, namespace));
  }
}

interface Names {
  readonly all: readonly Entry[];
  fits(name: string, entry: Entry): boolean;
  /** How such a rule names an item. */
  write(entry: Entry): string;
  /** What to do about one that matches nothing, if more is known than its name. */
  hint?(): string;
}

/**
 * Tools with the same definition under other names. None is taken: it may be another server that runs the same program,
 * for other files or another account.
 */
function sameDefinitionHint(toolset: string, reference: ToolReference, all: readonly Entry[]): string {
  const names = all.filter((entry) => hasDefinitionOf(reference, entry)).map(canonicalName);
  const [first] = names;
  if (first === undefined) return '';
  const only =
    names.length === 1
      ? 'has the same definition, but nothing shows that it is the same tool'
      : 'have the same definition';
  return ` ${quotedList(names, 'and')} ${only}. If it is meant: toolgate toolsets edit ${toolset} --remove ${reference.namespacedName} --add ${first}`;
}

function isMeantOrExpanded(name: string, entry: Entry): boolean {
  return isMeant(name, entry) || isExpanded(name, entry);
}

/** Whether a URI, or a pattern over URIs, means something behind a template. */
function isExpanded(name: string, { kind, item }: Entry): boolean {
  return kind === 'template' && matchesTemplate(item.name, name.replace(/[*?]/g, 'x'));
}

/** Whether a name or pattern may mean something of a server whose offer is not known. */
function mayBelong(name: string, { key, namespace }: ServerName): boolean {
  const literal = name.split(/[*?]/, 1)[0]!;
  const flat = namespace.replace(/[^A-Za-z0-9_]/g, '_');
  const starts = [`${key}.`, ...(namespace === '' ? [''] : [`${namespace}_`, `${namespace}.`, `${flat}_`])];
  return starts.some((start) => literal.startsWith(start) || (isPattern(name) && start.startsWith(literal)));
}
