/**
 * JSON Schemas of tools for programs that understand OpenAPI better than JSON Schema. Only keywords of OpenAPI 3.1
 * remain, and references are replaced by their targets. Only schemas that refer to themselves become components.
 */
import { isObject, type JsonObject } from '../../../base/objects.ts';
import { DEFINITIONS, schemaChildren } from '../../../base/schema-children.ts';
import { percentDecoded } from '../../../base/text.ts';

export interface OpenApiSchema {
  readonly schema: unknown;
  /** The schemas that it refers to, by name. */
  readonly components: ReadonlyMap<string, unknown>;
}

/** Beyond this many parts a schema keeps its references: a few lines of references can expand to billions of parts. */
const MOST_PARTS = 5_000;
const MOST_REFERENCES = 500;
const MOST_DEPTH = 64;

/** The names of components start with `prefix`. References to other documents are not followed: they allow anything. */
export function toOpenApiSchema(schema: unknown, prefix: string): OpenApiSchema {
  const graph = readReferences(schema);
  if (graph !== null) {
    const recursive = new Set([...graph.keys()].filter((pointer) => reaches(graph, pointer)));
    const converted = convertAll(schema, prefix, (pointer) => recursive.has(pointer));
    if (converted !== null) return converted;
  }
  return convertAll(schema, prefix, () => true) ?? { schema: {}, components: new Map() };
}

/** What a pointer into the schema refers to; undefined if there is nothing. */
function follow(root: unknown, pointer: string): unknown {
  if (pointer === '#') return root;
  if (!pointer.startsWith('#/')) return undefined;
  return pointer
    .slice(2)
    .split('/')
    .reduce<unknown>((value, part) => {
      const key = decodePart(part);
      if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
      return (value as JsonObject)[key];
    }, root);
}

function decodePart(part: string): string {
  return (percentDecoded(part) ?? part).replaceAll('~1', '/').replaceAll('~0', '~');
}

type References = ReadonlyMap<string, readonly string[]>;

/** For each pointer in use, the pointers inside of its target. Null if there are too many. */
function readReferences(root: unknown): References | null {
  const found = new Map<string, readonly string[]>();
  const waiting = ['#'];
  for (let pointer = waiting.pop(); pointer !== undefined; pointer = waiting.pop()) {
    if (found.has(pointer)) continue;
    if (found.size > MOST_REFERENCES) return null;
    const below: string[] = [];
    collect(follow(root, pointer), below, 0);
    found.set(pointer, below);
    waiting.push(...below);
  }
  return found;
}

function collect(node: unknown, into: string[], depth: number): void {
  if (depth > MOST_DEPTH * 2 || !isObject(node)) return;
  if (typeof node.$ref === 'string') into.push(node.$ref);
  for (const child of schemaChildren(node, DEFINITIONS)) collect(child, into, depth + 1);
}

/** Whether a schema refers to itself, directly or through others. */
function reaches(graph: References, pointer: string): boolean {
  const seen = new Set<string>();
  const waiting = [...(graph.get(pointer) ?? [])];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next === pointer) return true;
    if (seen.has(next)) continue;
    seen.add(next);
    waiting.push(...(graph.get(next) ?? []));
  }
  return false;
}

// Keywords of OpenAPI 3.1 that contain schemas: an object of them, an array of them, or a single one.
const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas']);
const LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const SINGLES = new Set([
  ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'contentSchema'],
]);
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);

/** The other keywords of OpenAPI 3.1, and checks of their values. Everything else is left out. */
const KEYWORDS: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ...['title', 'description', 'format', 'pattern', 'contentEncoding', 'contentMediaType'].map(
    (key) => [key, isText] as const,
  ),
  ...['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum'].map(
    (key) => [key, isNumber] as const,
  ),
  ...['maxLength', 'minLength', 'maxItems', 'minItems', 'maxContains', 'minContains'].map(
    (key) => [key, isCount] as const,
  ),
  ...['maxProperties', 'minProperties'].map((key) => [key, isCount] as const),
  ...['uniqueItems', 'deprecated', 'readOnly', 'writeOnly'].map((key) => [key, isFlag] as const),
  ['required', isTexts],
  ['type', isType],
  ['enum', isFilled],
  ['examples', Array.isArray],
  ['const', () => true],
  ['default', () => true],
]);

function isText(value: unknown): boolean {
  return typeof value === 'string';
}

function isNumber(value: unknown): boolean {
  return typeof value === 'number';
}

function isCount(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0;
}

function isFlag(value: unknown): boolean {
  return typeof value === 'boolean';
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText) && new Set(value).size === value.length;
}

