/** `toolgate call`: calls one tool and prints its result. */
import { findTool } from '../access/find.ts';
import { GatewayError } from '../base/errors.ts';
import type { LocalDoor } from '../calls/local.ts';
import { RelayedError } from '../calls/relayed-error.ts';
import type { Entry } from '../catalog/entry.ts';
import { openLocalDoor } from '../doors/local.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { CommandIo } from './command-io.ts';
import type { Options } from './options.ts';
import { withGateway } from './session.ts';
import { paint, plain, print } from './terminal.ts';

export async function call(args: readonly string[], options: Options, io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined)
    throw new GatewayError(
      'usage',
      'Which tool? toolgate call NAME [key=value … | JSON]; toolgate list shows the names.',
    );
  const work = async (gateway: Gateway) => {
    const door = openLocalDoor(gateway, 'all', options.agent ?? null);
    const callArguments = readArguments(rest, schemaOf(findTool(door.caller.view(), name)));
    const answer = await callTool(door, name, callArguments, options['dry-run'] === true, io);
    printAnswer(answer, options.json === true, io);
    return answer.failed ? 1 : 0;
  };
  return withGateway(options, io, work, { isEnough: ({ catalog }) => catalog.entries.tool.has(name) });
}

interface ToolAnswer {
  /** The result as JSON, or `{"error": …}`. */
  readonly bytes: Buffer;
  readonly failed: boolean;
}

async function callTool(
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
    return { bytes, failed: (JSON.parse(bytes.toString()) as { isError?: unknown }).isError === true };
  } catch (error) {
    if (error instanceof RelayedError)
      return { bytes: Buffer.from(JSON.stringify({ error: error.error })), failed: true };
    throw error;
  }
}

function printAnswer({ bytes, failed }: ToolAnswer, json: boolean, io: CommandIo): void {
  if (json) {
    print(bytes.toString(), io);
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

function schemaOf({ item }: Entry): Properties {
  const { inputSchema } = JSON.parse(item.bytes.toString()) as { inputSchema?: { properties?: Properties } };
  return inputSchema?.properties ?? {};
}

function readArguments(words: readonly string[], properties: Properties): Record<string, unknown> {
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
