/** `toolgate toolsets`: named sets of tools. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve as resolvePath } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { counted } from '../base/text.ts';
import { countedTokensText } from '../catalog/tokens.ts';
import { loadConfig } from '../config/load.ts';
import { requireEquip } from '../controls/default-selection.ts';
import { runInGateway } from '../doors/commands/commands.ts';
import type { EquipRequest, ListedToolset, SavedToolsetReport } from '../doors/commands/toolsets.ts';
import { TOOLSET_NAME, TOOLSET_NAME_FORM, type ToolsetPlace } from '../store/toolsets.ts';
import { onlyName, withVerbs } from './arguments.ts';
import type { CommandIo } from './command-io.ts';
import { askCommand, inGateway, type RunInGateway } from './in-gateway.ts';
import { loadOptions, type Options, type RunCommand } from './options.ts';
import { canPick, pick } from './prompts.ts';
import { gatewayAt, noteNoneRuns, type RunningGateway, runningGateways } from './running.ts';
import { withGateway } from './session.ts';
import { brief, cell, columns, paint, plain, print, printResult, table, warn } from './terminal.ts';

type ToolsetVerb = (run: RunInGateway, args: readonly string[], options: Options, io: CommandIo) => Promise<number>;

const running =
  (verb: ToolsetVerb): RunCommand =>
  (args, options, io) =>
    inGateway(options, io, (run) => verb(run, args, options, io));

/** A verb that takes the name of one toolset. */
const named =
  (verb: string, run: RunCommand): RunCommand =>
  (args, options, io) => {
    onlyName(args, `toolgate toolsets ${verb} dev`);
    return run(args, options, io);
  };

export const toolsets = withVerbs('toolsets', {
  list: running(list),
  show: named('show', running(show)),
  create: running(create),
  edit: named('edit', running(edit)),
  delete: named('delete', running(remove)),
  rename: running(rename),
  equip: named('equip', ([name = ''], options, io) => equip(name, options, io)),
  unequip: (_, options, io) => equip(null, options, io),
  import: running(importAll),
});

async function list(run: RunInGateway, _: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { toolsets: all, problems, missing } = await run('toolsets-list', { tokens: options.tokens === true });
  for (const problem of problems) warn(problem, io);
  if (missing !== null) warn(missingText(missing), io);
  const rows = all.map((toolset) => [
    `${toolset.equipped ? paint('green', '*', io) : ' '} ${paint('bold', cell(toolset.name), io)}`,
    toolset.place,
    sizeText(toolset),
    ...(options.tokens === true ? [countedTokensText(toolset.tokens)] : []),
    brief(toolset.description, columns(io) - 50),
  ]);
  const json = all.map(({ size: __, tokens, ...toolset }) =>
    options.tokens === true ? { ...toolset, tokens } : toolset,
  );
  return printResult(options, json, all.length === 0 ? 'There are no toolsets.' : table(rows), io);
}

/** What to do about a toolset that should be equipped, but is not there. */
export function missingText(name: string): string {
  return `The toolset "${name}", which was equipped last, does not exist any more, or its file cannot be read. Equip another one, or run: toolgate toolsets unequip`;
}

/** Entries may be patterns. Those of implicit toolsets always are, so their tools are counted. */
function sizeText({ place, tools, size }: ListedToolset): string {
  return place === 'implicit' ? counted(size, 'tool') : counted(tools.length, 'entry', 'entries');
}

async function show(
  run: RunInGateway,
  [name = '']: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<number> {
  const { toolset, tools } = await run('toolsets-show', { name });
  const rows = tools.map(({ namespacedName, exposed, description }) => [
    `  ${exposed === null ? paint('red', '✗', io) : paint('green', '✓', io)} ${cell(namespacedName)}`,
    paint('dim', brief(description, columns(io) - 40), io),
  ]);
  const json = { ...toolset, available: tools.filter(({ exposed }) => exposed !== null) };
  return printResult(options, json, `${paint('bold', name, io)} ${plain(toolset.description)}\n${table(rows)}`, io);
}

async function create(run: RunInGateway, args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name = '', ...named] = args;
  const isName = TOOLSET_NAME.test(name);
  const tools = isName && named.length === 0 && canPick(io) ? await pickTools(run, [], io) : named;
  if (!isName || tools.length === 0)
    throw new GatewayError(
      'usage',
      'toolgate toolsets create needs a name of lower-case letters, digits and hyphens, and then its tools: toolgate toolsets create dev git.status docker.ps',
    );
  const request = { name, description: options.description ?? '', tools, place: placeOf(options) };
  return printSaved(await run('toolsets-create', request), options, io);
}

function placeOf({ user }: Options): ToolsetPlace {
  return user === true ? 'user' : 'project';
}

