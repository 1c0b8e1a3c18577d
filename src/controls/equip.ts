/** Implements the toolset tools. Each validates everything first: a mistake throws, and nothing changes. */
import { equip } from '../access/selection.ts';
import { refersTo, type ToolReference, type Toolset, toolsWithin } from '../access/toolset.ts';
import { GatewayError } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import { counted, didYouMean } from '../base/text.ts';
import { canonicalName } from '../catalog/entry.ts';
import { tokensOfAll } from '../catalog/tokens.ts';
import { toBytes } from '../protocol/json.ts';
import {
  invalid,
  readArguments,
  readDetail,
  readFlag,
  readList,
  readReference,
  readReferences,
  readText,
  readToolsetName,
  requireChoice,
} from './arguments.ts';
import type { ControlContext, ControlOutcome } from './control.ts';
import { discover } from './discover.ts';
import { editToolset } from './edit-toolset.ts';
import type { EquipTool } from './equip-tools.ts';
import { isOpen, resolve } from './references.ts';
import { reportOn } from './toolset-report.ts';

type RunControl = (context: ControlContext, args: unknown) => ControlOutcome | Promise<ControlOutcome>;

export const RUN_EQUIP_TOOL: Readonly<Record<EquipTool, RunControl>> = {
  'discover-all-tools': discoverAll,
  'build-toolset': build,
  'edit-toolset': edit,
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

function discoverAll(context: ControlContext, args: unknown): ControlOutcome {
  return outcomeOf(context, discover(context, args));
}

/**
 * A toolset as an answer has it. Its tools are listed only if that is asked for: `exposedTools` has those that can be
 * called, and every id is long.
 */
function printed(toolset: Toolset, context: ControlContext, detail: 'short' | 'full'): object {
  const { name, description, tools } = toolset;
  // A pattern stands for many tools.
  const toolCount = tools.every(({ namespacedName }) => !isOpen(namespacedName))
    ? tools.length
    : toolsWithin(toolset, context.catalog).length;
  if (detail === 'full') return { ...toolset, toolCount };
  return { name, description, ...('place' in toolset && { place: toolset.place }), toolCount };
}

async function build(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['name', 'description', 'tools', 'autoEquip', 'detail']);
  const name = readToolsetName(given);
  const description = given.description === undefined ? '' : readText(given, 'description', 200);
  const autoEquip = readFlag(given, 'autoEquip');
  const detail = readDetail(given);
  const tools = resolve(readReferences(given, 'tools'), context);
  if (autoEquip) requireChoice(context);
  const toolset = await context.toolsetLibrary.create({ name, description, tools, toolNotes: [] }, 'project');
  const selection = autoEquip ? equip(context.selection, toolset) : context.selection;
  const { entries, warnings } = reportOn(toolset, context);
  return outcomeOf(
    { selection },
    {
      meta: { success: true, toolsetName: name, autoEquipped: autoEquip },
      toolset: printed(toolset, context, detail),
      ...(autoEquip && { exposedTools: entries.map((entry) => entry.name) }),
      ...(warnings.length > 0 && { warnings }),
    },
  );
}

async function edit(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const detail = readDetail(toObject(args));
  const before = context.selection.toolset?.name ?? null;
  const toolset = context.show(await editToolset(context, args));
  const isEquipped = before !== null && context.selection.toolset?.name === toolset.name;
  const { entries, warnings } = reportOn(toolset, context);
  return outcomeOf(context, {
    success: true,
    message: `Saved "${toolset.name}": ${counted(entries.length, 'tool')}.`,
    toolset: printed(toolset, context, detail),
    ...(isEquipped && { exposedTools: entries.map((entry) => entry.name) }),
    warnings,
  });
}

async function listSaved(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['name', 'detail']);
  const detail = readDetail(given);
  const name = given.name === undefined ? null : (await find(context, readText(given, 'name', 1_000))).name;
  const { toolsets, problems } = await context.toolsetLibrary.list();
  const equipped = context.selection.toolset?.name;
  const listed = toolsets.filter((toolset) => name === null || toolset.name === name).map(context.show);
  return outcomeOf(context, {
    success: true,
    toolsets: listed.map((toolset) => ({
      ...printed(toolset, context, detail),
      ...(name !== null && detail === 'short' && withTools(toolset)),
      active: toolset.name === equipped,
    })),
    ...(problems.length > 0 && { warnings: problems }),
  });
}

/** The tools of one toolset, without the long ids of their definitions. */
function withTools({ tools, toolNotes }: Toolset): object {
  return {
    tools: tools.map(({ namespacedName }) => ({ namespacedName })),
    ...(toolNotes.length > 0 && {
      toolNotes: toolNotes.map(({ toolRef, notes }) => ({
        toolRef: { namespacedName: toolRef.namespacedName },
        notes,
      })),
    }),
  };
}

async function equipOne(context: ControlContext, args: unknown): Promise<ControlOutcome> {
  const given = readArguments(args, ['name', 'detail']);
  const name = readText(given, 'name', 1_000);
  const detail = readDetail(given);
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
      toolset: printed(toolset, context, detail),
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
  const detail = readDetail(readArguments(args, ['detail']));
  const toolset = context.selection.toolset === null ? null : context.show(context.selection.toolset);
  const serverStatus = Object.fromEntries(
    context.servers.map(({ key, present, state, detail }) => [key, { available: present, state, detail }]),
  );
  if (toolset === null || toolset.standing === 'gone')
    return outcomeOf(context, { equipped: false, serverStatus, warnings: toolset === null ? [] : [goneText(toolset)] });
  const { entries, unavailableServers, warnings } = reportOn(toolset, context);
  const servers = [...new Set(entries.map(({ sourceKey }) => sourceKey))];
  const namesOf = (key: string) => entries.filter(({ sourceKey }) => sourceKey === key).map(({ name }) => name);
  return outcomeOf(context, {
    equipped: true,
    toolset: printed(toolset, context, detail),
    serverStatus,
    toolSummary: { total: toolset.tools.length, available: entries.length },
    exposedTools: Object.fromEntries(servers.map((key) => [key, namesOf(key)])),
    unavailableServers,
    warnings,
    context: { tokens: tokensOfAll(entries) },
  });
}

function goneText({ name }: Toolset): string {
  return `The toolset "${name}" was equipped, but it does not exist any more, or its file cannot be read. Its tools are back when it is. Call list-saved-toolsets to see what there is.`;
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
  const given = readArguments(args, ['toolRef', 'notes', 'detail']);
  const detail = readDetail(given);
  const { toolset } = context.selection;
  if (toolset === null || toolset.standing === 'gone')
    throw invalid('No toolset is equipped, and notes belong to one. Call equip-toolset first.');
  const [reference] = resolve([readReference(given.toolRef, '"toolRef"')], context);
  const notes = readList(given, 'notes', 20).map((one) => {
    const note = readArguments(one, ['name', 'note']);
    return { name: readToolsetName(note), note: readText(note, 'note', 500) };
  });
  const all = context.catalog.claims.tool.values();
  const entry = [...all].find((one) => one !== null && canonicalName(one) === reference!.namespacedName)!;
  if (!toolset.tools.some((one) => refersTo(one, entry)))
    throw invalid(`"${reference!.namespacedName}" is not in the equipped toolset "${toolset.name}".`);
  const changed = await context.toolsetLibrary.change(toolset.name, (saved) => withNotes(saved, reference!, notes));
  return outcomeOf(
    { selection: equip(context.selection, changed) },
    { success: true, toolset: printed(context.show(changed), context, detail) },
  );
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
