/** `toolgate toolsets`. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  canonicalName,
  didYouMean,
  type Entry,
  type Gateway,
  GatewayError,
  isMeant,
  type LibraryToolset,
  messageOf,
  readToolset,
  refIdOf,
  TOOLSET_NAME,
  tokensOf,
} from '../internal.ts';
import type { Options } from './commands.ts';
import { canPick, pick } from './pick.ts';
import { withGateway } from './session.ts';
import { brief, columns, jsonText, paint, table } from './terminal.ts';

type Run = (gateway: Gateway, args: readonly string[], options: Options) => Promise<void>;

const runs: Readonly<Record<string, Run>> = {
  list: listAll,
  show: (gateway, [name = ''], options) => show(gateway, name, options),
  create,
  edit,
  delete: remove,
  equip: (gateway, [name = '']) => equip(gateway, name),
  unequip: (gateway) => equip(gateway, null),
  import: importAll,
};

export async function toolsets(args: readonly string[], options: Options): Promise<number> {
  const [what = 'list', ...rest] = args;
  const run = Object.hasOwn(runs, what) ? runs[what] : undefined;
  if (run === undefined) {
    const names = Object.keys(runs);
    const text = `toolgate toolsets has no "${what}".${didYouMean(what, names)} Choose from ${names.join(', ')}.`;
    throw new GatewayError('usage', text);
  }
  return withGateway(options, async (gateway) => {
    await run(gateway, rest, options);
    return 0;
  });
}

async function listAll({ toolsets }: Gateway, _args: readonly string[], { json }: Options): Promise<void> {
  const { toolsets: all, problems } = await toolsets.list();
  for (const problem of problems) process.stderr.write(`${paint('yellow', 'warning:', process.stderr)} ${problem}\n`);
  if (json) print(all);
  else if (all.length === 0) process.stdout.write('There are no toolsets.\n');
  else {
    const rows = all.map(({ name, place, tools, description }) => [
      paint('bold', name),
      place,
      `${tools.length} ${tools.length === 1 ? 'entry' : 'entries'}`,
      brief(description, columns() - 50),
    ]);
    process.stdout.write(`${table(rows)}\n`);
  }
}

async function show(gateway: Gateway, name: string, { json }: Options): Promise<void> {
  const toolset = await find(gateway, name);
  const entries = toolsOf(gateway);
  const rows = toolset.tools.flatMap(({ namespacedName }) => shown(namespacedName, entries));
  if (json) print({ ...toolset, available: rows.filter(({ exposed }) => exposed !== null) });
  else {
    const lines = rows.map(({ namespacedName, exposed, description }) => [
      `  ${exposed === null ? paint('red', '✗') : paint('green', '✓')} ${namespacedName}`,
      paint('dim', brief(description, columns() - 40)),
    ]);
    process.stdout.write(`${paint('bold', name)} ${toolset.description}\n${table(lines)}\n`);
  }
}

interface Shown {
  readonly namespacedName: string;
  /** Null while it is not there. */
  readonly exposed: string | null;
  readonly description: string;
}

function shown(reference: string, entries: readonly Entry[]): Shown[] {
  const meant = entries.filter((entry) => isMeant(reference, entry));
  if (meant.length === 0) return [{ namespacedName: reference, exposed: null, description: 'not there at present' }];
  return meant.map((entry) => ({
    namespacedName: canonicalName(entry),
    exposed: entry.name,
    description: entry.item.description,
  }));
}

async function create(gateway: Gateway, args: readonly string[], { description, user, json }: Options): Promise<void> {
  const [name = '', ...named] = args;
  const isNamed = TOOLSET_NAME.test(name);
  const tools = isNamed && named.length === 0 && canPick() ? await pickTools(gateway, []) : named;
  if (!isNamed || tools.length === 0)
    throw new GatewayError(
      'usage',
      'toolgate toolsets create needs a name of lower-case letters, digits and hyphens, and then its tools: toolgate toolsets create dev git.status docker.ps',
    );
  const toolset = { name, description: description ?? '', tools: resolve(gateway, tools), toolNotes: [] };
  const saved = await gateway.toolsets.create(toolset, user === true ? 'user' : 'project');
  report(saved, json, `Saved "${name}" with ${count(saved.tools.length)}.`);
}

