/** `toolgate toolsets`: named sets of tools. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve as resolvePath } from 'node:path';
import { isMeant, refersTo, type ToolReference, toolsWithin } from '../access/toolset.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import { counted, didYouMean } from '../base/text.ts';
import { canonicalName, type Entry } from '../catalog/entry.ts';
import { tokensOf } from '../catalog/tokens.ts';
import { refIdOf } from '../controls/equip.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { LibraryToolset } from '../store/toolset-library.ts';
import { readToolset, TOOLSET_NAME } from '../store/toolsets.ts';
import { withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import type { Options, RunCommand } from './options.ts';
import { canPick, pick } from './prompts.ts';
import { withGateway } from './session.ts';
import { brief, columns, paint, plain, print, printResult, table, warn } from './terminal.ts';

type GatewayVerb = (gateway: Gateway, args: readonly string[], options: Options, io: CommandIo) => Promise<number>;

const inGateway =
  (verb: GatewayVerb): RunCommand =>
  (args, options, io) =>
    withGateway(options, io, (gateway) => verb(gateway, args, options, io));

export const toolsets = withVerbs('toolsets', {
  list: inGateway(list),
  show: inGateway(show),
  create: inGateway(create),
  edit: inGateway(edit),
  delete: inGateway(remove),
  equip: inGateway((gateway, [name = ''], _, io) => equip(gateway, name, io)),
  unequip: inGateway((gateway, _, __, io) => equip(gateway, null, io)),
  import: inGateway(importAll),
});

async function list(gateway: Gateway, _: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { toolsets: all, problems } = await gateway.toolsets.list();
  for (const problem of problems) warn(problem, io);
  const rows = all.map((toolset) => [
    paint('bold', plain(toolset.name), io),
    toolset.place,
    sizeText(toolset, gateway),
    brief(toolset.description, columns(io) - 50),
  ]);
  return printResult(options, all, all.length === 0 ? 'There are no toolsets.' : table(rows), io);
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
  const entries = toolsOf(gateway);
  const tools = toolset.tools.flatMap((reference) => resolveReference(reference, entries));
  const rows = tools.map(({ namespacedName, exposed, description }) => [
    `  ${exposed === null ? paint('red', '✗', io) : paint('green', '✓', io)} ${plain(namespacedName)}`,
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

function resolveReference(reference: ToolReference, entries: readonly Entry[]): ListedTool[] {
  const meant = entries.filter((entry) => refersTo(reference, entry));
  const { namespacedName } = reference;
  if (meant.length === 0) return [{ namespacedName, exposed: null, description: 'not available now' }];
  return meant.map((entry) => ({
    namespacedName: canonicalName(entry),
    exposed: entry.name,
    description: entry.item.description,
  }));
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
  return printSaved(await gateway.toolsets.create(toolset, place), options, io);
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
    return printSaved(await gateway.toolsets.change(name, (toolset) => ({ ...toolset, tools })), options, io);
  }
  const added = resolve(gateway, add);
  const saved = await gateway.toolsets.change(name, (toolset) => {
    const known = new Set(toolset.tools.map(({ namespacedName }) => namespacedName));
    const missing = removed.filter((one) => !known.has(one));
    if (missing.length > 0) throw new GatewayError('usage', `"${name}" does not have ${missing.join(', ')}.`);
    const kept = toolset.tools.filter(({ namespacedName }) => !removed.includes(namespacedName));
    const fresh = added.filter(({ namespacedName }) => !known.has(namespacedName));
    return { ...toolset, description: description ?? toolset.description, tools: [...kept, ...fresh] };
  });
  return printSaved(saved, options, io);
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

async function equip(gateway: Gateway, name: string | null, io: CommandIo): Promise<number> {
  if (name !== null) await find(gateway, name);
  await gateway.equip(name);
  return print(name === null ? 'No toolset is equipped.' : `Equipped "${name}", from the next start on.`, io);
}

async function find({ toolsets }: Gateway, name: string): Promise<LibraryToolset> {
  const toolset = await toolsets.find(name);
  if (toolset !== null) return toolset;
  const names = (await toolsets.list()).toolsets.map((one) => one.name);
  throw new GatewayError('usage', `There is no toolset "${name}".${didYouMean(name, names)}`);
}

const toolsOf = ({ catalog }: Gateway) => [...catalog.entries.tool.values()];

/** The tools that the names and patterns mean. Each has to mean at least one. */
function resolve(gateway: Gateway, names: readonly string[]): { namespacedName: string; refId: string }[] {
  const entries = toolsOf(gateway);
  const unknown: string[] = [];
  const found = names.flatMap((name) => {
    const meant = entries.filter((entry) => isMeant(name, entry));
    if (meant.length === 0) unknown.push(`"${name}".${didYouMean(name, entries.map(canonicalName))}`);
    return meant;
  });
  if (unknown.length > 0)
    throw new GatewayError('usage', `Nothing was saved: there is no tool ${unknown.join(' And no tool ')}`);
  return [...new Set<Entry>(found)].map((entry) => ({ namespacedName: canonicalName(entry), refId: refIdOf(entry) }));
}

function printSaved(saved: LibraryToolset, options: Options, io: CommandIo): number {
  return printResult(options, saved, `Saved "${saved.name}" with ${counted(saved.tools.length, 'tool')}.`, io);
}