function isFilled(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0;
}

function isType(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0 && value.every((one) => TYPES.has(one as string));
  return TYPES.has(value as string);
}

class TooMany extends Error {}

/** Null if the result gets too large. `isComponent` says which references remain. */
function convertAll(root: unknown, prefix: string, isComponent: (pointer: string) => boolean): OpenApiSchema | null {
  const components = new Map<string, unknown>();
  const names = new Map<string, string>();
  let parts = 0;

  function convert(node: unknown, depth: number): unknown {
    if (typeof node === 'boolean') return node;
    if (!isObject(node) || depth > MOST_DEPTH) return {};
    if (++parts > MOST_PARTS) throw new TooMany();
    const { $ref, ...rest } = node;
    if (typeof $ref !== 'string') return convertOwn(node, depth);
    const target = refer($ref, depth);
    const own = convertOwn(rest, depth);
    if (Object.keys(own).length === 0) return target;
    // Keywords next to a reference apply as well.
    const isNote = Object.keys(own).every((key) => key === 'description' || key === 'title' || key === 'default');
    return isNote && isObject(target) && !('$ref' in target) ? { ...target, ...own } : { ...own, allOf: [target] };
  }

  function refer(pointer: string, depth: number): unknown {
    const target = follow(root, pointer);
    if (target === undefined) return {};
    if (!isComponent(pointer)) return convert(target, depth + 1);
    const name = names.get(pointer) ?? nameOf(pointer);
    if (!names.has(pointer)) {
      names.set(pointer, name);
      components.set(name, convert(target, 0));
    }
    return { $ref: `#/components/schemas/${name}` };
  }

  function nameOf(pointer: string): string {
    const last = pointer === '#' ? 'self' : decodePart(pointer.slice(pointer.lastIndexOf('/') + 1));
    const plain = `${prefix}_${last.replace(/[^\w.-]/g, '_').slice(0, 64)}`;
    return [...names.values()].includes(plain) ? `${plain}_${names.size + 1}` : plain;
  }

  function convertOwn(node: JsonObject, depth: number): Record<string, unknown> {
    const made: Record<string, unknown> = {};
    const put = (key: string, value: unknown) => {
      made[key] = value;
    };
    for (const [key, value] of Object.entries(modernized(node))) {
      if (MAPS.has(key)) {
        if (isObject(value))
          put(key, fromEntries(Object.entries(value).map(([name, one]) => [name, convert(one, depth + 1)])));
      } else if (LISTS.has(key)) {
        if (isFilled(value))
          put(
            key,
            (value as unknown[]).map((one) => convert(one, depth + 1)),
          );
      } else if (SINGLES.has(key)) put(key, convert(value, depth + 1));
      else if (key === 'dependentRequired') {
        if (isObject(value) && Object.values(value).every(isTexts)) put(key, value);
      } else if (key.startsWith('x-') ? key !== 'x-fastmcp-wrap-result' : KEYWORDS.get(key)?.(value)) put(key, value);
    }
    return made;
  }

  try {
    const schema = convert(root, 0);
    return { schema, components };
  } catch (error) {
    if (error instanceof TooMany || error instanceof RangeError) return null;
    throw error;
  }
}

/** Safe even if a name is `__proto__`. */
function fromEntries(entries: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  return Object.fromEntries(entries);
}

/** Converts keywords of earlier drafts to the current draft. */
function modernized(node: JsonObject): JsonObject {
  const { items, additionalItems, dependencies, exclusiveMinimum, exclusiveMaximum, nullable, ...rest } = node;
  const made: Record<string, unknown> = rest;
  if (Array.isArray(items)) {
    made.prefixItems = items;
    if (additionalItems !== undefined) made.items = additionalItems;
  } else if (items !== undefined) made.items = items;
  if (exclusiveMinimum === true && isNumber(rest.minimum)) made.exclusiveMinimum = rest.minimum;
  else if (exclusiveMinimum !== undefined) made.exclusiveMinimum = exclusiveMinimum;
  if (exclusiveMaximum === true && isNumber(rest.maximum)) made.exclusiveMaximum = rest.maximum;
  else if (exclusiveMaximum !== undefined) made.exclusiveMaximum = exclusiveMaximum;
  if (nullable === true && typeof rest.type === 'string') made.type = [rest.type, 'null'];
  if (isObject(dependencies)) {
    const all = Object.entries(dependencies);
    made.dependentRequired = fromEntries(all.filter(([, one]) => Array.isArray(one)));
    made.dependentSchemas = fromEntries(all.filter(([, one]) => !Array.isArray(one)));
  }
  return made;
}
