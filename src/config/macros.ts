/** Macros: tools made of other tools. Every reference in them is checked here, and that none calls itself. */

import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { isObject } from '../base/objects.ts';
import { didYouMean } from '../base/similar.ts';
import type { ResolveContext } from './context.ts';
import { duration, mapOf, strictMap, text } from './fields.ts';
import type { Path } from './issues.ts';
import { readTemplate, referencesIn, type Template } from './template.ts';

/** The key that macros go by where tools are told apart by servers. */
export const MACROS = 'macros';

/** Holds where the value is something, or is equal to a text, or the other way round. */
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

/** A tool that is made of others. */
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
  /** Every tool that it calls, by itself or by macros that it calls. */
  readonly uses: readonly string[];
}

const ID = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const MOST_STEPS = 50;

const stepSchema = strictMap({
  id: text()
    .regex(ID, { error: 'is no name for a step: use letters, digits, "_" and "-", and begin with a letter' })
    .describe('What the step is called in references, and where it fails.'),
  tool: text().describe('The tool that it calls: `server.tool`, or `macros.NAME`.'),
  arguments: z
    .record(z.string(), z.unknown(), { error: 'expected a map of arguments' })
    .prefault({})
    .describe('Its arguments: any values, with references such as `${input.path}` or `${steps.first.name}` in them.'),
  when: text()
    .optional()
    .describe('Runs the step only if this holds: `${input.x}`, `!${input.x}`, `${steps.a.b} == text` or `… != text`.'),
}).meta({ id: 'MacroStep', description: 'One call of a macro.' });

const macroSchema = strictMap({
  description: text().describe('What it does, for the model.'),
  input_schema: z
    .record(z.string(), z.unknown(), { error: 'expected a JSON Schema' })
    .optional()
    .describe('Its arguments, as a JSON Schema of an object. Default: none.'),
  steps: z
    .array(stepSchema, { error: 'expected a list of steps' })
    .min(1, { error: 'needs at least one step' })
    .max(MOST_STEPS, { error: `has more than ${MOST_STEPS} steps` })
    .describe('The calls, one after the other.'),
  output: z
    .unknown()
    .optional()
    .describe('What it answers: any value with references in it. Default: the result of its last step.'),
  timeout: duration(1).prefault('5m').describe('How long all steps together may take.'),
}).meta({ id: 'Macro', description: 'A tool that calls other tools.' });

export const macrosSchema = mapOf(
  'macros',
  z.string().regex(ID, {
    error: 'is no name for a macro: use letters, digits, "_" and "-", and begin with a letter',
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
  const rings = names.filter((name) => reach(name, macros).has(`${MACROS}.${name}`));
  for (const name of rings) context.add([MACROS, name], 'calls itself, by its steps. Break the ring');
  return Object.entries(macros).map(([name, macro]) => {
    const add: AddIssue = (path, message) => context.add([MACROS, name, ...path], message);
    // A copy, because the configuration is frozen.
    const given = structuredClone(macro.input_schema ?? { properties: {}, additionalProperties: false });
    const inputSchema = { type: 'object', ...given };
    const steps = macro.steps.map((step, i) => resolveStep(step, i, macro, names, inputSchema, add));
    const output = macro.output === undefined ? null : readTemplate(macro.output, ['output'], add);
    if (output !== null) checkReferences(output, ['output'], macro.steps.length, macro, inputSchema, add);
    return {
      name,
      description: macro.description,
      inputSchema,
      check: checkOf(inputSchema, add),
      steps,
      output,
      timeout: macro.timeout,
      uses: rings.length > 0 ? [] : [...reach(name, macros)],
    };
  });
}

type AddIssue = (path: Path, message: string) => void;

function resolveStep(
  { id, tool, arguments: args, when }: WrittenMacro['steps'][number],
  i: number,
  macro: WrittenMacro,
  names: readonly string[],
  schema: object,
  add: AddIssue,
): MacroStep {
  const path = ['steps', i];
  if (macro.steps.findIndex((one) => one.id === id) < i) add([...path, 'id'], `another step is called "${id}" already`);
  const macroName = tool.startsWith(`${MACROS}.`) ? tool.slice(MACROS.length + 1) : null;
  if (macroName !== null && !names.includes(macroName))
    add([...path, 'tool'], `there is no macro "${macroName}".${didYouMean(macroName, names)}`);
  if (!/^[^.]+\../.test(tool)) add([...path, 'tool'], 'names no tool. Write "server.tool"');
  const template = readTemplate(args, [...path, 'arguments'], add);
  checkReferences(template, [...path, 'arguments'], i, macro, schema, add);
  return { id, tool, arguments: template, when: when === undefined ? null : readWhen(when, i, macro, schema, add) };
}

function readWhen(written: string, i: number, macro: WrittenMacro, schema: object, add: AddIssue): When | null {
  const path = ['steps', i, 'when'];
  const [, not = '', reference = '', operator, other = ''] =
    /^\s*(!?)\s*(\$\{[^}]*\})\s*(?:(==|!=)\s*(.*?)\s*)?$/s.exec(written) ?? [];
  if (reference === '' || (not !== '' && operator !== undefined)) {
    add(path, 'is no condition. Write "${input.x}", "!${input.x}", "${steps.a.b} == text" or "${steps.a.b} != text"');
    return null;
  }
  const value = readTemplate(reference, path, add);
  const equals = operator === undefined ? null : readTemplate(other, path, add);
  for (const one of [value, equals]) if (one !== null) checkReferences(one, path, i, macro, schema, add);
  return { value, equals, negated: not !== '' || operator === '!=' };
}

/** Arguments have to be in the schema, and steps before this one. */
function checkReferences(
  template: Template,
  path: Path,
  i: number,
  macro: WrittenMacro,
  schema: object,
  add: AddIssue,
): void {
  const before = macro.steps.slice(0, i).map(({ id }) => id);
  const properties = 'properties' in schema && isObject(schema.properties) ? Object.keys(schema.properties) : [];
  for (const { root, path: steps, text } of referencesIn(template)) {
    const [name = ''] = steps;
    if (root === 'input' && !properties.includes(name))
      add(path, `"\${${text}}": there is no argument "${name}" in its input_schema.${didYouMean(name, properties)}`);
    if (root !== 'input' && !before.includes(name)) add(path, `"\${${text}}": ${missing(name, macro, before)}`);
  }
}

function missing(name: string, { steps }: WrittenMacro, before: readonly string[]): string {
  if (steps.some(({ id }) => id === name)) return `the step "${name}" does not come before`;
  return `there is no step "${name}" before.${didYouMean(name, before)}`;
}

/** All tools that it comes to, with those of the macros among them. */
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
    add(['input_schema'], `is no JSON Schema that can be used: ${messageOf(error)}`);
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
