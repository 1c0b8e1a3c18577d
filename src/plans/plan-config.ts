/**
 * Builds the configuration for a task: only the servers that it needs, as they are written, and lists of its tools.
 * Policies are kept, so no agent may use more than before.
 */
import { isObject } from '../base/objects.ts';
import { matchesPattern } from '../base/pattern.ts';
import { isOfCategory } from '../catalog/category.ts';
import { matchesServer, serverOf } from '../catalog/entry.ts';
import type { Config } from '../config/config.ts';
import { MACROS } from '../config/macros.ts';
import type { ServerLists } from '../config/policy.ts';
import { type RawServer, withoutSecrets } from '../config/raw-config.ts';
import { scanCommandLine } from '../config/shell.ts';
import type { Plan, PlannedTool } from './plan.ts';

/** A configuration with only what a plan needs. */
export interface PlanConfig {
  /** With the keys of a configuration file. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Variables that replace secrets which the configuration has in plain text: they have to be set. */
  readonly variables: readonly string[];
}

/** Keys that mean nothing, or something else, in a configuration for one task. */
const LEFT_OUT = new Set([
  '$schema',
  'servers',
  'mcpServers',
  'active_toolsets',
  'controls',
  'names',
  'selection',
  'toolsets',
  'task_rules',
  'task_profiles',
  'task_rule_files',
  'exposed_tools',
  'agent_policies',
  'default_policy',
  MACROS,
]);

/** The configuration with only what a plan needs. */
export function planConfig(config: Config, plan: Plan): PlanConfig {
  const { settings, servers: written } = config.written();
  const kept = Object.fromEntries(Object.entries(settings).filter(([key]) => !LEFT_OUT.has(key)));
  const macros = plan.tools.filter(({ server }) => server === MACROS).map(({ tool }) => tool);
  const tools = byServer([...plan.tools, ...usedBy(config, macros)]);
  const servers: Record<string, unknown> = {};
  for (const { key, namespace } of [...config.servers, ...config.folders.named]) {
    const found = written.get(key);
    if (found === undefined || !tools.has(key)) continue;
    const { namespace: _, ...entry } = asProgram(found);
    servers[key] = namespace === key ? entry : { namespace, ...entry };
  }
  const value = {
    // Explicit, because the defaults depend on the name of the file.
    controls: [],
    names: config.names,
    ...kept,
    servers,
    exposed_tools: Object.fromEntries(
      [...tools].map(([key, all]) => [key, namesOf(all.filter((one) => isExposed(config, one)))]),
    ),
    ...(macros.length > 0 && { macros: pick(settings[MACROS], config, macros) }),
    ...('agent_policies' in settings && { agent_policies: agentPolicies(settings.agent_policies, config, tools) }),
    default_policy: { ...(isObject(settings.default_policy) && settings.default_policy), allow_unknown_tools: false },
  };
  const safe = withoutSecrets(value);
  return { value: safe.value as PlanConfig['value'], variables: safe.variables };
}

/** Adds `args`, because a command with `args` means the same in every kind of file. A line that needs a shell stays. */
function asProgram({ isShellLine, entry }: RawServer): Readonly<Record<string, unknown>> {
  const { command, args } = entry;
  if (typeof command !== 'string' || args !== undefined) return entry;
  if (!isShellLine) return { ...entry, args: [] };
  const { commands, need } = scanCommandLine(command);
  const [file, ...rest] = commands[0] ?? [];
  const isPlain = need === 'nothing' && file !== undefined && ![file, ...rest].some((word) => word.includes('${'));
  return isPlain ? { ...entry, command: file, args: rest } : entry;
}

/** The tools that macros call: these have to exist and be allowed, too. */
function usedBy(config: Config, macros: readonly string[]): PlannedTool[] {
  const uses = new Set(config.macros.filter(({ name }) => macros.includes(name)).flatMap((macro) => macro.uses));
  const keys = [MACROS, ...[...config.servers, ...config.folders.named].map(({ key }) => key)];
  return [...uses].flatMap((name) => {
    const server = serverOf(name, keys);
    if (server === null) return [];
    return [{ server, tool: name.slice(server.length + 1), entry: null, reasons: [] }];
  });
}

/** The macros of the plan, and the macros that these call. */
function pick(written: unknown, { macros }: Config, names: readonly string[]): unknown {
  const used = macros.filter(({ name }) => names.includes(name)).flatMap(({ uses }) => uses);
  const isKept = (name: string) => names.includes(name) || used.includes(`${MACROS}.${name}`);
  return Object.fromEntries(Object.entries(isObject(written) ? written : {}).filter(([name]) => isKept(name)));
}

/** By the key of their server. */
type ToolsByServer = ReadonlyMap<string, readonly PlannedTool[]>;

function byServer(planned: readonly PlannedTool[]): ToolsByServer {
  const tools = new Map<string, PlannedTool[]>();
  for (const one of planned) {
    const known = tools.get(one.server) ?? [];
    if (!known.some(({ tool }) => tool === one.tool)) tools.set(one.server, [...known, one]);
  }
  return tools;
}

function namesOf(tools: readonly PlannedTool[]): string[] {
  return tools.map(({ tool }) => tool);
}

/** Whether the lists for all agents include it. */
function isExposed(config: Config, tool: PlannedTool): boolean {
  const { policy } = config;
  return policy === null || (listed(policy.exposed.tool, config, tool) ?? policy.allowUnknown.tool);
}

/** Whether a list includes the tool; null if no list is about its server. */
function listed(lists: ServerLists, config: Config, { server, tool, entry }: PlannedTool): boolean | null {
  const namespace = config.servers.find(({ key }) => key === server)?.namespace ?? server;
  const names = Object.entries(lists).filter(([pattern]) => matchesServer(pattern, server, namespace));
  if (names.length === 0) return null;
  const isMeant = (name: string) => matchesPattern(name, tool) || (entry !== null && isOfCategory(name, entry));
  return names.some(([, listed]) => listed.some(isMeant));
}

/** The policies as they are written, with lists reduced to what the task needs. */
function agentPolicies(written: unknown, config: Config, tools: ToolsByServer): unknown {
  if (!isObject(written)) return written;
  return Object.fromEntries(
    Object.entries(written).map(([name, policy]) => {
      const overrides = config.policy?.agents.find((one) => one.name === name)?.overrides.tool ?? {};
      if (!isObject(policy) || policy.tool_overrides === undefined) return [name, policy];
      const narrowed = [...tools].flatMap(([key, all]) => {
        const own = all.map((one) => [one, listed(overrides, config, one)] as const);
        if (own.every(([, isListed]) => isListed === null)) return [];
        return [[key, namesOf(own.filter(([, isListed]) => isListed).map(([one]) => one))]];
      });
      return [name, { ...policy, tool_overrides: Object.fromEntries(narrowed) }];
    }),
  );
}
