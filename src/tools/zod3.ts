/** Schemas from zod 3, which brings neither JSON Schema nor, in its older releases, the Standard Schema interface. */
import type { JsonObject } from '../base/objects.ts';
import type { StandardResult, Zod3Result, Zod3Schema } from './define-tool.ts';

export function isZod3(given: object): given is Zod3Schema {
  const { _def, safeParse } = given as Partial<Zod3Schema>;
  return typeof safeParse === 'function' && typeof _def?.typeName === 'string' && _def.typeName.startsWith('Zod');
}

export function validateZod3(
  schema: Zod3Schema,
  value: unknown,
): StandardResult<unknown> | Promise<StandardResult<unknown>> {
  try {
    return standardResult(schema.safeParse(value));
  } catch {
    // It contains something asynchronous, such as an async refinement.
    return schema.safeParseAsync(value).then(standardResult);
  }
}

function standardResult({ success, data, error }: Zod3Result): StandardResult<unknown> {
  return success ? { value: data } : { issues: error?.issues ?? [{ message: 'is not valid' }] };
}

/** As JSON Schema 2020-12. Constraints that JSON Schema cannot express are left out; the schema itself checks them. */
export async function zod3Json(schema: Zod3Schema): Promise<Record<string, unknown>> {
  const { zodToJsonSchema, ignoreOverride } = await import('zod-to-json-schema');
  const json = zodToJsonSchema(schema as never, {
    // Many clients do not resolve references, and references break when a schema becomes part of another.
    $refStrategy: 'none',
    pipeStrategy: 'input',
    mapStrategy: 'record',
    // By default zod accepts unknown keys and drops them.
    removeAdditionalStrategy: 'strict',
    allowedAdditionalProperties: undefined,
    override: (_, { currentPath }, seen) => (isAncestor(seen?.path, currentPath) ? {} : ignoreOverride),
    postProcess: (json, def) => json && corrected(json, def as unknown as Zod3Schema['_def']),
  });
  // BigInt has no JSON.
  const text = JSON.stringify(json, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value));
  const { $schema: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
  return rest;
}

/** Whether a schema is inside itself. Without references, such a schema can only be described as "anything". */
function isAncestor(path: readonly string[] | undefined, current: readonly string[]): boolean {
  return path !== undefined && path.length < current.length && path.every((part, i) => part === current[i]);
}

/** The same in JSON Schema 2020-12, and without statements about values that JSON does not have. */
function corrected(json: JsonObject, def: Zod3Schema['_def']): JsonObject {
  switch (def.typeName) {
    case 'ZodTuple': {
      // A list of items has another keyword than in draft 7.
      const { items, additionalItems = false, maxItems: _, ...rest } = json;
      return { ...rest, prefixItems: items, items: additionalItems };
    }
    case 'ZodString': {
      // JSON Schema has no flags for patterns.
      const { pattern: _, allOf: __, ...rest } = json;
      const checks = (def.checks ?? []) as readonly { readonly regex?: RegExp }[];
      return checks.some(({ regex }) => regex !== undefined && regex.flags !== '') ? rest : json;
    }
    case 'ZodLiteral': {
      const { type: _, ...rest } = json;
      return def.value === null ? { ...rest, const: null } : json;
    }
    case 'ZodNullable':
      return Array.isArray(json.type) ? { ...json, type: [...new Set(json.type)] } : json;
    case 'ZodOptional':
    case 'ZodUnion':
      return withoutUndefined(json);
    default:
      return json;
  }
}

/** `undefined` is listed as an alternative that nothing matches: `{ not: {} }`. */
function withoutUndefined(json: JsonObject): JsonObject {
  const { anyOf, ...rest } = json;
  if (!Array.isArray(anyOf)) return json;
  const possible = (anyOf as readonly JsonObject[]).filter(({ not }) => not === undefined);
  return possible.length === 1 ? { ...possible[0], ...rest } : { ...rest, anyOf: possible };
}
