/** Macros: tools made of other tools. Checks that every reference is valid, and that no macro calls itself. */
import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean } from '../base/text.ts';
import type { ResolveContext } from './context.ts';
import { duration, mapOf, strictMap, text } from './fields.ts';
import type { Path } from './issues.ts';
import { readTemplate, referencesIn, type Template } from './template.ts';

/** The server key under which macros are listed and called. */
export const MACROS = 'macros';

/** A condition: there is a value, or it equals a text; `negated` for the opposite. */
export interface When {
  readonly value: Template;
  readonly equals: Template | null;
  readonly negated: boolean;
}

/** One call that a macro makes. */
export interface MacroStep {
  readonly id: string;
  /** `server.tool`. */
  readonly tool: string;
  readonly arguments: Template;
  readonly when: When | null;
}

/** A tool made of other tools. */
export interface MacroConfig {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Arguments with defaults filled in, or what is wrong with them. */
  readonly check: (args: unknown) => { readonly value: unknown } | { readonly problem: string };
  readonly steps: readonly MacroStep[];
  /** Null: the result of the last step. */
  readonly output: Template | null;
  /** Milliseconds. */
  readonly timeout: number;
  /** Every tool that it calls, directly or through other macros. */
  readonly uses: readonly string[];
}

const ID = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const MAX_STEPS = 50;

const stepSchema = strictMap({
  id: text()
    .regex(ID, { error: 'is not a name for a step: use letters, digits, "_" and "-", and begin with a letter' })
    .describe('Name of the step, in references and in errors.'),
  tool: text().describe('The tool to call: `server.tool`, or `macros.NAME`.'),
  arguments: z
    .record(z.string(), z.unknown(), { error: 'expected a map of arguments' })
    .prefault({})
    .describe(
      'Arguments of the call: any values, which may contain references such as `${input.path}` or `${steps.first.name}`.',
    ),
  when: text()
    .optional()
    .describe('Run the step only if this holds: `${input.x}`, `!${input.x}`, `${steps.a.b} == text` or `… != text`.'),
}).meta({ id: 'MacroStep', description: 'One call of a macro.' });

// Not a `section`, which turns absent keys into null: an `output` of null differs from an absent one.
const macroSchema = strictMap({
  description: text().describe('What the macro does, for the model.'),
  input_schema: z
    .record(z.string(), z.unknown(), { error: 'expected a JSON Schema' })
    .optional()
    .describe('Arguments of the macro, as a JSON Schema of an object. Default: none.'),
  steps: z
    .array(stepSchema, { error: 'expected a list of steps' })
    .min(1, { error: 'needs at least one step' })
    .max(MAX_STEPS, { error: `has more than ${MAX_STEPS} steps` })
    .describe('The calls, one after the other.'),
  output: z
    .unknown()
    .optional()
    .describe('The answer: any value, which may contain references. Default: the result of the last step.'),
  timeout: duration(1).prefault('5m').describe('How long all steps together may take.'),
}).meta({ id: 'Macro', description: 'A tool that calls other tools.' });

export const macrosSchema = mapOf(
  'macros',
  z.string().regex(ID, {
    error: 'is not a name for a macro: use letters, digits, "_" and "-", and begin with a letter',
  }),
  macroSchema,
);

type WrittenMacro = z.output<typeof macroSchema>;
type WrittenMacros = Readonly<Record<string, WrittenMacro>>;

/** `servers` are the keys of all servers. */
export function resolveMacros(
  written: WrittenMacros | null,
  servers: readonly string[],
  context: ResolveContext,
): MacroConfig[] {
  const macros = written ?? {};
  const names = Object.keys(macros);
  if (names.length > 0 && servers.includes(MACROS))
    context.add([MACROS], `a server is called "${MACROS}" too. Give it another namespace`);
  const cycles = names.filter((name) => reach(name, macros).has(`${MACROS}.${name}`));
  for (const name of cycles) context.add([MACROS, name], 'calls itself through its steps. Break the cycle');
  return Object.entries(macros).map(([name, macro]) => {
    const add: AddIssue = (path, message) => context.add([MACROS, name, ...path], message);
    // A copy, because the configuration is frozen and the value belongs to the caller.
    const given = structuredClone(macro.input_schema ?? { properties: {}, additionalProperties: false });
    const inputSchema: Record<string, unknown> = { type: 'object', ...given };
    const { properties } = inputSchema;
    const checks = { macro, names, inputs: isObject(properties) ? Object.keys(properties) : [], add };
    const steps = macro.steps.map((step, i) => resolveStep(step, i, checks));
    const output = macro.output === undefined ? null : readChecked(macro.output, ['output'], steps.length, checks);
    return {
      name,
      description: macro.description,
      inputSchema,
      check: checkOf(inputSchema, add),
      steps,
      output,
      timeout: macro.timeout,
      uses: cycles.length > 0 ? [] : [...reach(name, macros)],
    };
  });
}

