/** Checks values against a plain JSON Schema. The validator is loaded for the first tool that needs it. */
import type { ErrorObject, ValidateFunction } from 'ajv';
import { BoundedMap } from '../base/bounded-map.ts';
import type { StandardResult } from './define-tool.ts';

export type Check = (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>;

interface Compiler {
  compile(schema: object): ValidateFunction;
}

const options = {
  // Schemas are written for many validators, so an unknown keyword is not a mistake.
  strict: false,
  // In the current draft a format is only an annotation.
  validateFormats: false,
  allErrors: true,
  useDefaults: true,
  logger: false,
} as const;

let current: Promise<Compiler> | null = null;
let draft7: Promise<Compiler> | null = null;

/** Tools are often created again with the same schemas, and compiling a schema is expensive. */
const compiled = new BoundedMap<string, Check>(1_000);

/** Throws if the schema itself is invalid. */
export async function jsonSchemaCheck(schema: Readonly<Record<string, unknown>>): Promise<Check> {
  // Tools may share an id, which a validator would report as a conflict.
  const { $schema, $id: _, ...rest } = schema;
  const isOld = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
  const key = JSON.stringify([isOld, rest]);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  if (isOld) draft7 ??= import('ajv').then(({ Ajv }) => new Ajv(options));
  else current ??= import('ajv/dist/2020.js').then(({ Ajv2020 }) => new Ajv2020(options));
  const validate = (await (isOld ? draft7! : current!)).compile(rest);
  const check: Check = (value) =>
    validate(value) ? { value } : { issues: (validate.errors ?? []).map((error) => issueOf(error)) };
  compiled.set(key, check);
  return check;
}

function issueOf({ instancePath, message = 'is not valid', keyword, params }: ErrorObject): {
  message: string;
  path: string[];
} {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (keyword === 'required') return { message: 'is missing', path: [...path, String(params.missingProperty)] };
  if (keyword === 'additionalProperties')
    return { message: 'is not known', path: [...path, String(params.additionalProperty)] };
  if (keyword === 'enum') return { message: `must be one of ${JSON.stringify(params.allowedValues)}`, path };
  return { message, path };
}
