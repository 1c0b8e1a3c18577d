/** Macros as the gateway works with them, checked: every reference leads somewhere, and none of them calls itself. */
import * as z from 'zod';
import { messageOf } from '../base/errors.ts';
import { didYouMean } from '../base/similar.ts';
import { isMap } from './fields.ts';
import type { Issue, Path } from './issues.ts';
import type { MacrosFile } from './macro-schema.ts';
import { readTemplate, referencesIn, type Template } from './macro-values.ts';

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

type MacroFile = NonNullable<MacrosFile['macros']>[string];

export function resolveMacros({ macros = {} }: MacrosFile, servers: readonly string[], issues: Issue[]): MacroConfig[] {
  if (Object.keys(macros).length > 0 && servers.includes(MACROS))
    issues.push({ path: [MACROS], message: `a server is called "${MACROS}" too. Give it another namespace` });
  const names = Object.keys(macros);
  const rings = names.filter((name) => reach(name, macros).has(`${MACROS}.${name}`));
  for (const name of rings)
    issues.push({ path: [MACROS, name], message: 'calls itself, by its steps. Break the ring' });
  return Object.entries(macros).map(([name, macro]) => {
    const path = [MACROS, name];
    const add = (where: Path, message: string) => void issues.push({ path: [...path, ...where], message });
    // Ours: what is kept is frozen.
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

type Add = (where: Path, message: string) => void;

function resolveStep(
  { id, tool, arguments: args, when }: MacroFile['steps'][number],
  i: number,
  macro: MacroFile,
  names: readonly string[],
  schema: object,
  add: Add,
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

function readWhen(written: string, i: number, macro: MacroFile, schema: object, add: Add): When | null {
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
function checkReferences(template: Template, path: Path, i: number, macro: MacroFile, schema: object, add: Add): void {
  const before = macro.steps.slice(0, i).map(({ id }) => id);
  const properties = 'properties' in schema && isMap(schema.properties) ? Object.keys(schema.properties) : [];
  for (const { root, path: steps, text } of referencesIn(template)) {
    const [name = ''] = steps;
    if (root === 'input' && !properties.includes(name))
      add(path, `"\${${text}}": there is no argument "${name}" in its input_schema.${didYouMean(name, properties)}`);
    if (root !== 'input' && !before.includes(name)) add(path, `"\${${text}}": ${missing(name, macro, before)}`);
  }
}

function missing(name: string, { steps }: MacroFile, before: readonly string[]): string {
  if (steps.some(({ id }) => id === name)) return `the step "${name}" does not come before`;
  return `there is no step "${name}" before.${didYouMean(name, before)}`;
}

/** All tools that it comes to, with those of the macros among them. */
function reach(name: string, macros: Readonly<Record<string, MacroFile>>): Set<string> {
  const found = new Set<string>();
  const open = [...(macros[name]?.steps ?? [])];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    if (found.has(step.tool)) continue;
    found.add(step.tool);
    if (step.tool.startsWith(`${MACROS}.`)) open.push(...(macros[step.tool.slice(MACROS.length + 1)]?.steps ?? []));
  }
  return found;
}

function checkOf(schema: Readonly<Record<string, unknown>>, add: Add): MacroConfig['check'] {
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
