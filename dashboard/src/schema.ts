/** JSON Schema, as far as a form needs it: which kind of field, and what it starts with. The server has the last word on what is valid. */
export type Schema = Readonly<Record<string, unknown>>;
export type Kind = 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'object' | 'array' | 'variants' | 'json';

const DEEPEST = 5;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema without references and without wrappings that change nothing, such as "or null". */
export function resolve(schema: unknown, root: Schema): Schema {
  let current: unknown = schema;
  for (let steps = 0; steps < 20 && isObject(current); steps += 1) {
    const { $ref: ref, anyOf, oneOf, allOf, ...rest } = current;
    if (typeof ref === 'string') current = { ...(lookUp(ref, root) ?? {}), ...rest };
    else if (Array.isArray(allOf) && allOf.length > 0)
      current = [...allOf, rest].map((part) => resolve(part, root)).reduce(merged, {});
    else {
      const options = (Array.isArray(anyOf) ? anyOf : Array.isArray(oneOf) ? oneOf : []).filter(
        (one) => !(isObject(one) && one.type === 'null'),
      );
      if (options.length !== 1) return current;
      current = { ...rest, ...resolve(options[0], root) };
    }
  }
  return isObject(current) ? current : {};
}

function merged(a: Schema, b: Schema): Schema {
  const both: Record<string, unknown> = { ...a, ...b };
  if (isObject(a.properties) && isObject(b.properties)) both.properties = { ...a.properties, ...b.properties };
  if (Array.isArray(a.required) && Array.isArray(b.required)) both.required = [...a.required, ...b.required];
  return both;
}

function lookUp(ref: string, root: Schema): Schema | undefined {
  if (!ref.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const part of ref.slice(1).split('/').filter(Boolean)) {
    const key = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return isObject(at) ? at : undefined;
}

export function variantsOf(schema: Schema): readonly unknown[] {
  const found = Array.isArray(schema.anyOf) ? schema.anyOf : Array.isArray(schema.oneOf) ? schema.oneOf : [];
  return found.filter((one) => !(isObject(one) && one.type === 'null'));
}

export function choicesOf(schema: Schema): readonly { readonly value: unknown; readonly title: string }[] | null {
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((value, index) => ({ value, title: String(names[index] ?? text(value)) }));
  }
  const variants = variantsOf(schema);
  const isConstant = (one: unknown): one is Schema => isObject(one) && 'const' in one;
  if (variants.length > 0 && variants.every(isConstant))
    return variants.map((one) => ({ value: one.const, title: String(one.title ?? text(one.const)) }));
  return 'const' in schema ? [{ value: schema.const, title: text(schema.const) }] : null;
}

const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

export function typeOf(schema: Schema): string | null {
  const { type } = schema;
  if (typeof type === 'string') return type;
  if (!Array.isArray(type)) return isObject(schema.properties) ? 'object' : null;
  const real = type.filter((one) => one !== 'null');
  return real.length === 1 ? String(real[0]) : null;
}

export function kindOf(schema: Schema, depth: number): Kind {
  if (choicesOf(schema)) return 'choice';
  if (depth > DEEPEST) return 'json';
  if (variantsOf(schema).length > 1) return 'variants';
  const type = typeOf(schema);
  switch (type) {
    case 'string':
      return 'text';
    case 'number':
    case 'integer':
    case 'boolean':
      return type;
    case 'array':
      return isObject(schema.items) ? 'array' : 'json';
    case 'object':
      return isObject(schema.properties) && Object.keys(schema.properties).length > 0 ? 'object' : 'json';
    default:
      return 'json';
  }
}

/** A type in words, such as `list of text`. */
export function inWords(raw: unknown, root: Schema, depth = 0): string {
  const schema = resolve(raw, root);
  const choices = choicesOf(schema);
  if (choices) return choices.length === 1 ? `always ${choices[0]?.title}` : `one of ${choices.length}`;
  const variants = variantsOf(schema);
  if (variants.length > 1 && depth < 2)
    return [...new Set(variants.map((one) => inWords(one, root, depth + 1)))].join(' or ');
  const type = typeOf(schema);
  const format = typeof schema.format === 'string' ? ` (${schema.format})` : '';
  if (type === 'array') return depth < 3 && schema.items ? `list of ${inWords(schema.items, root, depth + 1)}` : 'list';
  if (type === 'string') return `text${format}`;
  if (type === 'integer') return 'whole number';
  if (type === 'boolean') return 'yes or no';
  if (type === 'object') return 'object';
  return type ?? 'anything';
}

/** The bounds that a schema sets, in words. */
export function bounds(schema: Schema): string {
  const parts: string[] = [];
  const add = (key: string, words: string) => {
    const value = schema[key];
    if (typeof value === 'number' || typeof value === 'string') parts.push(`${words} ${value}`);
  };
  add('minimum', 'at least');
  add('exclusiveMinimum', 'more than');
  add('maximum', 'at most');
  add('exclusiveMaximum', 'less than');
  add('minLength', 'length at least');
  add('maxLength', 'length at most');
  add('minItems', 'entries at least');
  add('maxItems', 'entries at most');
  add('pattern', 'matches');
  add('multipleOf', 'a multiple of');
  if (schema.default !== undefined) parts.push(`default ${text(schema.default)}`);
  return parts.join(', ');
}

/** What a form starts with: defaults where they are required or given, nothing else. */
export function initial(raw: unknown, root: Schema, depth = 0): unknown {
  const schema = resolve(raw, root);
  if (schema.default !== undefined) return schema.default;
  if ('const' in schema) return schema.const;
  if (kindOf(schema, depth) !== 'object') return undefined;
  const properties = schema.properties as Record<string, unknown>;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const value: Record<string, unknown> = {};
  for (const [key, part] of Object.entries(properties)) {
    const resolved = resolve(part, root);
    if (!required.includes(key) && resolved.default === undefined) continue;
    const start = initial(part, root, depth + 1);
    if (start !== undefined) define(value, key, start);
  }
  return value;
}

/** As an own property also for `__proto__`, which tools may ask for. */
export function define(object: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

export function without(object: Readonly<Record<string, unknown>>, key: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key));
}
