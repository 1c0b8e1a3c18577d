/** The tools with which a model finds toolsets and switches any number of them on and off for its client. */
import { isActive, withEnabled } from '../access/selection.ts';
import { type Toolset, toolServers, toolsWithin } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { counted, didYouMean } from '../base/text.ts';
import type { Catalog } from '../catalog/catalog.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import { toBytes } from '../protocol/json.ts';
import { readArguments, readText, requireChoice } from './arguments.ts';
import type { ControlContext, ControlOutcome } from './control.ts';
import { toolsetCosts, toolsetNames } from './toolset-lines.ts';
import { reportOn } from './toolset-report.ts';

const NOTHING = { type: 'object', properties: {}, additionalProperties: false } as const;
const NAME = {
  type: 'object',
  properties: { name: { type: 'string', description: 'The key of the toolset.' } },
  required: ['name'],
  additionalProperties: false,
} as const;
const READS = { readOnlyHint: true, idempotentHint: true, openWorldHint: false } as const;
const SWITCHES = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

export const LIST_TOOLS = {
  name: 'list_tools',
  title: 'List tools',
  description: 'Lists the names of all tools that can be called now, in one list and by toolset.',
  inputSchema: NOTHING,
  annotations: READS,
} as const;

export const SWITCHING_TOOLS = [
  {
    name: 'list_toolsets',
    title: 'List toolsets',
    description: 'Lists all toolsets: what each is for, whether it is enabled, and its tools as far as they are known.',
    inputSchema: NOTHING,
    annotations: READS,
  },
  {
    name: 'enable_toolset',
    title: 'Enable a toolset',
    description: 'Enables a toolset: its tools are added to the list and can be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'disable_toolset',
    title: 'Disable a toolset',
    description: 'Disables a toolset: its tools are removed from the list and can no longer be called.',
    inputSchema: NAME,
    annotations: SWITCHES,
  },
  {
    name: 'describe_toolset',
    title: 'Describe a toolset',
    description: 'Says what a toolset is for, whether it is enabled, and which tools it has. Enables nothing.',
    inputSchema: NAME,
    annotations: READS,
  },
] as const;

export type ToolsetTool = 'list_tools' | (typeof SWITCHING_TOOLS)[number]['name'];

export const TOOLSET_ENTRIES: readonly Entry[] = [LIST_TOOLS, ...SWITCHING_TOOLS].map(builtInEntry);

export const ENABLE: ToolsetTool = 'enable_toolset';

const RUN: Readonly<
  Record<ToolsetTool, (context: ControlContext, args: unknown) => ControlOutcome | Promise<ControlOutcome>>
> = {
  list_tools: listTools,
  list_toolsets: listToolsets,
  enable_toolset: enable,
  disable_toolset: disable,
  describe_toolset: describe,
};

/** Undefined if it is the name of another tool. */
export function toolsetTool(name: string): (typeof RUN)[ToolsetTool] | undefined {
  return Object.hasOwn(RUN, name) ? RUN[name as ToolsetTool] : undefined;
}

const INSTRUCTIONS_ROOM = 600;

/** What a model should know before it looks at the tools. */
export function toolsetInstructions(catalog: Catalog, made: readonly Toolset[]): string {
  const costs = toolsetCosts(catalog)(made);
  if (costs.length === 0) return '';
  const names = toolsetNames(costs, INSTRUCTIONS_ROOM);
  return `Tools can be used once a toolset that has them is enabled: call ${ENABLE} with one of these names, as often as needed. In brackets is the number of tools. ${names}`;
}

function outcomeOf({ selection }: Pick<ControlContext, 'selection'>, value: object): ControlOutcome {
  const text = JSON.stringify(value);
  return { selection, result: toBytes({ content: [{ type: 'text', text }], structuredContent: value }) };
}

/** The tools of a toolset that the caller may use, if their server is there. */
function toolNames(toolset: Toolset, { catalog }: ControlContext): string[] {
  return toolsWithin(toolset, catalog)
    .filter(({ name }) => catalog.entries.tool.has(name))
    .map(({ name }) => name);
}

