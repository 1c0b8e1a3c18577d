/** A tool, from whatever object it is: our own shape, and by shape those of the AI SDK, Mastra, FastMCP and Toolception. */
import { textOf } from './fault.ts';
import type { OutputShape } from './result-json.ts';
import { isObject, isObjectSchema, type Json, objectSchema, readSchema, type CheckedSchema, wrappedSchema } from './schema.ts';

export interface RunnableTool {
  readonly name: string;
  /** Where it stands; empty for one that is given in code. */
  readonly file: string;
  /** As it is listed. */
  readonly definition: Json;
  readonly input: CheckedSchema | null;
  readonly output: OutputShape | null;
  /** 0 for no limit of its own. */
  readonly timeoutMs: number;
  readonly self: { execute(input: unknown, context: unknown): unknown };
}

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Kept as they are given. */
const PASSED_ON = ['annotations', 'icons'] as const;

const NO_ARGUMENTS: Json = { type: 'object', additionalProperties: false };

/** Whether somebody meant it for a tool; that it is a good one is another question. */
export function isToolLike(value: unknown): value is Json {
  if (!isObject(value) || (typeof value.execute !== 'function' && typeof value.handler !== 'function')) return false;
  return ['description', 'inputSchema', 'parameters'].some((key) => value[key] !== undefined);
}

/** The name that a tool gives itself, or else the one it is exported by. */
export function nameOf(given: Json, exported: string): string {
  const own = given.name ?? given.id;
  return typeof own === 'string' && own !== '' ? own : exported;
}

/** Throws an error that says what is wrong with it. */
export async function readTool(given: Json, name: string, file: string): Promise<RunnableTool> {
  if (!NAME.test(name))
    throw new Error(
      'is no name for a tool: letters, digits, "_", "-" and "." make one, 128 at most. Give the tool a `name`.',
    );
  if (typeof given.description !== 'string' || given.description.trim() === '')
    throw new Error('has no description; say in `description` what it does, for the model that is to use it.');
  const { title, description, timeoutMs } = given;
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    throw new Error('has a `timeoutMs` that is not a number of milliseconds.');
  const input = await part('inputSchema', () => readInput(given.inputSchema ?? given.parameters));
  const output = await part('outputSchema', () => readOutput(given.outputSchema));
  const definition: Json = { name };
  if (typeof title === 'string') definition.title = title;
  definition.description = description;
  definition.inputSchema = input?.json ?? NO_ARGUMENTS;
  if (output !== null) definition.outputSchema = output.json;
  for (const key of PASSED_ON) if (given[key] !== undefined) definition[key] = given[key];
  if (file !== '') definition._meta = { ...(isObject(given._meta) ? given._meta : {}), 'toolgate/file': file };
  else if (isObject(given._meta)) definition._meta = given._meta;
  return {
    name,
    file,
    definition,
    input,
    output,
    timeoutMs: timeoutMs ?? 0,
    self: selfOf(given),
  };
}

/** Some call it their handler. */
function selfOf(given: Json): RunnableTool['self'] {
  if (typeof given.execute === 'function') return given as unknown as RunnableTool['self'];
  if (typeof given.handler !== 'function') throw new Error('has no function; give it one as `execute`.');
  return { execute: given.handler.bind(given) as RunnableTool['self']['execute'] };
}

async function readInput(given: unknown): Promise<CheckedSchema | null> {
  if (given === undefined || given === null) return null;
  const { json, check } = await readSchema(given, 'input');
  return { json: objectSchema(json), check };
}

async function readOutput(given: unknown): Promise<OutputShape | null> {
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
