/**
 * Reads any kind of schema that a tool may have: as JSON Schema for the list of tools, and as a check for values.
 * Schemas are recognized by shape, never by class, because a tool's copy of zod is not ours.
 */
import { isObject } from '../base/objects.ts';
import type { StandardIssue, StandardSchema, Zod3Schema } from './define-tool.ts';
import { textOf } from './fault.ts';
import { type Check, jsonSchemaCheck } from './json-schema-check.ts';
import { isZod3, validateZod3, zod3Json } from './zod3.ts';

type JsonSchemaObject = Record<string, unknown>;

export interface CheckedSchema {
  readonly json: JsonSchemaObject;
  readonly check: Check;
}

type Direction = 'input' | 'output';

/** Throws an error that says what is wrong with the schema. */
export async function readSchema(given: unknown, direction: Direction): Promise<CheckedSchema> {
  // The AI SDK accepts a function that returns the schema.
  if (typeof given === 'function' && !('~standard' in given)) return readSchema(await given(), direction);
  if (typeof given === 'function' || isObject(given)) {
    if (isZod3(given)) return { json: await zod3Json(given), check: (value) => validateZod3(given, value) };
    if ('~standard' in given) return readStandard(given as unknown as StandardSchema, direction);
    // The result of `jsonSchema()` of the AI SDK.
    if ('jsonSchema' in given) return readWrapped(given as unknown as WrappedSchema);
    const json = given as JsonSchemaObject;
    if (isShape(json)) return readShape(json, direction);
    return { json, check: await jsonSchemaCheck(json) };
  }
  throw new Error('is neither a schema (zod, arktype, valibot, …) nor a JSON Schema object');
}

async function readStandard(schema: StandardSchema, direction: Direction): Promise<CheckedSchema> {
  const standard = schema['~standard'];
  return { json: await standardJson(schema, direction), check: (value) => standard.validate(value) };
}

async function standardJson(schema: StandardSchema, direction: Direction): Promise<JsonSchemaObject> {
  const standard = schema['~standard'] as StandardSchema['~standard'] & {
    readonly jsonSchema?: Readonly<Record<Direction, (options: { target: string }) => JsonSchemaObject>>;
  };
  try {
    if (typeof standard.jsonSchema?.[direction] === 'function')
      return standard.jsonSchema[direction]({ target: 'draft-2020-12' });
    // zod/mini, and older releases of zod 4.
    if ('_zod' in schema) {
      const { toJSONSchema } = await import('./zod4.ts');
      return toJSONSchema(schema as never, { io: direction }) as JsonSchemaObject;
    }
  } catch (error) {
    throw new Error(`cannot be written as JSON Schema: ${textOf(error)}`);
  }
  const { vendor } = standard;
  if (vendor === 'valibot')
    throw new Error('gives no JSON Schema; wrap it in toStandardJsonSchema() of @valibot/to-json-schema');
  throw new Error(
    `is from ${JSON.stringify(vendor)}, which gives no JSON Schema; use a library that does, or JSON Schema`,
  );
}

/** What goes between the braces of `z.object({ … })`: a schema for each argument. */
type SchemaShape = Readonly<Record<string, StandardSchema | Zod3Schema>>;

function isShape(given: object): given is SchemaShape {
  const values = Object.values(given);
  return values.length > 0 && values.every((value) => isObject(value) && ('~standard' in value || isZod3(value)));
}

async function readShape(shape: SchemaShape, direction: Direction): Promise<CheckedSchema> {
  const parts = await Promise.all(
    Object.entries(shape).map(async ([key, given]) => {
      const schema = await readSchema(given, direction);
      const { issues } = await schema.check(undefined);
      return { key, ...schema, isRequired: issues !== undefined };
    }),
  );
  const required = parts.filter(({ isRequired }) => isRequired).map(({ key }) => key);
  return {
    json: {
      type: 'object',
      properties: Object.fromEntries(parts.map(({ key, json: { $schema: _, ...json } }) => [key, json])),
      ...(required.length > 0 && { required }),
    },
    async check(value) {
      if (!isObject(value)) return { issues: [{ message: 'must be an object' }] };
      const checked = await Promise.all(parts.map(async ({ key, check }) => [key, await check(value[key])] as const));
      const issues = checked.flatMap(([key, { issues = [] }]) =>
        issues.map((issue) => ({ message: issue.message, path: [key, ...(issue.path ?? [])] })),
      );
      if (issues.length > 0) return { issues };
      const values = checked.map(([key, one]) => [key, one.issues === undefined ? one.value : undefined] as const);
      return { value: Object.fromEntries(values.filter(([, one]) => one !== undefined)) };
    },
  };
}

interface WrappedSchema {
  readonly jsonSchema: unknown;
  readonly validate?: (value: unknown) => unknown;
}

async function readWrapped(given: WrappedSchema): Promise<CheckedSchema> {
  const json = await given.jsonSchema;
  if (!isObject(json)) throw new Error('has no JSON Schema in it');
  const { validate } = given;
  if (typeof validate !== 'function') return { json, check: await jsonSchemaCheck(json) };
  return {
    json,
    check: async (value) => {
      const { success, value: parsed, error } = (await validate(value)) as Record<string, unknown>;
      return success === true ? { value: parsed } : { issues: [{ message: textOf(error) }] };
    },
  };
}

/** MCP requires that the arguments of a tool are an object. */
export function objectSchema(json: JsonSchemaObject): JsonSchemaObject {
  const { $schema: _, ...rest } = json;
  if (rest.type === undefined) return { type: 'object', ...rest };
  if (rest.type !== 'object')
    throw new Error(`describes ${JSON.stringify(rest.type)}, but the arguments of a tool are an object`);
  return rest;
}

export function isObjectSchema({ type, properties }: JsonSchemaObject): boolean {
  return type === 'object' || (type === undefined && properties !== undefined);
}

/** The schema of an object around a result that is not an object. In MCP a structured result is always an object. */
export function wrappedSchema(json: JsonSchemaObject): JsonSchemaObject {
  const { $schema: _, $defs, ...result } = json;
  return {
    type: 'object',
    properties: { result },
    required: ['result'],
    // References to definitions start at the top.
    ...($defs === undefined ? {} : { $defs }),
    'x-fastmcp-wrap-result': true,
  };
}

/** One line for people: `limit: must be >= 1; owner: is missing`. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map(({ path, message }) => (path?.length ? `${pathText(path)}: ${message}` : message)).join('; ');
}

export function issueDetails(issues: readonly StandardIssue[]): { issues: { path: string; message: string }[] } {
  return { issues: issues.map(({ path = [], message }) => ({ path: pathText(path), message })) };
}

function pathText(path: NonNullable<StandardIssue['path']>): string {
  return path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
}