async function edit(
  run: RunInGateway,
  [name = '']: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<number> {
  const { add = [], remove: removed = [], description } = options;
  if (add.length + removed.length === 0 && description === undefined && canPick(io)) {
    const { toolset } = await run('toolsets-show', { name });
    const chosen = toolset.tools.map(({ namespacedName }) => namespacedName);
    const tools = await pickTools(run, chosen, io);
    return printSaved(await run('toolsets-edit', { name, tools, add: [], remove: [] }), options, io);
  }
  const request = { name, add, remove: removed, ...(description !== undefined && { description }) };
  return printSaved(await run('toolsets-edit', request), options, io);
}

/** Lets the person at the terminal pick, and shows what each tool costs. */
async function pickTools(run: RunInGateway, chosen: readonly string[], io: CommandIo): Promise<string[]> {
  const tools = await run('toolsets-choices', { chosen });
  const choices = tools.map(({ name, description, tokens }) => ({
    value: name,
    text: brief(description, 200),
    tokens,
  }));
  const marked = tools.filter(({ isChosen }) => isChosen).map(({ name }) => name);
  const picked = await pick(choices, marked, io);
  if (picked.length === 0) throw new GatewayError('usage', 'No tools were chosen. Nothing was saved.');
  return picked;
}

/** Imports the toolsets saved by hypertool-mcp. A toolset whose name is taken is not overwritten. */
async function importAll(
  run: RunInGateway,
  [path]: readonly string[],
  options: Options,
  io: CommandIo,
): Promise<number> {
  const home = io.env.HOME || homedir();
  const file = path ?? join(home, '.toolprint', 'hypertool-mcp', 'config.json');
  const text = await readFile(resolvePath(io.cwd(), file), 'utf8').catch(() => null);
  const saved = readSaved(text, file);
  for (const [name, toolset] of saved) {
    try {
      if (!TOOLSET_NAME.test(name)) throw new Error('its name is not valid for a toolset');
      const done = await run('toolsets-import', { name, toolset, place: placeOf(options) });
      print(`Saved "${name}" with ${counted(done.toolset.tools.length, 'tool')}.`, io);
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
  run: RunInGateway,
  [name = '']: readonly string[],
  { yes }: Options,
  io: CommandIo,
): Promise<number> {
  if (yes !== true) throw new GatewayError('usage', `Add --yes to delete the toolset "${name}" for good.`);
  await run('toolsets-delete', { name });
  return print(`Deleted "${name}".`, io);
}

async function rename(run: RunInGateway, args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name = '', to = '', ...more] = args;
  if (!TOOLSET_NAME.test(to) || more.length > 0)
    throw new GatewayError(
      'usage',
      `toolgate toolsets rename needs the name of a toolset and a new one of ${TOOLSET_NAME_FORM}: toolgate toolsets rename dev review`,
    );
  const { toolset } = await run('toolsets-rename', { name, to });
  return printResult(options, toolset, `Renamed "${name}" to "${to}".`, io);
}

/** In every gateway that runs with this configuration. If there is none, the next one that starts has it. */
async function equip(name: string | null, options: Options, io: CommandIo): Promise<number> {
  const who = readWho(options);
  const request: EquipRequest = { name, ...(who !== null && { who }) };
  const gateways = await gatewaysToEquip(name, options, io);
  const done = name === null ? 'Unequipped' : `Equipped "${name}"`;
  if (gateways.length > 0) {
    const answers = await Promise.allSettled(gateways.map((gateway) => askCommand(gateway, 'toolsets-equip', request)));
    const equipped = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    const failed = answers.find((answer) => answer.status === 'rejected');
    // A client is connected to one of them only.
    if (failed !== undefined && (who === null || who === 'all' || equipped.length === 0)) throw failed.reason;
    const clients = equipped.reduce((sum, answer) => sum + (answer.clients ?? 0), 0);
    const where = `in ${counted(equipped.length, 'running gateway')}`;
    if (who === null)
      return print(
        `${done} ${where}, for clients that have not chosen a toolset themselves, and from the next start on.`,
        io,
      );
    const next = who === 'all' ? ', and for new ones, also from the next start on' : '';
    return print(`${done} ${where}, for ${counted(clients, 'connected client')}${next}.`, io);
  }
  if (who !== null && who !== 'all')
    throw new GatewayError(
      'usage',
      'No gateway runs with this configuration, so no client is connected. Leave out --agent and --session to equip it from the next start on.',
    );
  noteNoneRuns(await loadConfig(loadOptions(options, io)), io);
  return withGateway(options, io, async (gateway) => {
    await runInGateway(gateway, 'toolsets-equip', { name });
    return print(name === null ? 'No toolset is equipped.' : `Equipped "${name}", from the next start on.`, io);
  });
}

async function gatewaysToEquip(name: string | null, options: Options, io: CommandIo): Promise<RunningGateway[]> {
  if (options.url !== undefined) return [gatewayAt(options.url, io)];
  const config = await loadConfig(loadOptions(options, io));
  if (name !== null) requireEquip(config);
  return config.controls.includes('equip') ? runningGateways(config, io) : [];
}

/** For whom. Null: for those that have not chosen a toolset themselves. */
function readWho({ agent, session, all }: Options): NonNullable<EquipRequest['who']> | null {
  if ([agent, session, all].filter((one) => one !== undefined).length > 1)
    throw new GatewayError('usage', 'Give one of --agent, --session and --all.');
  if (agent !== undefined) return { agent };
  if (session !== undefined) return { session };
  return all === true ? 'all' : null;
}

function printSaved({ toolset, size }: SavedToolsetReport, options: Options, io: CommandIo): number {
  return printResult(options, toolset, `Saved "${toolset.name}" with ${counted(size, 'tool')}.`, io);
}