function listTools(context: ControlContext, args: unknown): ControlOutcome {
  readArguments(args, []);
  const { catalog, selection } = context;
  const active = [...catalog.entries.tool.values()].filter((entry) => isActive(selection, entry));
  return outcomeOf(context, {
    tools: active.map(({ name }) => name),
    toolsetToTools: Object.fromEntries(selection.enabled.map((toolset) => [toolset.name, toolNames(toolset, context)])),
  });
}

function described(toolset: Toolset, context: ControlContext): object {
  const { name, description } = toolset;
  const { warnings } = reportOn(context.show(toolset), context);
  return {
    key: name,
    active: context.selection.enabled.some((one) => one.name === name),
    definition: { name, description },
    tools: toolNames(toolset, context),
    ...(warnings.length > 0 && { warnings }),
  };
}

async function listToolsets(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  readArguments(args, []);
  const { toolsets, problems } = await context.toolsetLibrary.list();
  const shown = toolsets.filter((toolset) => toolsWithin(toolset, context.catalog).length > 0);
  const warnings = [...problems, ...missing(context)];
  return outcomeOf(context, {
    toolsets: shown.map((toolset) => described(toolset, context)),
    ...(warnings.length > 0 && { warnings }),
  });
}

/** One sentence for each server whose tools are not known, because it was never there. */
function missing({ servers, catalog }: ControlContext): string[] {
  const known = toolServers(catalog);
  return servers
    .filter(({ key, present }) => !present && !known.includes(key))
    .map(({ key, state, detail }) => {
      const why = detail === '' ? state : `${state}: ${detail}`;
      return `The tools of the server "${key}" are not known: ${why}. Ask again later.`;
    });
}

async function describe(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  return outcomeOf(context, described(await find(context, args), context));
}

async function enable(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  requireChoice(context);
  const toolset = await find(context, args);
  const { selection } = context;
  const { name } = toolset;
  const { entries, unavailableServers, warnings } = reportOn(context.show(toolset), context);
  const isEnabled = selection.enabled.some((one) => one.name === name);
  return outcomeOf(
    { selection: isEnabled ? selection : withEnabled(selection, [...selection.enabled, toolset]) },
    {
      success: true,
      message: isEnabled
        ? `The toolset "${name}" is already enabled.`
        : `Enabled the toolset "${name}": ${counted(entries.length, 'tool')}.`,
      tools: entries.map((entry) => entry.name),
      ...(unavailableServers.length > 0 && { unavailableServers }),
      ...(warnings.length > 0 && { warnings }),
    },
  );
}

async function disable(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  requireChoice(context);
  const { selection, catalog } = context;
  const name = nameIn(args);
  const toolset = selection.enabled.find((one) => one.name === name);
  if (toolset === undefined) {
    await find(context, args);
    return outcomeOf(context, { success: true, message: `The toolset "${name}" is not enabled.` });
  }
  const next = withEnabled(
    selection,
    selection.enabled.filter((one) => one !== toolset),
  );
  const kept = toolsWithin(toolset, catalog).filter((entry) => isActive(next, entry));
  const rest = kept.length === 0 ? '' : ` ${counted(kept.length, 'tool stays', 'tools stay')}, which it shares.`;
  return outcomeOf({ selection: next }, { success: true, message: `Disabled the toolset "${name}".${rest}` });
}

function nameIn(args: unknown): string {
  return readText(readArguments(args, ['name']), 'name', 1_000);
}

/** Throws if the caller has no toolset of that name. */
async function find({ toolsetLibrary, catalog, show }: ControlContext, args: unknown): Promise<Toolset> {
  const name = nameIn(args);
  const toolset = await toolsetLibrary.find(name);
  // A toolset whose every tool is denied does not exist for the caller.
  if (toolset !== null && (toolset.tools.length === 0 || show(toolset).tools.length > 0)) return toolset;
  const { toolsets } = await toolsetLibrary.list();
  const names = toolsets.filter((one) => toolsWithin(one, catalog).length > 0).map((one) => one.name);
  throw new GatewayError('item_unknown', `There is no toolset "${name}".${didYouMean(name, names)}`);
}
