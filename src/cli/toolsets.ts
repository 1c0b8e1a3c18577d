/** `toolgate toolsets`: named sets of tools. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve as resolvePath } from 'node:path';
import { patternHint } from '../access/pattern-hint.ts';
import { isMeant, refersTo, type ToolReference, toolsWithin } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { toObject } from '../base/objects.ts';
import { counted, didYouMean } from '../base/text.ts';
import { awayError, awayOwners, awayText, awayWith } from '../catalog/away.ts';
import { canonicalName } from '../catalog/entry.ts';
import { tokensOf } from '../catalog/tokens.ts';
import { loadConfig } from '../config/load.ts';
import { requireEquip } from '../controls/default-selection.ts';
import { withoutTools } from '../controls/edit-toolset.ts';
import { EQUIP } from '../controls/equip-tools.ts';
import { isOpen, referenceTo } from '../controls/references.ts';
import { TOOLS_PATH } from '../doors/http/admin/tools.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { LibraryToolset } from '../store/toolset-library.ts';
import { readToolset, TOOLSET_NAME, TOOLSET_NAME_FORM } from '../store/toolsets.ts';
import { onlyName, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options, type RunCommand } from './options.ts';
import { canPick, pick } from './prompts.ts';
import { type RunningGateway, runningGateways } from './running.ts';
import { withGateway } from './session.ts';
import { brief, cell, columns, paint, plain, print, printResult, table, warn } from './terminal.ts';

type GatewayVerb = (gateway: Gateway, args: readonly string[], options: Options, io: CommandIo) => Promise<number>;

const inGateway =
  (verb: GatewayVerb): RunCommand =>
  (args, options, io) =>
    withGateway(options, io, (gateway) => verb(gateway, args, options, io));

/** A verb that takes the name of one toolset. */
const named =
  (verb: string, run: RunCommand): RunCommand =>
  (args, options, io) => {
    onlyName(args, `toolgate toolsets ${verb} dev`);
    return run(args, options, io);
  };

export const toolsets = withVerbs('toolsets', {
  list: inGateway(list),
  show: named('show', inGateway(show)),
  create: inGateway(create),
  edit: named('edit', inGateway(edit)),
  delete: named('delete', inGateway(remove)),
  rename: inGateway(rename),
  equip: named('equip', ([name = ''], options, io) => equip(name, options, io)),
  unequip: (_, options, io) => equip(null, options, io),
  import: inGateway(importAll),
});

async function list(gateway: Gateway, _: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { toolsets: all, problems } = await gateway.toolsets.list();
  for (const problem of problems) warn(problem, io);
  const { equipped } = gateway;
  if (equipped?.isMissing === true) warn(missingText(equipped.name), io);
  const isEquipped = ({ name }: LibraryToolset) => name === equipped?.name;
  const rows = all.map((toolset) => [
    `${isEquipped(toolset) ? paint('green', '*', io) : ' '} ${paint('bold', cell(toolset.name), io)}`,
    toolset.place,
    sizeText(toolset, gateway),
    brief(toolset.description, columns(io) - 50),
  ]);
  const json = all.map((toolset) => ({ ...toolset, equipped: isEquipped(toolset) }));
  return printResult(options, json, all.length === 0 ? 'There are no toolsets.' : table(rows), io);
}

/** What to do about a toolset that should be equipped, but is not there. */
export function missingText(name: string): string {
  return `The toolset "${name}", which was equipped last, does not exist any more, or its file cannot be read. Equip another one, or run: toolgate toolsets unequip`;
}

/** Entries may be patterns. Those of implicit toolsets always are, so their tools are counted. */
function sizeText(toolset: LibraryToolset, { catalog }: Gateway): string {
  if (toolset.place !== 'implicit') return counted(toolset.tools.length, 'entry', 'entries');
  return counted(toolsWithin(toolset, catalog).length, 'tool');
}

