/** Tools that are made of other tools, as users write them. */
import * as z from 'zod';
import { duration, strictMap, text } from './fields.ts';

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

export const macroShape = {
  macros: z
    .record(
      z.string().regex(ID, {
        error: 'is no name for a macro: use letters, digits, "_" and "-", and begin with a letter',
      }),
      macroSchema,
      { error: (issue) => (issue.code === 'invalid_type' ? 'expected a map of macros' : undefined) },
    )
    .optional()
    .describe('Tools made of other tools, by name.'),
};

const shape = z.object(macroShape);

export type MacrosFile = z.output<typeof shape>;
