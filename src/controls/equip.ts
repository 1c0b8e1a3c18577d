/** Implements the toolset tools. Each validates everything first: a mistake throws, and nothing changes. */

import { equip } from '../access/selection.ts';
import { refersTo, type ToolReference, type Toolset, toolsWithin } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { sha256 } from '../base/hash.ts';
import { memo } from '../base/memo.ts';
import { counted, didYouMean } from '../base/text.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { startingText, startingWith } from '../catalog/starting.ts';
import { tokensOf, tokensOfAll } from '../catalog/tokens.ts';
import { toBytes } from '../protocol/json.ts';
import {
  invalid,
  readArguments,
  readFlag,
  readList,
  readReference,
  readText,
  readToolsetName,
  requireChoice,
} from './arguments.ts';
import type { ControlContext, ControlOutcome } from './control.ts';
import type { EquipTool } from './equip-tools.ts';
import { findNamed, reportOn } from './toolset-report.ts';

type RunControl = (context: ControlContext, args: unknown) => ControlOutcome | Promise<ControlOutcome>;

export const RUN_EQUIP_TOOL: Readonly<Record<EquipTool, RunControl>> = {
  'discover-all-tools': discoverAll,
  'build-toolset': build,
  'list-saved-toolsets': listSaved,
  'equip-toolset': equipOne,
  'unequip-toolset': unequip,
  'get-active-toolset': getActive,
  'delete-toolset': deleteOne,
  'add-tool-annotation': annotate,
};

function outcomeOf({ selection }: Pick<ControlContext, 'selection'>, value: object): ControlOutcome {
  const text = JSON.stringify(value);
  return { selection, result: toBytes({ content: [{ type: 'text', text }], structuredContent: value }) };
}

/**
 * An id that changes with any part of the definition. The description counts too, because a compromised server would
 * use it to address the model. Cached, because hashing 10,000 definitions takes measurable time.
 */
export const refIdOf = memo((entry: Entry): string =>
  sha256(Buffer.concat([Buffer.from(`${canonicalName(entry)}\n`), entry.item.bytes])),
);

const toolsOf = ({ catalog }: ControlContext) => [...catalog.entries.tool.values()];

function discoverAll(context: ControlContext, args: unknown): ControlOutcome {
  readArguments(args, []);
  const entries = toolsOf(context);
  const total = tokensOfAll(entries);
  const keys = [...new Set(entries.map(({ sourceKey }) => sourceKey))];
  const toolsByServer = keys.map((serverName) => {
    const tools = entries
      .filter(({ sourceKey }) => sourceKey === serverName)
      .map((entry) => ({
        name: entry.item.name,
        description: entry.item.description,
        namespacedName: canonicalName(entry),
        serverName,
        refId: refIdOf(entry),
        context: { tokens: tokensOf(entry), percentTotal: Math.round((tokensOf(entry) / total) * 1000) / 10 },
      }));
    return { serverName, toolCount: tools.length, tools };
  });
  return outcomeOf(context, {
    summary: { totalTools: entries.length, totalServers: keys.length },
    toolsByServer,
  });
}

async function build(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['name', 'description', 'tools', 'autoEquip']);
  const name = readToolsetName(given);
  const description = given.description === undefined ? '' : readText(given, 'description', 200);
  const autoEquip = readFlag(given, 'autoEquip');
  const wanted = readList(given, 'tools', 100).map((one, index) => readReference(one, `Tool ${index + 1}`));
  const tools = resolve(wanted, context);
  if (autoEquip) requireChoice(context);
  const toolset = await context.toolsetLibrary.create({ name, description, tools, toolNotes: [] }, 'project');
  const selection = autoEquip ? equip(context.selection, toolset) : context.selection;
  return outcomeOf({ selection }, { meta: { success: true, toolsetName: name, autoEquipped: autoEquip }, toolset });
}

/** Completes the references. Throws if one of them matches no tool, so that nothing is saved. */
function resolve(wanted: readonly Partial<ToolReference>[], context: ControlContext): ToolReference[] {
  const entries = toolsOf(context);
  const bad: string[] = [];
  const starting = new Set<string>();
  const found = wanted.flatMap(({ namespacedName, refId }) => {
    const entry =
      namespacedName === undefined
        ? (entries.find((one) => refIdOf(one) === refId) ?? `refId "${refId}"`)
        : findNamed(namespacedName, entries);
    if (typeof entry !== 'string') return [entry];
    const servers = namespacedName === undefined ? [] : startingWith(context.catalog, namespacedName);
    for (const { key } of servers) starting.add(key);
    bad.push(servers.length > 0 ? `"${namespacedName}" (${startingText(servers)})` : entry);
    return [];
  });
  if (bad.length > 0)
    throw new GatewayError('item_unknown', `Nothing was saved. Unknown tools: ${bad.join('; ')}.`, {
      details: starting.size > 0 ? { starting: [...starting] } : {},
    });
  return [...new Set(found)].map((entry) => ({ namespacedName: canonicalName(entry), refId: refIdOf(entry) }));
}

