/** Reads an OpenAPI document (3.0 and 3.1, JSON and YAML) into operations that can become tools. */
import { GatewayError, messageOf } from '../../base/errors.ts';
import { isObject, toObject } from '../../base/objects.ts';
import { percentDecoded } from '../../base/text.ts';

export interface ApiOperation {
  /** Unique in the document, and a name for a variable. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly ApiParameter[];
  readonly body: ApiBody | null;
  /** Schemes of `OpenApiDocument.security` that a call needs. */
  readonly security: readonly string[];
}

export interface ApiParameter {
  /** What a caller of the tool writes. */
  readonly name: string;
  readonly wireName: string;
  readonly place: 'path' | 'query' | 'header';
  /** How a list or an object is written in a query. */
  readonly form: 'repeat' | 'comma' | 'deep';
  readonly required: boolean;
  readonly schema: ApiSchema;
}

export interface ApiBody {
  readonly type: string;
  readonly required: boolean;
  readonly schema: ApiSchema;
}

export type ApiSchema = Readonly<Record<string, unknown>>;

/** How a credential is sent. */
export type ApiScheme =
  | { readonly kind: 'bearer' | 'basic' }
  | { readonly kind: 'header' | 'query'; readonly name: string };

export interface OpenApiDocument {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  /** Null if the document names no absolute address. */
  readonly baseUrl: string | null;
  readonly operations: readonly ApiOperation[];
  readonly security: Readonly<Record<string, ApiScheme>>;
  /** What was left out. */
  readonly notes: readonly string[];
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];
const MAX_OPERATIONS = 500;
const MAX_DEPTH = 16;
/** Schemas that refer to each other grow when they are written out. */
const MAX_NODES = 20_000;
const RESERVED =
  /^(?:break|case|catch|class|const|continue|debugger|default|delete|do|else|enum|export|extends|false|finally|for|function|if|import|in|instanceof|new|null|return|super|switch|this|throw|true|try|typeof|var|void|while|with|yield|let|static|await|async|request|defineTool)$/;

/** `base` is the address of the document, for addresses in it that are relative. */
export async function readOpenApi(text: string, base: string | null): Promise<OpenApiDocument> {
  const document = await parse(text);
  const version = String(document.openapi ?? '');
  if (!/^3\.[01](?:\.|$)/.test(version)) {
    const found =
      document.swagger === undefined ? 'it has no "openapi: 3.…"' : `it is Swagger ${String(document.swagger)}`;
    throw new GatewayError('usage', `This is not an OpenAPI document of 3.0 or 3.1: ${found}. Convert it first.`);
  }
  const notes: string[] = [];
  const info = toObject(document.info);
  const resolver = createResolver(document, version.startsWith('3.0'), notes);
  const security = schemes(resolver.object(toObject(document.components).securitySchemes), resolver, notes);
  const operations = readOperations(document, resolver, Object.keys(security), notes);
  if (operations.length === 0)
    throw new GatewayError('usage', 'The document has no operations, so there is nothing to make tools of.');
  return {
    title: String(info.title ?? 'API'),
    version: String(info.version ?? ''),
    description: String(info.summary ?? info.description ?? info.title ?? ''),
    baseUrl: baseUrl(document, base),
    operations,
    security,
    notes: [...new Set(notes)].slice(0, 50),
  };
}

