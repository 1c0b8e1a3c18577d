/**
 * Reads a tool from any object that looks like one: our own shape, and those of the AI SDK, Mastra, FastMCP and
 * Toolception.
 */
import { isObject, isPlain } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import type { Completer } from './define-prompt.ts';
import type { McpToolDefinition, ToolDefinition } from './define-tool.ts';
import { textOf } from './fault.ts';
import { type OutputSchema, resultJson } from './result-json.ts';
import { type CheckedSchema, isObjectSchema, objectSchema, readSchema, wrappedSchema } from './schema.ts';

export type RunnableKind = 'tool' | 'prompt' | 'resource' | 'template';

/** An item that was read and can be listed and run. */
export interface RunnableItem {
  readonly kind: RunnableKind;
  /** What identifies it: the name of a tool or prompt, the URI of a resource, the URI template of a template. */
  readonly name: string;
  /** The file; empty for an item that a program passed in. */
  readonly file: string;
  /** Its entry in the list of its kind. */
  readonly definition: ItemObject;
  readonly input: CheckedSchema | null;
  /** 0 for no timeout of its own. */
  readonly timeoutMs: number;
  readonly self: { execute(input: unknown, context: unknown): unknown };
  /** The MCP result for what it returned, as JSON. A promise only if its schema has to wait. */
  render(value: unknown, input: unknown): string | Promise<string>;
  /** Proposals for its arguments. */
  readonly complete?: Readonly<Record<string, Completer>>;
  /** For resources and templates: the variables in a URI that is one of its own; null for any other URI. */
  match?(uri: string): Record<string, string> | null;
}

export interface RunnableTool extends RunnableItem {
  readonly kind: 'tool';
}

/** An item as its author wrote it, or a definition. */
export type ItemObject = Record<string, unknown>;

const NAME = /^[A-Za-z0-9_.-]{1,128}$/;

/** Copied to the definition as they are. */
const COPIED = ['annotations', 'icons'] as const;

const OWN: Readonly<Record<keyof ToolDefinition | keyof McpToolDefinition, true>> = {
  name: true,
  title: true,
  description: true,
  inputSchema: true,
  outputSchema: true,
  annotations: true,
  timeoutMs: true,
  _meta: true,
  execute: true,
  handler: true,
};

/** Members that tools of other libraries may have: of MCP, the AI SDK, Mastra and FastMCP. */
const OTHER: readonly string[] = (
  'id parameters icons execution type args strict inputExamples providerOptions metadata isProviderExecuted ' +
  'onInputStart onInputDelta onInputAvailable toModelOutput supportsDeferredResults'
).split(' ');

/** What protects a tool in other libraries and is not applied here. */
const PROTECTING = ['needsApproval', 'requireApproval', 'canAccess'];

const NO_ARGUMENTS: ItemObject = { type: 'object', additionalProperties: false };

/** Whether the value was probably meant as a tool. `readTool` says whether it is a valid one. */
export function isToolLike(value: unknown): value is ItemObject {
  if (!isObject(value) || (typeof value.execute !== 'function' && typeof value.handler !== 'function')) return false;
  return ['description', 'inputSchema', 'parameters'].some((key) => value[key] !== undefined);
}

/** The tool's own name, or else the name of its export. */
export function nameOf(given: ItemObject, exported: string): string {
  const own = given.name ?? given.id;
  return typeof own === 'string' && own !== '' ? own : exported;
}

/** Throws an error that says what is wrong with the tool. */
export async function readTool(given: ItemObject, name: string, file: string): Promise<RunnableTool> {
  checkMembers(given);
  checkName(name, 'tool');
  if (typeof given.description !== 'string' || given.description.trim() === '')
    throw new Error('has no description; say in `description` what it does, for the model that uses it.');
  const { title, description } = given;
  const timeoutMs = checkTimeout(given.timeoutMs);
  const input = await part('inputSchema', () => readInput(given.inputSchema ?? given.parameters));
  const output = await part('outputSchema', () => readOutput(given.outputSchema));
  const definition: ItemObject = { name };
  if (typeof title === 'string') definition.title = title;
  definition.description = description;
  definition.inputSchema = input?.json ?? NO_ARGUMENTS;
  if (output !== null) definition.outputSchema = output.json;
  for (const key of COPIED) if (given[key] !== undefined) definition[key] = given[key];
  Object.assign(definition, metaOf(given, file));
  const render = (value: unknown) => resultJson(value, output);
  return { kind: 'tool', name, file, definition, input, timeoutMs, self: selfOf(given), render };
}

export function checkName(name: string, kind: string): void {
  if (!NAME.test(name))
    throw new Error(
      `its name is not valid: use at most 128 letters, digits, "_", "-" and ".". Give the ${kind} a \`name\`.`,
    );
}

export function checkTimeout(given: unknown): number {
  if (given === undefined) return 0;
  if (typeof given === 'number' && given > 0) return given;
  throw new Error('has a `timeoutMs` that is not a number of milliseconds.');
}

/** The member `_meta` of a definition, which names the file. */
export function metaOf(given: ItemObject, file: string): { readonly _meta?: ItemObject } {
  if (file !== '') return { _meta: { ...(isObject(given._meta) ? given._meta : {}), 'toolgate/file': file } };
  return isObject(given._meta) ? { _meta: given._meta } : {};
}

/** A misspelt member would be ignored in silence, and with it perhaps the check of the arguments. */
function checkMembers(given: ItemObject): void {
  for (const member of PROTECTING)
    if (given[member] !== undefined && given[member] !== false)
      throw new Error(
        `has \`${member}\`, which is not applied here; remove it, and use policies or \`security.confirm\`.`,
      );
  // An instance of a class has members of its own.
  if (!isPlain(given)) return;
  for (const member of Object.keys(given)) {
    if (Object.hasOwn(OWN, member) || OTHER.includes(member) || PROTECTING.includes(member)) continue;
    if (member.startsWith('_') || member.startsWith('experimental_')) continue;
    const known = Object.keys(OWN);
    const hint = didYouMean(member, known) || ` A tool has ${known.join(', ')}.`;
    throw new Error(`has an unknown member "${member}".${hint}`);
  }
}

/** Some libraries call the function `handler`. */
function selfOf(given: ItemObject): RunnableTool['self'] {
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
