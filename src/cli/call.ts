/** `toolgate call`: calls one tool and prints its result. */
import { findTool } from '../access/find.ts';
import type { View } from '../access/view.ts';
import { GatewayError } from '../base/errors.ts';
import type { LocalDoor } from '../calls/local.ts';
import { RelayedError } from '../calls/relayed-error.ts';
import { mayBeNamed } from '../catalog/names.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { ServerConfig } from '../config/servers.ts';
import { ACTIVATE } from '../controls/activate.ts';
import { EQUIP, EQUIP_ALIASES, EQUIP_NAMES } from '../controls/equip-tools.ts';
import { TOOLS_PATH } from '../doors/http/admin/tools.ts';
import { definitionFor, openCallDoor, openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import { findMember } from '../protocol/json.ts';
import { openOfferStore } from '../store/offers.ts';
import type { CommandIo } from './command-io.ts';
import { loadOptions, type Options } from './options.ts';
import { askRunning, type RunningGateway } from './running.ts';
import { withGateway } from './session.ts';
import { paint, plain, print, safeJson, warn } from './terminal.ts';

export async function call(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined)
    throw new GatewayError(
      'usage',
      'Which tool? toolgate call NAME [key=value … | JSON]; toolgate list shows the names.',
    );
  const finish = (answer: ToolAnswer) => {
    printAnswer(answer, options.json === true, io);
    return answer.failed ? 1 : 0;
  };
  const isDry = options['dry-run'] === true;
  const answered = await askRunning(options, io, (running) => callRunning(running, name, rest, isDry, options.agent));
  if (answered !== null) return finish(answered);
  const config = await loadConfig(loadOptions(options, io));

  const work = async (gateway: Gateway) => {
    const door = openCallDoor(gateway, name, options.agent ?? null);
    const callArguments = readArguments(rest, schemaOf(definitionFor(gateway, door, name)));
    return finish(await callTool(door, name, callArguments, isDry, io));
  };
  // Toolgate's own tools are about all servers.
  const lasting = LASTING[name];
  if (lasting !== undefined && config.controls.length > 0) {
    const code = await withGateway(options, io, work);
    if (code === 0 && lasting !== '') warn(lasting, io);
    return code;
  }
  const isEnough = ({ catalog }: Gateway) => catalog.entries.tool.has(name);
  let isFound = true;
  const workIfFound = async (gateway: Gateway) => {
    isFound = isKnown(openLocalDoor(gateway, 'all').caller.view(), name);
    return isFound ? work(gateway) : 0;
  };
  const code = await withGateway(options, io, workIfFound, { isEnough, adjust: onlyFor(name, config) });
  // Every server is asked before a name counts as unknown.
  return isFound ? code : withGateway(options, io, work, { isEnough });
}

const NEXT_START = 'What is equipped now is equipped from the next start on.';

/** Toolgate's own tools, and how long what they switch lasts if this command is all that runs. Empty: they switch nothing. */
const LASTING: Readonly<Record<string, string>> = {
  ...Object.fromEntries([...EQUIP_NAMES, ...Object.keys(EQUIP_ALIASES)].map((tool) => [tool, ''])),
  [EQUIP]: NEXT_START,
  'unequip-toolset': NEXT_START,
  [ACTIVATE]: 'What was switched lasts no longer than this command. To keep it, change active_toolsets.',
};

/** Whether the name is in the view, or is that of a server that is not up. */
function isKnown(view: View, name: string): boolean {
  try {
    findTool(view, name);
    return true;
  } catch (error) {
    // The reason is told as it is.
    return error instanceof GatewayError && error.code === 'source_unavailable';
  }
}

/**
 * Starts only what a call needs: a server whose tools are known from its last run sleeps until it is called, and one that
 * cannot have this name is left out.
 */
function onlyFor(name: string, config: Config): (server: ServerConfig) => ServerConfig | null {
  const offers = openOfferStore(config.dataDir);
  return (server) => {
    const { launchHash, namespace, key } = server;
    if ((offers.read(launchHash)?.offer.items.length ?? 0) > 0) return { ...server, start: 'lazy' };
    const isMeant = mayBeNamed(name, namespace, config) || [':', '.'].some((mark) => name.startsWith(key + mark));
    return isMeant ? server : null;
  };
}