async function parse(text: string): Promise<Record<string, unknown>> {
  let value: unknown;
  try {
    value = /^\s*\{/.test(text) ? JSON.parse(text) : (await import('yaml')).parse(text);
  } catch (error) {
    throw new GatewayError('usage', `The document is neither JSON nor YAML: ${messageOf(error).split('\n')[0]}.`);
  }
  if (!isObject(value)) throw new GatewayError('usage', 'The document is not a map with "openapi" and "paths".');
  return value;
}

function baseUrl(document: Record<string, unknown>, base: string | null): string | null {
  const [first] = Array.isArray(document.servers) ? document.servers : [];
  const { url, variables } = toObject(first);
  const filled = String(url ?? '/').replace(/\{([^{}]+)\}/g, (_, name: string) =>
    String(toObject(toObject(variables)[name]).default ?? ''),
  );
  const absolute = URL.canParse(filled)
    ? filled
    : base !== null && URL.canParse(filled, base)
      ? new URL(filled, base).href
      : null;
  return absolute === null || !/^https?:/.test(absolute) ? null : absolute.replace(/\/+$/, '');
}

interface Resolver {
  /** An object of the document; a reference is followed. */
  object(value: unknown): Record<string, unknown>;
  /** A JSON Schema without references. */
  schema(value: unknown): ApiSchema;
}

function createResolver(document: Record<string, unknown>, isOld: boolean, notes: string[]): Resolver {
  const target = (reference: string): unknown => {
    if (!reference.startsWith('#/')) {
      notes.push(`A reference to another document is left out: ${reference.slice(0, 100)}`);
      return {};
    }
    const parts = reference
      .slice(2)
      .split('/')
      .map((part) => (percentDecoded(part) ?? part).replaceAll('~1', '/').replaceAll('~0', '~'));
    return parts.reduce<unknown>(
      (value, part) => (isObject(value) && Object.hasOwn(value, part) ? value[part] : undefined),
      document,
    );
  };
  const object = (value: unknown, depth = 0): Record<string, unknown> => {
    const own = toObject(value);
    return typeof own.$ref === 'string' && depth < MAX_DEPTH ? object(target(own.$ref), depth + 1) : own;
  };
  let nodes = 0;
  const schema = (value: unknown, seen: readonly string[] = []): ApiSchema => {
    const own = toObject(value);
    nodes += 1;
    if (nodes > MAX_NODES || seen.length > MAX_DEPTH) return {};
    if (typeof own.$ref === 'string') {
      // A schema inside of itself can hold anything there.
      if (seen.includes(own.$ref)) return { description: `Another ${own.$ref.split('/').at(-1)}` };
      const { $ref, ...besides } = own;
      return { ...schema(target($ref as string), [...seen, $ref as string]), ...(isOld ? {} : plain(besides)) };
    }
    const next = [...seen, ''];
    const result: Record<string, unknown> = {};
    for (const [key, one] of Object.entries(own)) {
      if (key === 'properties' || key === 'patternProperties')
        result[key] = Object.fromEntries(
          Object.entries(toObject(one))
            .filter(([name]) => name !== '__proto__')
            .map(([name, inner]) => [name, schema(inner, next)]),
        );
      else if (
        ['items', 'additionalProperties', 'not', 'contains', 'propertyNames', 'if', 'then', 'else'].includes(key)
      )
        result[key] = isObject(one) ? schema(one, next) : one;
      else if (['allOf', 'anyOf', 'oneOf', 'prefixItems'].includes(key) && Array.isArray(one))
        result[key] = one.map((inner) => schema(inner, next));
      else if (KEPT.includes(key)) result[key] = one;
    }
    return isOld ? upgraded(result, own) : result;
  };
  return { object, schema: (value) => schema(value) };
}

const KEPT =
  'type title description default enum const format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems uniqueItems minProperties maxProperties required nullable'.split(
    ' ',
  );

function plain(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([key]) => KEPT.includes(key)));
}

/** From the dialect of OpenAPI 3.0 to JSON Schema. */
function upgraded({ nullable, ...schema }: Record<string, unknown>, own: Record<string, unknown>): ApiSchema {
  const result: Record<string, unknown> = { ...schema };
  for (const [flag, bound] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (typeof result[flag] !== 'boolean') continue;
    if (result[flag] === true && result[bound] !== undefined) {
      result[flag] = result[bound];
      delete result[bound];
    } else delete result[flag];
  }
  if (nullable === true && typeof own.type === 'string') {
    result.type = [own.type, 'null'];
    if (Array.isArray(result.enum)) result.enum = [...result.enum, null];
  }
  return result;
}