async function listSaved(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  readArguments(args, []);
  const { toolsets, problems } = await context.toolsetLibrary.list();
  const equipped = context.selection.toolset?.name;
  return outcomeOf(context, {
    success: true,
    toolsets: toolsets.map(context.show).map((toolset) => ({
      ...toolset,
      // The one reference of an implicit toolset stands for many tools.
      toolCount: toolset.place === 'implicit' ? toolsWithin(toolset, context.catalog).length : toolset.tools.length,
      active: toolset.name === equipped,
    })),
    ...(problems.length > 0 && { warnings: problems }),
  });
}

async function equipOne(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const name = readText(readArguments(args, ['name']), 'name', 1_000);
  requireChoice(context);
  const found = await find(context, name);
  const selection = equip(context.selection, found);
  const toolset = context.show(found);
  const { entries, unavailableServers, warnings } = reportOn(toolset, context);
  return outcomeOf(
    { selection },
    {
      success: true,
      message: `Equipped "${name}": ${counted(entries.length, 'tool')}.`,
      toolset,
      exposedTools: entries.map((entry) => entry.name),
      unavailableServers,
      warnings,
    },
  );
}

async function find({ toolsetLibrary }: ControlContext, name: string): Promise<Toolset> {
  const toolset = await toolsetLibrary.find(name);
  if (toolset !== null) return toolset;
  const names = (await toolsetLibrary.list()).toolsets.map((one) => one.name);
  const hint = didYouMean(name, names) || (names.length === 0 ? ' Build one with build-toolset.' : '');
  throw new GatewayError('item_unknown', `There is no toolset "${name}".${hint}`);
}

function unequip(context: ControlContext, args: unknown): ControlOutcome {
  readArguments(args, []);
  requireChoice(context);
  const before = context.selection.toolset;
  const selection = equip(context.selection, null);
  const message = before === null ? 'No toolset was equipped.' : `Unequipped "${before.name}".`;
  return outcomeOf({ selection }, { success: true, message });
}

function getActive(context: ControlContext, args: unknown): ControlOutcome {
  readArguments(args, []);
  const toolset = context.selection.toolset === null ? null : context.show(context.selection.toolset);
  const serverStatus = Object.fromEntries(
    context.servers.map(({ key, present, state, detail }) => [key, { available: present, state, detail }]),
  );
  if (toolset === null) return outcomeOf(context, { equipped: false, serverStatus, warnings: [] });
  const { entries, unavailableServers, warnings } = reportOn(toolset, context);
  const servers = [...new Set(entries.map(({ sourceKey }) => sourceKey))];
  const namesOf = (key: string) => entries.filter(({ sourceKey }) => sourceKey === key).map(({ name }) => name);
  return outcomeOf(context, {
    equipped: true,
    toolset,
    serverStatus,
    toolSummary: { total: toolset.tools.length, available: entries.length },
    exposedTools: Object.fromEntries(servers.map((key) => [key, namesOf(key)])),
    unavailableServers,
    warnings,
    context: { tokens: tokensOfAll(entries) },
  });
}

async function deleteOne(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['name', 'confirm']);
  const name = readText(given, 'name', 1_000);
  if (!readFlag(given, 'confirm')) throw invalid(`Set "confirm" to true to delete the toolset "${name}" for good.`);
  await context.toolsetLibrary.remove(name);
  const isEquipped = !context.isFixed && context.selection.toolset?.name === name;
  const selection = isEquipped ? equip(context.selection, null) : context.selection;
  return outcomeOf({ selection }, { success: true, message: `Deleted "${name}".` });
}

async function annotate(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['toolRef', 'notes']);
  const { toolset } = context.selection;
  if (toolset === null) throw invalid('No toolset is equipped, and notes belong to one. Call equip-toolset first.');
  const [reference] = resolve([readReference(given.toolRef, '"toolRef"')], context);
  const notes = readList(given, 'notes', 20).map((one) => {
    const note = readArguments(one, ['name', 'note']);
    return { name: readToolsetName(note), note: readText(note, 'note', 500) };
  });
  const entry = toolsOf(context).find((one) => canonicalName(one) === reference!.namespacedName)!;
  if (!toolset.tools.some((one) => refersTo(one, entry)))
    throw invalid(`"${reference!.namespacedName}" is not in the equipped toolset "${toolset.name}".`);
  const changed = await context.toolsetLibrary.change(toolset.name, (saved) => withNotes(saved, reference!, notes));
  return outcomeOf({ selection: equip(context.selection, changed) }, { success: true, toolset: context.show(changed) });
}

type Notes = Toolset['toolNotes'][number]['notes'];

/** Adds notes on a tool. A note with the same name is replaced. */
function withNotes(toolset: Toolset, toolRef: ToolReference, notes: Notes): Toolset {
  const isSame = (one: ToolReference) => one.namespacedName === toolRef.namespacedName;
  const before = toolset.toolNotes.find((one) => isSame(one.toolRef))?.notes ?? [];
  const kept = before.filter(({ name }) => !notes.some((note) => note.name === name));
  const others = toolset.toolNotes.filter((one) => !isSame(one.toolRef));
  return { ...toolset, toolNotes: [...others, { toolRef, notes: [...kept, ...notes] }] };
}
