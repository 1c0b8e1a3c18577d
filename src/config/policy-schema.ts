/** Who may use what, as users write it. */
import * as z from 'zod';
import { flag, strictMap, text, textList, toolList } from './fields.ts';
import { limitsByTool, limitsSchema } from './limits-schema.ts';

const EVERYTHING = 'By the name of the server (or a pattern): its own names, or patterns over them.';
const TOOLS =
  'By the name of the server (or a pattern): its own names, patterns over them, or categories (`category:read`).';

function lists(meaning: string) {
  return z
    .record(z.string(), textList(), { error: 'expected a map from servers to lists of names' })
    .optional()
    .describe(`${meaning} ${EVERYTHING}`);
}

function toolLists(meaning: string) {
  return z
    .record(z.string(), toolList(), { error: 'expected a map from servers to lists of names' })
    .optional()
    .describe(`${meaning} ${TOOLS}`);
}

const CLOCK = /^([01]\d|2[0-3]):[0-5]\d$|^24:00$/;
const clock = () => text().regex(CLOCK, { error: 'expected a time of day such as "08:30"' });

export const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const hint = (name: string) => flag().optional().describe(`What the tool's annotation \`${name}\` has to be.`);

export const conditionSchema = strictMap({
  tools: toolList()
    .optional()
    .describe(
      'The tools that it is about: `server.tool`, exposed names, patterns over either, or categories. Default: all.',
    ),
  resources: textList()
    .optional()
    .describe('The resources, likewise. Default: all, unless `tools` or `prompts` is set.'),
  prompts: textList().optional().describe('The prompts, likewise. Default: all, unless `tools` or `resources` is set.'),
  between: z
    .tuple([clock(), clock()], { error: 'expected two times of day such as ["08:00", "18:00"]' })
    .optional()
    .describe(
      'The time of day from which and until which they may be used; past midnight where the second is earlier.',
    ),
  days: z
    .array(z.enum(DAYS, { error: `expected one of ${DAYS.join(', ')}` }), { error: 'expected a list of days' })
    .optional()
    .describe('The days on which they may be used, `mon` to `sun`.'),
  timezone: text()
    .refine(isTimeZone, { error: 'is not the name of a time zone, such as "Europe/Berlin"' })
    .prefault('UTC')
    .describe('Where `between` and `days` are told.'),
  arguments: z
    .record(z.string(), z.union([text(), textList()], { error: 'expected a pattern or a list of patterns' }), {
      error: 'expected a map from arguments to patterns',
    })
    .optional()
    .describe(
      'What arguments have to be: by name (`options.path` for one inside another) a pattern, or several of which one fits.',
    ),
  annotations: strictMap({
    readOnlyHint: hint('readOnlyHint'),
    destructiveHint: hint('destructiveHint'),
    idempotentHint: hint('idempotentHint'),
    openWorldHint: hint('openWorldHint'),
  })
    .optional()
    .describe(
      'What a tool has to say of itself. What it does not say counts as the protocol says: not read-only, destructive.',
    ),
}).meta({ id: 'Condition', description: 'Under which circumstances something may be used.' });

const conditions = () => z.array(conditionSchema, { error: 'expected a list of conditions' }).optional();

const limits = (whose: string) => limitsSchema.optional().describe(`How much ${whose} may use, all tools together.`);
const toolLimits = () =>
  limitsByTool(limitsSchema).optional().describe('The same for single tools: by `server.tool`, or patterns over that.');

const agentPolicySchema = strictMap({
  description: text().prefault('').describe('Who or what the agent is.'),
  extends: textList().optional().describe('Other entries of `agent_policies` whose rules hold for this agent too.'),
  allowed_servers: textList().optional().describe('The servers that the agent may use, or patterns. Default: all.'),
  denied_servers: textList().optional().describe('Servers that it may not use, whatever else says so.'),
  tool_overrides: toolLists('Its tools, instead of `exposed_tools`.'),
  resource_overrides: lists('Its resources and templates, instead of `exposed_resources`.'),
  prompt_overrides: lists('Its prompts, instead of `exposed_prompts`.'),
  denied_tools: toolLists('Tools that it may not use, whatever else says so.'),
  denied_resources: lists('Resources that it may not use.'),
  denied_prompts: lists('Prompts that it may not use.'),
  conditions: conditions().describe('What it may use only under conditions.'),
  limits: limits('the agent'),
  tool_limits: toolLimits(),
}).meta({ id: 'AgentPolicy', description: 'What one agent may use.' });

const defaultPolicySchema = strictMap({
  allow_unknown_tools: flag()
    .optional()
    .describe('Whether tools of servers that no list names may be used. Default: false, once there is any policy.'),
  allow_unknown_resources: flag().prefault(true).describe('The same for resources.'),
  allow_unknown_prompts: flag().prefault(true).describe('The same for prompts.'),
  limits: limits('each agent without limits of its own'),
  tool_limits: toolLimits(),
});

export const policyShape = {
  exposed_tools: toolLists('The tools that agents may use.'),
  exposed_resources: lists('The resources and templates that agents may use.'),
  exposed_prompts: lists('The prompts that agents may use.'),
  denied_tools: toolLists('Tools that no agent may use.'),
  denied_resources: lists('Resources that no agent may use.'),
  denied_prompts: lists('Prompts that no agent may use.'),
  conditions: conditions().describe('What agents may use only under conditions.'),
  agent_policies: z
    .record(z.string(), agentPolicySchema, { error: 'expected a map of policies' })
    .optional()
    .describe('What single agents may use, by their names or patterns over them.'),
  default_policy: defaultPolicySchema.optional().describe('What holds where no list says anything.'),
};

const shape = z.object(policyShape);

export type PolicyFile = z.output<typeof shape>;
export type AgentPolicyFile = z.output<typeof agentPolicySchema>;
export type ConditionFile = z.output<typeof conditionSchema>;
