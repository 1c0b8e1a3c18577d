/**
 * Reads a tool from any object that looks like one: our own shape, and those of the AI SDK, Mastra, FastMCP and
 * Toolception.
 */
import { isObject } from '../base/objects.ts';
import { textOf } from './fault.ts';
import type { OutputSchema } from './result-json.ts';
import { type CheckedSchema, isObjectSchema, objectSchema, readSchema, wrappedSchema } from './schema.ts';

/** A tool that was read and can be listed and run. */
export interface RunnableTool {
  readonly name: string;
  /** The tool file; empty for a tool that a program passed in. */
  readonly file: string;
  /** The tool's entry in `tools/list`. */
  readonly definition: ToolObject;
  readonly input: CheckedSchema | null;
  readonly output: OutputSchema | null;
  /** 0 for no timeout of its own. */
  readonly timeoutMs: number;
  readonly self: { execute(input: unknown, context: unknown): unknown };
}

type ToolObject = Record<string, unknown>;

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Copied to the definition as they are. */
const COPIED = ['annotations', 'icons'] as const;

const NO_ARGUMENTS: ToolObject = { type: 'object', additionalProperties: false };

/** Whether the value was probably meant as a tool. `readTool` says whether it is a valid one. */
export function isToolLike(value: unknown): value is ToolObject {
  if (!isObject(value) || (typeof value.execute !== 'function' && typeof value.handler !== 'function')) return false;
  return ['description', 'inputSchema', 'parameters'].some((key) => value[key] !== undefined);
}

/** The tool's own name, or else the name of its export. */
export function nameOf(given: ToolObject, exported: string): string {
  const own = given.name ?? given.id;
  return typeof own === 'string' && own !== '' ? own : exported;
}

/** Throws an error that says what is wrong with the tool. */
export async function readTool(given: ToolObject, name: string, file: string): Promise<RunnableTool> {
  if (!NAME.test(name))
    throw new Error(
      'its name is not valid: use at most 128 letters, digits, "_", "-" and ".". Give the tool a `name`.',
    );
  if (typeof given.description !== 'string' || given.description.trim() === '')
    throw new Error('has no description; say in `description` what it does, for the model that uses it.');
  const { title, description, timeoutMs } = given;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new Error('has a `timeoutMs` that is not a number of milliseconds.');
  const input = await part('inputSchema', () => readInput(given.inputSchema ?? given.parameters));
  const output = await part('outputSchema', () => readOutput(given.outputSchema));
  const definition: ToolObject = { name };
  if (typeof title === 'string') definition.title = title;
  definition.description = description;
  definition.inputSchema = input?.json ?? NO_ARGUMENTS;
  if (output !== null) definition.outputSchema = output.json;
  for (const key of COPIED) if (given[key] !== undefined) definition[key] = given[key];
  if (file !== '') definition._meta = { ...(isObject(given._meta) ? given._meta : {}), 'toolgate/file': file };
  else if (isObject(given._meta)) definition._meta = given._meta;
  return { name, file, definition, input, output, timeoutMs: timeoutMs ?? 0, self: selfOf(given) };
}

/** Some libraries call the function `handler`. */
function selfOf(given: ToolObject): RunnableTool['self'] {
  if (typeof given.execute === 'function') return given as unknown as RunnableTool['self'];
  if (typeof given.handler !== 'function') throw new Error('has no function; give it one as `execute`.');
  return { execute: given.handler.bind(given) as RunnableTool['self']['execute'] };
}

async function readInput(given: unknown): Promise<CheckedSchema | null> {
  if (given === undefined || given === null) return null;
  const { json, check } = await readSchema(given, 'input');
  return { json: objectSchema(json), check };
}

async function readOutput(given: unknown): Promise<OutputSchema | null> {
  if (given === undefined || given === null) return null;
  const { json, check } = await readSchema(given, 'output');
  const { $schema: _, ...rest } = json;
  if (isObjectSchema(rest)) return { json: { type: 'object', ...rest }, check, isWrapped: false };
  return { json: wrappedSchema(json), check, isWrapped: true };
}

async function part<T>(name: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw new Error(`its ${name} ${textOf(error)}.`);
  }
}
