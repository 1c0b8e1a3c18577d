/**
 * Whatever a tool gives as its schema, as JSON Schema to list and as a check of values. By shape, never by class: a tool's
 * zod is another copy than ours.
 */
import type { StandardIssue, StandardSchema } from './define-tool.ts';
import { textOf } from './fault.ts';
import { type Check, jsonSchemaCheck } from './json-schema-check.ts';
import { isZod3, validateZod3, type Zod3Schema, zod3Json } from './zod3.ts';

export type Json = Record<string, unknown>;

export interface CheckedSchema {
  readonly json: Json;
  readonly check: Check;
}

type Direction = 'input' | 'output';

/** Throws an error that says what is wrong with the schema. */
export async function readSchema(given: unknown, direction: Direction): Promise<CheckedSchema> {
  // The AI SDK takes a function that gives the schema.
  if (typeof given === 'function' && !('~standard' in given)) return readSchema(await given(), direction);
  if (typeof given === 'function' || isObject(given)) {
    if (isZod3(given)) return { json: zod3Json(given), check: (value) => validateZod3(given, value) };
    if ('~standard' in given) return readStandard(given as unknown as StandardSchema, direction);
    // What `jsonSchema()` of the AI SDK gives.
    if ('jsonSchema' in given) return readWrapped(given as unknown as WrappedSchema);
    if (looksLikeShape(given as Json)) return readShape(given as SchemaShape, direction);
    const json = given as Json;
    return { json, check: await jsonSchemaCheck(json) };
  }
  throw new Error('is neither a schema (zod, arktype, valibot, …) nor a JSON Schema object');
}

async function readStandard(schema: StandardSchema, direction: Direction): Promise<CheckedSchema> {
  const standard = schema['~standard'];
  return { json: await standardJson(schema, direction), check: (value) => standard.validate(value) };
}

async function standardJson(schema: StandardSchema, direction: Direction): Promise<Json> {
  const standard = schema['~standard'] as StandardSchema['~standard'] & {
    readonly jsonSchema?: Readonly<Record<Direction, (options: { target: string }) => Json>>;
  };
  try {
    if (typeof standard.jsonSchema?.[direction] === 'function')
      return standard.jsonSchema[direction]({ target: 'draft-2020-12' });
    // Older zod 4, and zod/mini.
    if ('_zod' in schema) {
      const { toJSONSchema } = await import('../../host/provided/zod.ts');
      return toJSONSchema(schema as never, { io: direction }) as Json;
    }
  } catch (error) {
    throw new Error(`cannot be written as JSON Schema: ${textOf(error)}`);
  }
  const { vendor } = standard;
  if (vendor === 'valibot')
    throw new Error('gives no JSON Schema; wrap it in toStandardJsonSchema() of @valibot/to-json-schema');
  throw new Error(`is of ${JSON.stringify(vendor)}, which gives no JSON Schema; use one that does, or JSON Schema`);
}

type SchemaShape = Readonly<Record<string, StandardSchema | Zod3Schema>>;

/** What stands between the braces of `z.object({ … })`: a schema for each argument. */
async function readShape(shape: SchemaShape, direction: Direction): Promise<CheckedSchema> {
  const parts = await Promise.all(
    Object.entries(shape).map(async ([key, given]) => {
      const schema = await readSchema(given, direction);
      const nothing = await schema.check(undefined);
      return { key, ...schema, isRequired: nothing.issues !== undefined };
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
  const json = (await given.jsonSchema) as Json;
  if (!isObject(json)) throw new Error('has no JSON Schema in it');
  const { validate } = given;
  if (typeof validate !== 'function') return { json, check: await jsonSchemaCheck(json) };
  return {
    json,
    check: async (value) => {
      const { success, value: parsed, error } = (await validate(value)) as Json;
      return success === true ? { value: parsed } : { issues: [{ message: textOf(error) }] };
    },
  };
}

/** As a tool's arguments have to be: an object. */
export function objectSchema(json: Json): Json {
  const { $schema: _, ...rest } = json;
  if (rest.type === undefined) return { type: 'object', ...rest };
  if (rest.type !== 'object') throw new Error(`describes ${JSON.stringify(rest.type)}, and arguments are an object`);
  return rest;
}

export function isObjectSchema({ type, properties }: Json): boolean {
  return type === 'object' || (type === undefined && properties !== undefined);
}

/** For a result that is no object: MCP knows structured results only as objects. */
export function wrappedSchema(json: Json): Json {
  const { $schema: _, $defs, ...result } = json;
  return {
    type: 'object',
    properties: { result },
    required: ['result'],
    // References count from the top.
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

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function looksLikeShape(given: Json): boolean {
  const values = Object.values(given);
  return values.length > 0 && values.every((value) => isObject(value) && ('~standard' in value || isZod3(value)));
}