/** Calls the tool in a gateway that runs. */
async function callRunning(
  { ask }: RunningGateway,
  name: string,
  words: readonly string[],
  isDry: boolean,
  agent: string | undefined,
): Promise<ToolAnswer> {
  const path = `${TOOLS_PATH}/${encodeURIComponent(name)}`;
  const as = agent === undefined ? {} : { agent };
  const given = readArguments(words, schemaOf(await ask(path, as)));
  const answer = await ask(path, { ...as, body: { arguments: given, ...(isDry && { dry_run: true }) } });
  const error = findMember(answer, 'error');
  if (error !== null) return { bytes: answer, failed: true };
  const { start, end } = findMember(answer, 'result')!;
  return toAnswer(answer.subarray(start, end));
}

export interface ToolAnswer {
  /** The result as JSON, or `{"error": …}`. */
  readonly bytes: Buffer;
  readonly failed: boolean;
}

export async function callTool(
  door: LocalDoor,
  name: string,
  args: unknown,
  dryRun: boolean,
  io: CommandIo,
): Promise<ToolAnswer> {
  try {
    const bytes = await door.callTool(name, args, {
      ...(dryRun && { dryRun }),
      onProgress: (params) => {
        if (io.stderr.isTTY) io.stderr.write(`${paint('dim', JSON.stringify(params), io, 'stderr')}\n`);
      },
    });
    return toAnswer(bytes);
  } catch (error) {
    if (error instanceof RelayedError)
      return { bytes: Buffer.from(JSON.stringify({ error: error.error })), failed: true };
    throw error;
  }
}

function toAnswer(bytes: Buffer): ToolAnswer {
  return { bytes, failed: (JSON.parse(bytes.toString()) as { isError?: unknown }).isError === true };
}

export function printAnswer({ bytes, failed }: ToolAnswer, json: boolean, io: CommandIo): void {
  if (json) {
    print(safeJson(bytes.toString()), io);
    return;
  }
  const result = JSON.parse(bytes.toString()) as { content?: unknown; error?: { message?: unknown } };
  const blocks = Array.isArray(result.content) ? (result.content as { type?: unknown; text?: unknown }[]) : [];
  const stream = failed ? 'stderr' : 'stdout';
  const out = io[stream];
  if (result.error !== undefined) out.write(`${plain(String(result.error.message))}\n`);
  for (const block of blocks) {
    if (block.type === 'text') out.write(`${plain(String(block.text))}\n`);
    else out.write(`${paint('dim', `[${String(block.type)}; use --json to see it]`, io, stream)}\n`);
  }
}

type Properties = Readonly<Record<string, { readonly type?: unknown }>>;

/** The properties in the definition of a tool. */
export function schemaOf(definition: Buffer): Properties {
  const { inputSchema } = JSON.parse(definition.toString()) as { inputSchema?: { properties?: Properties } };
  return inputSchema?.properties ?? {};
}

export function readArguments(words: readonly string[], properties: Properties): Record<string, unknown> {
  const [first] = words;
  if (first?.trimStart().startsWith('{')) {
    if (words.length > 1) throw new GatewayError('usage', 'Give either one JSON object or key=value pairs, not both.');
    return readJson(first, 'The arguments') as Record<string, unknown>;
  }
  const given: [string, unknown][] = words.map((word) => {
    const equals = word.indexOf('=');
    if (equals < 1)
      throw new GatewayError('usage', `"${word}" is not key=value. Give key=value pairs or one JSON object.`);
    const key = word.slice(0, equals);
    return [key, readValue(key, word.slice(equals + 1), properties[key]?.type)];
  });
  return Object.fromEntries(given);
}

function readValue(key: string, text: string, type: unknown): unknown {
  if (type === 'string') return text;
  const types: unknown[] | null = Array.isArray(type) ? type : null;
  if (type !== undefined && !types?.includes('string')) return readJson(text, `The value of ${key}`);
  try {
    const value: unknown = JSON.parse(text);
    return types === null || types.some((one) => isOfType(value, one)) ? value : text;
  } catch {
    return text;
  }
}

function isOfType(value: unknown, type: unknown): boolean {
  if (value === null || Array.isArray(value)) return type === (value === null ? 'null' : 'array');
  return type === typeof value || (type === 'integer' && Number.isInteger(value));
}

function readJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GatewayError('usage', `${what} is not valid JSON: ${(error as Error).message}.`);
  }
}
