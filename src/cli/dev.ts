/** `toolgate dev`: serves one folder of tools, and shows what its tools print, how calls end, and what an edit changes. */
import { realpath, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { findTool } from '../access/find.ts';
import { GatewayError, messageOf } from '../base/errors.ts';
import type { LocalDoor } from '../calls/local.ts';
import type { Config } from '../config/config.ts';
import { configFromValue, loadConfig } from '../config/load.ts';
import { type ListeningDoor, openHttpDoor } from '../doors/http/server.ts';
import { openLocalDoor } from '../doors/local.ts';
import { type Gateway, openGateway } from '../gateway/gateway.ts';
import { logCalls } from '../observe/log-calls.ts';
import { toolsFolder } from '../workers/namespaces.ts';
import { nameProblem } from '../workers/tool-files.ts';
import { readPort } from './arguments.ts';
import { callTool, printAnswer, readArguments, schemaOf } from './call.ts';
import type { CommandIo } from './command-io.ts';
import { createFolderReport } from './folder-report.ts';
import { loadOptions, type Options } from './options.ts';
import { paint, plain, print, untilSignal } from './terminal.ts';

/** Tried first, so that a client finds the next run under the same address. */
const USUAL_PORT = 8810;
/** An edit is reported when its news has settled for this long. */
const SETTLE_MS = 100;
/** Makes the hosts write the name of the tool in front of what it prints. */
const ATTRIBUTE = { TOOLGATE_ATTRIBUTE: '1' };

export async function dev(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const { folder, namespace, dataDir } = await findFolder(args, options, io);
  const say = (text: string) => io.stdout.write(`${text}\n`);
  const config = configFor(folder, namespace, dataDir, io);
  const gateway = await openGateway(config, {
    env: io.env,
    spawn: io.spawn,
    audit: false,
    // Other folders in the data folder are left alone.
    adjust: (server) => (server.launch.kind === 'folder' && server.launch.folder === folder ? server : null),
    printed: (_, line) => say(paint('dim', plain(line), io)),
  });
  try {
    const report = createFolderReport(gateway, folder, (line) => say(paint('cyan', line, io)));
    followNews(gateway, report, say, io);
    gateway.use(logCalls((line) => say(paint('dim', plain(gateway.redact(line)), io))));
    const door = await openDevDoor(gateway, options);
    const stop = untilSignal(io);
    print(introduction(door, folder, namespace, io), io);
    await Promise.race([stop, answerTyped(gateway, io)]);
    await door.close();
    return 0;
  } finally {
    await gateway.close();
    // An open terminal must not keep us alive.
    io.stdin.destroy();
  }
}

interface DevFolder {
  readonly folder: string;
  readonly namespace: string;
  readonly dataDir: string;
}

/** A path, or the name of a namespace in the data folder. */
async function findFolder(args: readonly string[], options: Options, io: CommandIo): Promise<DevFolder> {
  const [given, ...more] = args;
  if (given === undefined || more.length > 0)
    throw new GatewayError('usage', 'Which folder? toolgate dev FOLDER, a path or the name of a namespace.');
  const config = await configured(options, io);
  const dataDir = config?.dataDir ?? resolve(io.cwd(), io.env.DATA_DIR || '.toolgate');
  const places = [resolve(io.cwd(), given), join(toolsFolder(dataDir), given)];
  for (const place of places) {
    if ((await stat(place).catch(() => null))?.isDirectory() !== true) continue;
    const folder = await realpath(place);
    return { folder, namespace: namespaceFor(folder), dataDir };
  }
  const text = `There is no folder ${places.join(' and no folder ')}. Make one: toolgate namespaces create NAME`;
  throw new GatewayError('usage', text);
}

/** The configuration says where the data folder is. Without one, a folder is served all the same. */
async function configured(options: Options, io: CommandIo): Promise<Config | null> {
  try {
    return await loadConfig(loadOptions(options, io));
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'config_missing' && options.config === undefined) return null;
    throw error;
  }
}

function namespaceFor(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return nameProblem(name) === null ? name : 'dev';
}

/** Everything is shown, and nothing limits what is shown. */
function configFor(folder: string, namespace: string, dataDir: string, io: CommandIo): Config {
  const server = { namespace, folder, env: ATTRIBUTE };
  return configFromValue({ data_dir: dataDir, controls: [], servers: [server] }, { cwd: io.cwd(), env: io.env });
}

async function openDevDoor(gateway: Gateway, { host = '127.0.0.1', port }: Options): Promise<ListeningDoor> {
  if (port !== undefined) return openHttpDoor(gateway, { host, port: readPort(port), token: null });
  return openHttpDoor(gateway, { host, port: USUAL_PORT, token: null }).catch(() =>
    openHttpDoor(gateway, { host, port: 0, token: null }),
  );
}

function introduction({ url }: ListeningDoor, folder: string, namespace: string, io: CommandIo): string {
  return [
    `Serving ${folder} as "${namespace}" on ${paint('bold', url, io)}`,
    `  claude mcp add --transport http ${namespace} ${url}`,
    'Call a tool here: NAME key=value … or NAME {"key": "value"}. Ctrl-C ends it.',
    '',
  ].join('\n');
}

/** Says what happens to the worker, and what is wrong with its files. */
function followNews(
  gateway: Gateway,
  report: { look(): Promise<void> },
  say: (text: string) => void,
  io: CommandIo,
): void {
  let timer: NodeJS.Timeout | undefined;
  gateway.events.listen((name, event) => {
    if (name === 'catalog' || name === 'source') {
      clearTimeout(timer);
      timer = setTimeout(() => void report.look(), SETTLE_MS).unref();
    }
    const { state, detail, message, error, where } = event as Readonly<Record<string, unknown>>;
    if (name === 'note') say(paint('yellow', plain(String(message)), io));
    else if (name === 'failure') say(paint('red', plain(`${String(where)}: ${stackOf(error)}`), io));
    else if (name === 'source' && state !== 'up' && detail !== '')
      say(paint('yellow', plain(`${String(state)}: ${String(detail)}`), io));
  });
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Calls the tools that are typed, one per line. Resolves when the input has ended. */
async function answerTyped(gateway: Gateway, io: CommandIo): Promise<void> {
  const door = openLocalDoor(gateway, 'all');
  const calls = new Set<Promise<void>>();
  for await (const line of createInterface({ input: io.stdin })) {
    if (line.trim() === '') continue;
    // A line may come before the tools are there.
    const call = gateway.tried().then(() => answerLine(line.trim(), door, io));
    calls.add(call);
    void call.finally(() => calls.delete(call));
  }
  await Promise.all(calls);
}

async function answerLine(line: string, door: LocalDoor, io: CommandIo): Promise<void> {
  const [name = '', rest = ''] = /^(\S+)\s*(.*)$/s.exec(line)?.slice(1) ?? [];
  try {
    const definition = findTool(door.caller.view(), name).item.bytes;
    const given = readArguments(rest.startsWith('{') ? [rest] : wordsIn(rest), schemaOf(definition));
    printAnswer(await callTool(door, name, given, false, io), false, io);
  } catch (error) {
    io.stdout.write(`${paint('red', plain(messageOf(error)), io)}\n`);
  }
}

/** Words at spaces, where quotes keep a space inside a word. */
function wordsIn(text: string): string[] {
  return (text.match(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g) ?? []).map((word) =>
    word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'),
  );
}
