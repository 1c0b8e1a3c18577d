/** JSON Schema of a schema of zod 3, which has none to give: read off its definition, as far as JSON Schema can say it. */

type Json = Record<string, unknown>;

/** A schema of zod 3, by its shape. */
export interface Zod3Schema {
  readonly _def: Definition;
  readonly description?: string;
  safeParse(value: unknown): Parsed;
  safeParseAsync(value: unknown): Promise<Parsed>;
}

interface Parsed {
  readonly success: boolean;
  readonly data?: unknown;
  readonly error?: { readonly issues: readonly { message: string; path: PropertyKey[] }[] };
}

type Definition = Readonly<Record<string, unknown>> & { readonly typeName: string };

export function isZod3(given: object): given is Zod3Schema {
  const { _def, safeParse } = given as Partial<Zod3Schema>;
  return typeof safeParse === 'function' && typeof _def?.typeName === 'string' && _def.typeName.startsWith('Zod');
}

/** What a Standard Schema of it would say; older ones of zod 3 are none. */
export function validateZod3(schema: Zod3Schema, value: unknown) {
  try {
    return verdict(schema.safeParse(value));
  } catch {
    // It has something in it that has to be waited for.
    return schema.safeParseAsync(value).then(verdict);
  }
}

function verdict({ success, data, error }: Parsed) {
  return success ? { value: data } : { issues: error?.issues ?? [{ message: 'is not valid' }] };
}

export function zod3Json(schema: Zod3Schema): Json {
  const json = read(schema._def);
  return schema.description === undefined ? json : { ...json, description: schema.description };
}

const inner = (schema: unknown): Json => zod3Json(schema as Zod3Schema);

function read(def: Definition): Json {
  switch (def.typeName) {
    case 'ZodString':
      return readString(checksOf(def));
    case 'ZodNumber':
      return readNumber(checksOf(def));
    case 'ZodBigInt':
      return { type: 'integer' };
    case 'ZodBoolean':
      return { type: 'boolean' };
    case 'ZodDate':
      return { type: 'string', format: 'date-time' };
    case 'ZodNull':
      return { type: 'null' };
    case 'ZodLiteral':
      return { const: def.value };
    case 'ZodEnum':
      return { type: 'string', enum: def.values };
    case 'ZodNativeEnum':
      return { enum: enumValues(def.values as Json) };
    case 'ZodArray':
      return readArray(def);
    case 'ZodSet':
      return { type: 'array', uniqueItems: true, items: inner(def.valueType) };
    case 'ZodTuple':
      return {
        type: 'array',
        prefixItems: (def.items as unknown[]).map(inner),
        items: def.rest ? inner(def.rest) : false,
      };
    case 'ZodObject':
      return readObject(def);
    case 'ZodRecord':
      return { type: 'object', additionalProperties: inner(def.valueType) };
    case 'ZodUnion':
      return { anyOf: (def.options as unknown[]).map(inner) };
    case 'ZodDiscriminatedUnion':
      return { anyOf: [...(def.options as Iterable<unknown>)].map(inner) };
    case 'ZodIntersection':
      return { allOf: [inner(def.left), inner(def.right)] };
    case 'ZodNullable':
      return { anyOf: [inner(def.innerType), { type: 'null' }] };
    case 'ZodDefault':
      return { ...inner(def.innerType), default: (def.defaultValue as () => unknown)() };
    case 'ZodOptional':
    case 'ZodReadonly':
    case 'ZodCatch':
      return inner(def.innerType);
    case 'ZodBranded':
      return inner(def.type);
    case 'ZodEffects':
      return inner(def.schema);
    case 'ZodPipeline':
      return inner(def.in);
    default:
      // What it allows is checked all the same, only not told beforehand.
      return {};
  }
}

interface Check {
  readonly kind: string;
  readonly value?: unknown;
  readonly inclusive?: boolean;
  readonly regex?: RegExp;
}

const checksOf = ({ checks }: Definition) => (checks ?? []) as readonly Check[];

const FORMATS: Readonly<Record<string, string>> = {
  email: 'email',
  url: 'uri',
  uuid: 'uuid',
  datetime: 'date-time',
  date: 'date',
  time: 'time',
  ip: 'ipv4',
};

function readString(checks: readonly Check[]): Json {
  const json: Json = { type: 'string' };
  for (const { kind, value, regex } of checks) {
    if (kind === 'min' || kind === 'length') json.minLength = value;
    if (kind === 'max' || kind === 'length') json.maxLength = value;
    if (kind === 'regex' && regex !== undefined && regex.flags === '') json.pattern = regex.source;
    if (FORMATS[kind] !== undefined) json.format = FORMATS[kind];
  }
  return json;
}

function readNumber(checks: readonly Check[]): Json {
  const json: Json = { type: checks.some(({ kind }) => kind === 'int') ? 'integer' : 'number' };
  for (const { kind, value, inclusive } of checks) {
    if (kind === 'min') json[inclusive ? 'minimum' : 'exclusiveMinimum'] = value;
    if (kind === 'max') json[inclusive ? 'maximum' : 'exclusiveMaximum'] = value;
    if (kind === 'multipleOf') json.multipleOf = value;
  }
  return json;
}

function readArray(def: Definition): Json {
  const json: Json = { type: 'array', items: inner(def.type) };
  const bounds = { minItems: def.minLength ?? def.exactLength, maxItems: def.maxLength ?? def.exactLength };
  for (const [key, bound] of Object.entries(bounds)) if (bound) json[key] = (bound as { value: number }).value;
  return json;
}

function readObject(def: Definition): Json {
  const shape = (def.shape as () => Readonly<Record<string, Zod3Schema>>)();
  const required = Object.keys(shape).filter((key) => !isOptional(shape[key]!._def));
  const rest = def.catchall as Zod3Schema | undefined;
  const isOpen =
    rest === undefined || rest._def.typeName === 'ZodNever' ? def.unknownKeys !== 'strict' : zod3Json(rest);
  return {
    type: 'object',
    properties: Object.fromEntries(Object.entries(shape).map(([key, one]) => [key, zod3Json(one)])),
    ...(required.length > 0 && { required }),
    ...(isOpen !== true && { additionalProperties: isOpen }),
  };
}

const WRAPPERS: Readonly<Record<string, string>> = { ZodEffects: 'schema', ZodBranded: 'type', ZodPipeline: 'in' };

function isOptional(def: Definition): boolean {
  if (['ZodOptional', 'ZodDefault', 'ZodCatch', 'ZodAny', 'ZodUnknown'].includes(def.typeName)) return true;
  const wrapped = def[WRAPPERS[def.typeName] ?? 'innerType'] as Zod3Schema | undefined;
  return wrapped !== undefined && def.typeName !== 'ZodArray' && isOptional(wrapped._def);
}

/** Enums of TypeScript have their numbers as keys, too. */
function enumValues(values: Json): unknown[] {
  return Object.entries(values)
    .filter(([key]) => typeof values[values[key] as string] !== 'number')
    .map(([, value]) => value);
}