function schemes(written: Record<string, unknown>, resolver: Resolver, notes: string[]): Record<string, ApiScheme> {
  const found: Record<string, ApiScheme> = {};
  for (const [key, value] of Object.entries(written)) {
    const { type, scheme, name, in: place } = resolver.object(value);
    const kind = String(scheme ?? '').toLowerCase();
    if (type === 'oauth2' || type === 'openIdConnect' || (type === 'http' && kind === 'bearer'))
      found[key] = { kind: 'bearer' };
    else if (type === 'http' && kind === 'basic') found[key] = { kind: 'basic' };
    else if (
      type === 'apiKey' &&
      (place === 'header' || place === 'query') &&
      /^[\w!#$%&'*+.^`|~-]+$/.test(String(name))
    )
      found[key] = { kind: place, name: String(name) };
    else notes.push(`The security scheme "${key}" is not supported and left out.`);
  }
  return found;
}

function readOperations(
  document: Record<string, unknown>,
  resolver: Resolver,
  known: readonly string[],
  notes: string[],
): ApiOperation[] {
  const operations: ApiOperation[] = [];
  const names = new Set<string>();
  for (const [path, item] of Object.entries(toObject(document.paths))) {
    const shared = resolver.object(item);
    for (const method of METHODS) {
      if (!isObject(shared[method])) continue;
      if (operations.length >= MAX_OPERATIONS) {
        notes.push(`Only the first ${MAX_OPERATIONS} operations became tools.`);
        return operations;
      }
      const operation = shared[method];
      const name = uniqueName(String(operation.operationId ?? `${method}_${path}`), names);
      operations.push({
        name,
        title: String(operation.summary ?? '').slice(0, 200),
        description: String(operation.description ?? operation.summary ?? `${method.toUpperCase()} ${path}`)
          .trim()
          .slice(0, 4_000),
        method: method.toUpperCase(),
        path,
        parameters: readParameters(name, shared.parameters, operation.parameters, resolver, notes),
        body: readBody(name, operation.requestBody, resolver, notes),
        security: readSecurity(operation.security ?? document.security, known),
      });
    }
  }
  return operations;
}

function uniqueName(written: string, taken: Set<string>): string {
  const plainName =
    written
      .replace(/[^A-Za-z0-9]+/g, '_')
      .replace(/^_+|_+$/g, '')
      .slice(0, 56) || 'operation';
  const start = /^\d/.test(plainName) || RESERVED.test(plainName) ? `call_${plainName}` : plainName;
  let name = start;
  for (let count = 2; taken.has(name.toLowerCase()); count += 1) name = `${start}_${count}`;
  taken.add(name.toLowerCase());
  return name;
}

function readParameters(
  operation: string,
  shared: unknown,
  own: unknown,
  resolver: Resolver,
  notes: string[],
): ApiParameter[] {
  const merged = new Map<string, Record<string, unknown>>();
  for (const one of [...(Array.isArray(shared) ? shared : []), ...(Array.isArray(own) ? own : [])]) {
    const parameter = resolver.object(one);
    merged.set(`${String(parameter.in)} ${String(parameter.name)}`, parameter);
  }
  const names = new Set(['body', '__proto__']);
  return [...merged.values()].flatMap((parameter): ApiParameter[] => {
    const wireName = String(parameter.name ?? '');
    const place = parameter.in;
    if (place !== 'path' && place !== 'query' && place !== 'header') {
      notes.push(`${operation}: the parameter "${wireName}" in ${String(place)} is left out.`);
      return [];
    }
    // The client sets these itself.
    if (
      place === 'header' &&
      !/^(?!accept$|content-type$|authorization$|host$|cookie$)[\w!#$%&'*+.^`|~-]+$/i.test(wireName)
    )
      return [];
    const name = names.has(wireName) ? `${wireName}_${place}` : wireName;
    names.add(name);
    const [inner] = Object.values(toObject(parameter.content));
    const schema = resolver.schema(parameter.schema ?? toObject(inner).schema ?? {});
    const described =
      typeof parameter.description === 'string' ? { ...schema, description: parameter.description } : schema;
    const form =
      parameter.style === 'deepObject' ? 'deep' : parameter.explode === false || place !== 'query' ? 'comma' : 'repeat';
    return [
      { name, wireName, place, form, required: parameter.required === true || place === 'path', schema: described },
    ];
  });
}

function readBody(operation: string, written: unknown, resolver: Resolver, notes: string[]): ApiBody | null {
  const { content, required } = resolver.object(written);
  const types = Object.keys(toObject(content));
  if (types.length === 0) return null;
  const type =
    types.find((one) => /^application\/(?:[\w.-]+\+)?json\b/.test(one)) ??
    types.find((one) => one.startsWith('application/x-www-form-urlencoded')) ??
    types.find((one) => one.startsWith('text/'));
  if (type === undefined) {
    notes.push(`${operation}: a body of ${types.join(', ')} cannot be sent, so it is left out.`);
    return null;
  }
  const schema = resolver.schema(toObject(toObject(content)[type]).schema ?? {});
  return {
    type: type.split(';')[0]!,
    required: required === true,
    schema: type.startsWith('text/') ? { type: 'string', ...schema } : schema,
  };
}

/** The first way in that is known here. None if one of the ways needs nothing. */
function readSecurity(written: unknown, known: readonly string[]): string[] {
  const ways = (Array.isArray(written) ? written : []).map((one) => Object.keys(toObject(one)));
  if (ways.some((way) => way.length === 0)) return [];
  return ways.find((way) => way.every((scheme) => known.includes(scheme))) ?? [];
}
