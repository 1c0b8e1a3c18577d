/** Checks by plain JSON Schema. The validator is loaded for the first tool that needs it. */
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { StandardResult } from './define-tool.ts';

export type Check = (value: unknown) => StandardResult<unknown> | Promise<StandardResult<unknown>>;

type Compile = (schema: object) => ValidateFunction;

const options = {
  // Schemas are written for many validators: a keyword that this one does not know is no mistake.
  strict: false,
  // In this draft a format is a remark.
  validateFormats: false,
  allErrors: true,
  useDefaults: true,
  logger: false,
} as const;

let current: Promise<Compile> | null = null;
let old: Promise<Compile> | null = null;

// Tools are often made anew with the schemas that they had before, and a validator is a program of its own.
const MOST = 1_000;
const made = new Map<string, Check>();

/** Throws where the schema itself is wrong. */
export async function jsonSchemaCheck(schema: Readonly<Record<string, unknown>>): Promise<Check> {
  // Tools may share an id; each has its validator to itself.
  const { $schema, $id: _, ...rest } = schema;
  const isOld = typeof $schema === 'string' && /draft-0[4-7]/.test($schema);
  if (isOld) old ??= import('ajv').then(({ Ajv }) => compilerOf(new Ajv(options)));
  else current ??= import('ajv/dist/2020.js').then(({ Ajv2020 }) => compilerOf(new Ajv2020(options)));
  const compile = await (isOld ? old! : current!);
  const key = JSON.stringify([isOld, rest]);
  const known = made.get(key) ?? checkOf(compile(rest));
  if (made.size >= MOST) made.delete(made.keys().next().value!);
  made.set(key, known);
  return known;
}

function checkOf(validate: ValidateFunction): Check {
  return (value) => (validate(value) ? { value } : { issues: (validate.errors ?? []).map((error) => issueOf(error)) });
}

function compilerOf(ajv: { compile(schema: object): ValidateFunction }): Compile {
  return (schema) => ajv.compile(schema);
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
