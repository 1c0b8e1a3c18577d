/** Presents macros as if a server offered them: they are listed in the catalog, limited and audited like any tool. */
import { GatewayError } from '../../base/errors.ts';
import { getOrMake, memo } from '../../base/memo.ts';
import { didYouMean } from '../../base/text.ts';
import type { Contribution } from '../../catalog/catalog.ts';
import { categoryOf, type Effect } from '../../catalog/category.ts';
import { EMPTY_OFFER, type Item, readItems } from '../../catalog/item.ts';
import { UNLIMITED } from '../../config/call-limits.ts';
import { MACROS, type MacroConfig } from '../../config/macros.ts';
import type { ServerConfig } from '../../config/servers.ts';
import { toBytes } from '../../protocol/json.ts';
import type { Callee } from '../call.ts';
import { type MacroContext, runMacro } from './run.ts';

/** The source id of macros. No server has it. */
export const MACROS_ID = -1;

const DAY = 86_400_000;

/**
 * The server configuration that limits and policies read for macros. The timeouts are long because each macro enforces
 * its own.
 */
const SERVER: ServerConfig = Object.freeze({
  key: MACROS,
  namespace: '',
  launch: { kind: 'stdio', file: '', args: [], env: {}, cwd: '' },
  launchHash: '',
  description: 'Tools made of other tools',
  enabled: true,
  required: false,
  start: 'eager',
  idleStop: null,
  // With this setting there is no breaker and no result cache, so one failing macro does not block the others.
  share: 'session',
  timeout: DAY,
  totalTimeout: DAY,
  startTimeout: 0,
  healthInterval: 0,
  limits: UNLIMITED,
  tools: [],
} as const);

export interface MacroSource {
  readonly source: Callee;
  readonly config: ServerConfig;
}

/** `macros` is called for each call, because the configuration can be replaced. */
export function createMacroSource(macros: () => readonly MacroConfig[], context: MacroContext): MacroSource {
  return {
    config: SERVER,
    source: {
      call(call) {
        const macro = macros().find(({ name }) => name === call.entry.item.name);
        if (macro === undefined)
          throw new GatewayError('source_unavailable', `The macro "${call.entry.name}" has been removed.`);
        return runMacro(macro, call, context);
      },
    },
  };
}

/**
 * Adds the macros to what the servers offer. If a tool of a macro is unavailable, so is the macro. If the tool does not
 * exist at all, that is reported as a problem.
 */
export function withMacros(macros: readonly MacroConfig[], servers: readonly Contribution[]): Contribution[] {
  if (macros.length === 0) return [...servers];
  const problems: string[] = [];
  const present: Item[] = [];
  const absent: Item[] = [];
  for (const macro of macros) {
    const names = macro.uses.filter((name) => !name.startsWith(`${MACROS}.`));
    const tools = names.map((name) => findTool(name, servers));
    for (const [i, tool] of tools.entries())
      if (typeof tool === 'string')
        problems.push(`macro "${macro.name}" is left out: it calls "${names[i]}", and ${tool}`);
    const found = tools.filter((tool) => typeof tool === 'object' && tool !== null);
    const item = itemOf(macro, worst(found));
    if (found.length === tools.length) present.push(item);
    else absent.push(item);
  }
  const owner = { id: MACROS_ID, key: MACROS, namespace: '' };
  return [
    ...servers,
    { ...owner, present: true, offer: { ...EMPTY_OFFER, items: present, problems } },
    { ...owner, present: false, offer: { ...EMPTY_OFFER, items: absent } },
  ];
}

interface Found {
  readonly sourceKey: string;
  readonly namespace: string;
  readonly item: Item;
}

/** The tool; null while its server is unavailable; or a text that says why there is no such tool. */
function findTool(name: string, servers: readonly Contribution[]): Found | string | null {
  const [server] = servers.filter(({ key }) => name.startsWith(`${key}.`)).sort((a, b) => b.key.length - a.key.length);
  if (server === undefined)
    return `there is no such server.${didYouMean(
      name.split('.')[0]!,
      servers.map(({ key }) => key),
    )}`;
  const tool = name.slice(server.key.length + 1);
  const item = server.offer.items.find((one) => one.kind === 'tool' && one.name === tool);
  if (!server.present) return null;
  if (item !== undefined) return { sourceKey: server.key, namespace: server.namespace, item };
  const names = server.offer.items.filter(({ kind }) => kind === 'tool').map((one) => one.name);
  return `the server "${server.key}" has no such tool.${didYouMean(tool, names)}`;
}

/** The effect of a macro is the most dangerous effect of its steps. */
function worst(tools: readonly Found[]): Effect {
  const effects = tools.map((tool) => categoryOf(tool).effect);
  return effects.includes('destructive') ? 'destructive' : effects.includes('write') ? 'write' : 'read';
}

const itemsOf = memo((_: MacroConfig) => new Map<Effect, Item>());

/** The same object while nothing changes, so that the catalog does not rebuild its entries. */
function itemOf(macro: MacroConfig, effect: Effect): Item {
  return getOrMake(itemsOf(macro), effect, () => createItem(macro, effect));
}

function createItem(macro: MacroConfig, effect: Effect): Item {
  const definition = {
    name: macro.name,
    description: macro.description,
    inputSchema: macro.inputSchema,
    annotations: {
      readOnlyHint: effect === 'read',
      ...(effect !== 'read' && { destructiveHint: effect === 'destructive' }),
    },
  };
  const [item] = readItems('tool', toBytes({ tools: [definition] })).items;
  return Object.freeze({ ...item!, uses: macro.uses });
}