async function show(
  gateway: Gateway,
  [name = '']: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<number> {
  const toolset = await find(gateway, name);
  const tools = toolset.tools.flatMap((reference) => resolveReference(reference, gateway));
  const rows = tools.map(({ namespacedName, exposed, description }) => [
    `  ${exposed === null ? paint('red', '✗', io) : paint('green', '✓', io)} ${cell(namespacedName)}`,
    paint('dim', brief(description, columns(io) - 40), io),
  ]);
  const json = { ...toolset, available: tools.filter(({ exposed }) => exposed !== null) };
  return printResult(options, json, `${paint('bold', name, io)} ${plain(toolset.description)}\n${table(rows)}`, io);
}

interface ListedTool {
  readonly namespacedName: string;
  /** Null if no server has it now. */
  readonly exposed: string | null;
  readonly description: string;
}

function resolveReference(reference: ToolReference, gateway: Gateway): ListedTool[] {
  const meant = toolsOf(gateway).filter((entry) => refersTo(reference, entry));
  const { namespacedName } = reference;
  if (meant.length === 0) return [{ namespacedName, exposed: null, description: whyMissing(reference, gateway) }];
  return meant.map((entry) => ({
    namespacedName: canonicalName(entry),
    exposed: entry.name,
    description: entry.item.description,
  }));
}

/** The server of a tool that is missing, its state and the reason, as far as they are known. */
function whyMissing(reference: ToolReference, { catalog }: Gateway): string {
  const known = [...catalog.claims.tool.values()].filter((entry) => entry !== null && refersTo(reference, entry));
  const owners = awayOwners(catalog, known);
  const away = owners.length > 0 ? owners : awayWith(catalog, ['tool'], reference.namespacedName);
  return away.length > 0 ? awayText(away) : 'no server has it now';
}

async function create(gateway: Gateway, args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name = '', ...named] = args;
  const isName = TOOLSET_NAME.test(name);
  const tools = isName && named.length === 0 && canPick(io) ? await pickTools(gateway, [], io) : named;
  if (!isName || tools.length === 0)
    throw new GatewayError(
      'usage',
      'toolgate toolsets create needs a name of lower-case letters, digits and hyphens, and then its tools: toolgate toolsets create dev git.status docker.ps',
    );
  const toolset = { name, description: options.description ?? '', tools: resolve(gateway, tools), toolNotes: [] };
  const place = options.user === true ? 'user' : 'project';
  return printSaved(gateway, await gateway.toolsets.create(toolset, place), options, io);
}

async function edit(
  gateway: Gateway,
  [name = '']: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<number> {
  const { add = [], remove: removed = [], description } = options;
  if (add.length + removed.length === 0 && description === undefined && canPick(io)) {
    const chosen = (await find(gateway, name)).tools.map(({ namespacedName }) => namespacedName);
    const tools = resolve(gateway, await pickTools(gateway, chosen, io));
    const saved = await gateway.toolsets.change(name, (toolset) => ({ ...toolset, tools }));
    return printSaved(gateway, saved, options, io);
  }
  const added = resolve(gateway, add);
  const saved = await gateway.toolsets.change(name, (toolset) => {
    const known = new Set(toolset.tools.map(({ namespacedName }) => namespacedName));
    const gone = removed.map((namespacedName) => ({ namespacedName }));
    const kept = withoutTools(toolset, gone, toolsOf(gateway));
    const fresh = added.filter(({ namespacedName }) => !known.has(namespacedName));
    return { ...toolset, description: description ?? toolset.description, tools: [...kept, ...fresh] };
  });
  return printSaved(gateway, saved, options, io);
}

/** Lets the person at the terminal pick, and shows what each tool costs. */
async function pickTools(gateway: Gateway, chosen: readonly string[], io: CommandIo): Promise<string[]> {
  const entries = toolsOf(gateway);
  const choices = entries.map((entry) => ({
    value: canonicalName(entry),
    text: brief(entry.item.description, 200),
    tokens: tokensOf(entry),
  }));
  const marked = entries.filter((entry) => chosen.some((one) => isMeant(one, entry))).map(canonicalName);
  const picked = await pick(choices, marked, io);
  if (picked.length === 0) throw new GatewayError('usage', 'No tools were chosen. Nothing was saved.');
  return picked;
}

/** Imports the toolsets saved by hypertool-mcp. A toolset whose name is taken is not overwritten. */
async function importAll(
  gateway: Gateway,
  [path]: readonly string[],
  { user }: Options,
  io: CommandIo,
): Promise<number> {
  const home = io.env.HOME || homedir();
  const file = path ?? join(home, '.toolprint', 'hypertool-mcp', 'config.json');
  const text = await readFile(resolvePath(io.cwd(), file), 'utf8').catch(() => null);
  const saved = readSaved(text, file);
  for (const [name, value] of saved) {
    try {
      if (!TOOLSET_NAME.test(name)) throw new Error('its name is not valid for a toolset');
      const { description, tools, toolNotes } = readToolset(value, name);
      await gateway.toolsets.create({ name, description, tools, toolNotes }, user === true ? 'user' : 'project');
      print(`Saved "${name}" with ${counted(tools.length, 'tool')}.`, io);
    } catch (error) {
      warn(`"${name}" was left out: ${messageOf(error)}`, io);
    }
  }
  return 0;
}

function readSaved(text: string | null, file: string): [string, unknown][] {
  if (text === null) throw new GatewayError('usage', `${file} cannot be read. Name the file with the toolsets.`);
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch (error) {
    throw new GatewayError('usage', `${file} is not JSON (${messageOf(error)}).`);
  }
  const { toolsets: map, name } = (root ?? {}) as { toolsets?: unknown; name?: unknown };
  if (typeof map === 'object' && map !== null) return Object.entries(map);
  if (typeof name === 'string') return [[name, root]];
  throw new GatewayError('usage', `${file} has neither "toolsets" nor the "name" of a toolset.`);
}

async function remove(
  gateway: Gateway,
  [name = '']: readonly string[],
  { yes }: Options,
  io: CommandIo,
): Promise<number> {
  if (yes !== true) throw new GatewayError('usage', `Add --yes to delete the toolset "${name}" for good.`);
  await gateway.toolsets.remove(name);
  return print(`Deleted "${name}".`, io);
}

async function rename(gateway: Gateway, args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name = '', to = '', ...more] = args;
  if (!TOOLSET_NAME.test(to) || more.length > 0)
    throw new GatewayError(
      'usage',
      `toolgate toolsets rename needs the name of a toolset and a new one of ${TOOLSET_NAME_FORM}: toolgate toolsets rename dev review`,
    );
  const renamed = await gateway.toolsets.change(name, (toolset) => ({ ...toolset, name: to }));
  return printResult(options, renamed, `Renamed "${name}" to "${to}".`, io);
}

