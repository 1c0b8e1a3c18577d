/**
 * Finds the schemas inside of a JSON Schema. Unknown keywords are treated as if they held a schema, because references
 * may point there.
 */
import { isObject, type JsonObject } from './objects.ts';

/** Keywords that hold plain values, in which nothing is a schema. */
const VALUES: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);

/**
 * Keywords that hold schemas under names chosen by the author: `{ "default": … }` in one of them is a schema named
 * "default".
 */
const MAPS: ReadonlySet<string> = new Set([
  ...['properties', 'patternProperties', 'dependentSchemas', 'dependencies'],
  ...['$defs', 'definitions'],
]);

/** Keywords that hold schemas only for references. */
export const DEFINITIONS: ReadonlySet<string> = new Set(['$defs', 'definitions']);

/** Every schema directly below this one. Elements that are not schemas, such as names in `required`, are included. */
export function schemaChildren(schema: JsonObject, skip: ReadonlySet<string> = NONE): unknown[] {
  const children: unknown[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (VALUES.has(keyword) || skip.has(keyword)) continue;
    if (Array.isArray(value)) for (const one of value) children.push(one);
    else if (MAPS.has(keyword) && isObject(value)) for (const one of Object.values(value)) children.push(one);
    else children.push(value);
  }
  return children;
}

/** The schema with every schema directly below it replaced. */
export function mapSchemaChildren(
  schema: JsonObject,
  replace: (child: unknown, keyword: string) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if (VALUES.has(keyword)) return [keyword, value];
      const one = (child: unknown) => replace(child, keyword);
      if (Array.isArray(value)) return [keyword, value.map(one)];
      if (!MAPS.has(keyword) || !isObject(value)) return [keyword, one(value)];
      return [keyword, Object.fromEntries(Object.entries(value).map(([name, child]) => [name, one(child)]))];
    }),
  );
}

const NONE: ReadonlySet<string> = new Set();