type AddIssue = (path: Path, message: string) => void;

/** What the parts of one macro are checked against. */
interface MacroChecks {
  readonly macro: WrittenMacro;
  /** The names of all macros. */
  readonly names: readonly string[];
  /** The arguments in its input schema. */
  readonly inputs: readonly string[];
  readonly add: AddIssue;
}

function resolveStep(
  { id, tool, arguments: args, when }: WrittenMacro['steps'][number],
  i: number,
  checks: MacroChecks,
): MacroStep {
  const { macro, names, add } = checks;
  const path = ['steps', i];
  if (macro.steps.findIndex((one) => one.id === id) < i) add([...path, 'id'], `another step is called "${id}" already`);
  const macroName = tool.startsWith(`${MACROS}.`) ? tool.slice(MACROS.length + 1) : null;
  if (macroName !== null && !names.includes(macroName))
    add([...path, 'tool'], `there is no macro "${macroName}".${didYouMean(macroName, names)}`);
  if (!/^[^.]+\../.test(tool)) add([...path, 'tool'], 'names no tool. Write "server.tool"');
  const template = readChecked(args, [...path, 'arguments'], i, checks);
  return { id, tool, arguments: template, when: when === undefined ? null : readWhen(when, i, checks) };
}

function readWhen(written: string, i: number, checks: MacroChecks): When | null {
  const path = ['steps', i, 'when'];
  const [, not = '', reference = '', operator, other = ''] =
    /^\s*(!?)\s*(\$\{[^}]*\})\s*(?:(==|!=)\s*(.*?)\s*)?$/s.exec(written) ?? [];
  if (reference === '' || (not !== '' && operator !== undefined)) {
    const forms = '"${input.x}", "!${input.x}", "${steps.a.b} == text" or "${steps.a.b} != text"';
    checks.add(path, `is not a condition. Write ${forms}`);
    return null;
  }
  const value = readChecked(reference, path, i, checks);
  const equals = operator === undefined ? null : readChecked(other, path, i, checks);
  return { value, equals, negated: not !== '' || operator === '!=' };
}

/** Reads a value with references: they may name arguments of the schema, and the first `i` steps. */
function readChecked(value: unknown, path: Path, i: number, { macro, inputs, add }: MacroChecks): Template {
  const template = readTemplate(value, path, add);
  const before = macro.steps.slice(0, i).map(({ id }) => id);
  for (const { root, path: steps, text } of referencesIn(template)) {
    const [name = ''] = steps;
    if (root === 'input' && !inputs.includes(name))
      add(path, `"\${${text}}": there is no argument "${name}" in its input_schema.${didYouMean(name, inputs)}`);
    if (root !== 'input' && !before.includes(name)) add(path, `"\${${text}}": ${missingStep(name, macro, before)}`);
  }
  return template;
}

function missingStep(name: string, { steps }: WrittenMacro, before: readonly string[]): string {
  if (steps.some(({ id }) => id === name)) return `the step "${name}" does not come before this one`;
  return `there is no earlier step "${name}".${didYouMean(name, before)}`;
}

/** Every tool that a macro calls, including those of the macros that it calls. */
function reach(name: string, macros: Readonly<Record<string, WrittenMacro>>): Set<string> {
  const found = new Set<string>();
  const open = [...(macros[name]?.steps ?? [])];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    if (found.has(step.tool)) continue;
    found.add(step.tool);
    if (step.tool.startsWith(`${MACROS}.`)) open.push(...(macros[step.tool.slice(MACROS.length + 1)]?.steps ?? []));
  }
  return found;
}

function checkOf(schema: Readonly<Record<string, unknown>>, add: AddIssue): MacroConfig['check'] {
  let parser: z.ZodType;
  try {
    if (schema.type !== 'object') throw new Error('its "type" has to be "object"');
    parser = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch (error) {
    add(['input_schema'], `is not a JSON Schema that can be used: ${messageOf(error)}`);
    return (value) => ({ value });
  }
  return (args) => {
    const { data, error } = parser.safeParse(args);
    if (!error) return { value: data };
    const problems = error.issues.map(({ path, message }) =>
      path.length === 0 ? message : `"${path.join('.')}": ${message}`,
    );
    return { problem: problems.join('; ') };
  };
}