async function edit(gateway: Gateway, [name = '']: readonly string[], options: Options): Promise<void> {
  const { add = [], remove: taken = [], description } = options;
  if (add.length + taken.length === 0 && description === undefined && canPick()) {
    const { tools } = await find(gateway, name);
    const picked = resolve(
      gateway,
      await pickTools(
        gateway,
        tools.map(({ namespacedName }) => namespacedName),
      ),
    );
    const changed = await gateway.toolsets.change(name, (toolset) => ({ ...toolset, tools: picked }));
    report(changed, options.json, `Saved "${name}" with ${count(changed.tools.length)}.`);
    return;
  }
  const off = new Set(taken);
  const on = resolve(gateway, add);
  const saved = await gateway.toolsets.change(name, (toolset) => {
    const known = new Set(toolset.tools.map(({ namespacedName }) => namespacedName));
    const missing = [...off].filter((one) => !known.has(one));
    if (missing.length > 0) throw new GatewayError('usage', `"${name}" does not have ${missing.join(', ')}.`);
    const kept = toolset.tools.filter(({ namespacedName }) => !off.has(namespacedName));
    const added = on.filter(({ namespacedName }) => !known.has(namespacedName));
    return { ...toolset, description: description ?? toolset.description, tools: [...kept, ...added] };
  });
  report(saved, options.json, `Saved "${name}" with ${count(saved.tools.length)}.`);
}

/** Asks the person at the terminal, who sees what each tool costs. */
async function pickTools(gateway: Gateway, chosen: readonly string[]): Promise<string[]> {
  const entries = toolsOf(gateway);
  const choices = entries.map((entry) => ({
    value: canonicalName(entry),
    text: brief(entry.item.description, 200),
    tokens: tokensOf(entry),
  }));
  const before = entries.filter((entry) => chosen.some((one) => isMeant(one, entry))).map(canonicalName);
  const picked = await pick(choices, before);
  if (picked === null || picked.length === 0)
    throw new GatewayError('usage', 'No tools were chosen; nothing was saved.');
  return picked;
}

/** Toolsets that another program saved, all of them or one. What has a name that is taken stays as it is. */
async function importAll(gateway: Gateway, [path]: readonly string[], { user }: Options): Promise<void> {
  const file = path ?? join(homedir(), '.toolprint', 'hypertool-mcp', 'config.json');
  const saved = readSaved(await readFile(file, 'utf8').catch(() => null), file);
  for (const [name, value] of saved) {
    try {
      if (!TOOLSET_NAME.test(name)) throw new Error('its name is none for a toolset');
      const { description, tools, toolNotes } = readToolset(value, name);
      await gateway.toolsets.create({ name, description, tools, toolNotes }, user === true ? 'user' : 'project');
      process.stdout.write(`Saved "${name}" with ${count(tools.length)}.\n`);
    } catch (error) {
      process.stderr.write(
        `${paint('yellow', 'warning:', process.stderr)} "${name}" was left out: ${messageOf(error)}\n`,
      );
    }
  }
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
  throw new GatewayError('usage', `${file} has neither "toolsets" nor the "name" of one.`);
}

async function remove(gateway: Gateway, [name = '']: readonly string[], { yes }: Options): Promise<void> {
  if (yes !== true) throw new GatewayError('usage', `Add --yes to delete the toolset "${name}" for good.`);
  await gateway.toolsets.remove(name);
  process.stdout.write(`Deleted "${name}".\n`);
}

async function equip(gateway: Gateway, name: string | null): Promise<void> {
  if (name !== null) await find(gateway, name);
  await gateway.equip(name);
  process.stdout.write(name === null ? 'No toolset is equipped.\n' : `Equipped "${name}", from the next start on.\n`);
}

async function find({ toolsets }: Gateway, name: string): Promise<LibraryToolset> {
  const toolset = await toolsets.find(name);
  if (toolset !== null) return toolset;
  const names = (await toolsets.list()).toolsets.map((one) => one.name);
  throw new GatewayError('usage', `There is no toolset "${name}".${didYouMean(name, names)}`);
}

const toolsOf = ({ catalog }: Gateway) => [...catalog.entries.tool.values()];

/** Every name and pattern has to mean something. */
function resolve(gateway: Gateway, names: readonly string[]): { namespacedName: string; refId: string }[] {
  const entries = toolsOf(gateway);
  const bad: string[] = [];
  const found = names.flatMap((name) => {
    const meant = entries.filter((entry) => isMeant(name, entry));
    if (meant.length === 0) bad.push(`"${name}".${didYouMean(name, entries.map(canonicalName))}`);
    return meant;
  });
  if (bad.length > 0) throw new GatewayError('usage', `Nothing was saved: there is no tool ${bad.join(' And none ')}`);
  return [...new Set<Entry>(found)].map((entry) => ({ namespacedName: canonicalName(entry), refId: refIdOf(entry) }));
}

function report(saved: LibraryToolset, json: boolean | undefined, text: string): void {
  if (json) print(saved);
  else process.stdout.write(`${text}\n`);
}

function count(tools: number): string {
  return `${tools} ${tools === 1 ? 'tool' : 'tools'}`;
}

function print(value: unknown): void {
  process.stdout.write(`${jsonText(value, 2)}\n`);
}