/** In every gateway that runs with this configuration. If there is none, the next one that starts has it. */
async function equip(name: string | null, options: Options, io: CommandIo): Promise<number> {
  const config = await loadConfig(loadOptions(options, io));
  if (name !== null) requireEquip(config);
  const running = config.controls.includes('equip') ? await runningGateways(config, io) : [];
  for (const gateway of running) await equipRunning(gateway, name);
  if (running.length > 0) {
    const done = name === null ? 'Unequipped' : `Equipped "${name}"`;
    const who = 'for clients that have not chosen a toolset themselves';
    return print(`${done} in ${counted(running.length, 'running gateway')}, ${who}, and from the next start on.`, io);
  }
  return withGateway(options, io, async (gateway) => {
    if (name !== null) await find(gateway, name);
    await gateway.equip(name);
    return print(name === null ? 'No toolset is equipped.' : `Equipped "${name}", from the next start on.`, io);
  });
}

async function equipRunning({ ask }: RunningGateway, name: string | null): Promise<void> {
  const tool = name === null ? 'unequip-toolset' : EQUIP;
  const body = { arguments: name === null ? {} : { name } };
  const { result } = toObject(JSON.parse((await ask(`${TOOLS_PATH}/${tool}`, { body })).toString()));
  const { isError, content } = toObject(result);
  if (isError !== true) return;
  const [first] = content as { text: string }[];
  const { message } = toObject(JSON.parse(first!.text));
  throw new GatewayError('usage', String(message));
}

async function find({ toolsets }: Gateway, name: string): Promise<LibraryToolset> {
  const toolset = await toolsets.find(name);
  if (toolset !== null) return toolset;
  const names = (await toolsets.list()).toolsets.map((one) => one.name);
  throw new GatewayError('usage', `There is no toolset "${name}".${didYouMean(name, names)}`);
}

const toolsOf = ({ catalog }: Gateway) => [...catalog.entries.tool.values()];

/** With those of servers that are not up, as they were last known. */
const knownToolsOf = ({ catalog }: Gateway) => [...catalog.claims.tool.values()].filter((entry) => entry !== null);

/** References for these names and patterns. Each has to mean at least one tool. A pattern stays one. */
function resolve(gateway: Gateway, names: readonly string[]): ToolReference[] {
  const entries = knownToolsOf(gateway);
  const unknown: string[] = [];
  const found = names.flatMap((name): ToolReference[] => {
    const meant = entries.filter((entry) => isMeant(name, entry));
    if (meant.length > 0) return isOpen(name) ? [{ namespacedName: name }] : meant.map(referenceTo);
    const away = awayWith(gateway.catalog, ['tool'], name);
    if (away.length > 0)
      throw awayError(away, `Nothing was saved: the tool "${name}" is not known now: ${awayText(away)}.`);
    unknown.push(`"${name}".${patternHint(name, gateway.statuses(), entries.map(canonicalName), '.')}`);
    return [];
  });
  if (unknown.length > 0)
    throw new GatewayError('usage', `Nothing was saved: there is no tool ${unknown.join(' And no tool ')}`);
  return [...new Map(found.map((one) => [one.namespacedName, one])).values()];
}

function printSaved(gateway: Gateway, saved: LibraryToolset, options: Options, io: CommandIo): number {
  const tools = toolsWithin(saved, gateway.catalog).length;
  return printResult(options, saved, `Saved "${saved.name}" with ${counted(tools, 'tool')}.`, io);
}
