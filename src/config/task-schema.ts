/** What tasks need, as users write it: rules that add tools, and profiles to begin with. */
import * as z from 'zod';
import { strictMap, text, textList, toolList } from './fields.ts';

const toolLists = () =>
  z
    .record(z.string(), toolList(), { error: 'expected a map from servers to lists of tools' })
    .describe('By the name of the server (or a pattern): its own names for tools, patterns over them, or categories.');

const profileSchema = strictMap({
  description: text().prefault('').describe('What such tasks are.'),
  types: textList().prefault([]).describe('Types of tasks that begin with it, beside its own name.'),
  tools: toolLists(),
}).meta({ id: 'TaskProfile', description: 'The tools that a kind of task begins with.' });

const ruleSchema = strictMap({
  name: text().min(1, { error: 'must not be empty' }).describe('What the rule is called where its reason is given.'),
  description: text().prefault('').describe('Why such tasks need this.'),
  services: textList()
    .optional()
    .describe('Names of services, or patterns over them or over one of their words (`api*`). One has to fit.'),
  types: textList().optional().describe('Types of tasks, or patterns over them. One has to fit.'),
  keywords: textList()
    .optional()
    .describe('Words or phrases of the description, or patterns over words (`deploy*`). One has to be in it.'),
  tools: toolLists().optional(),
  profiles: textList().optional().describe('Profiles whose tools are added.'),
}).meta({ id: 'TaskRule', description: 'Tools that tasks of some kind need. One of its conditions has to be met.' });

export const taskShape = {
  task_rules: z
    .array(ruleSchema, { error: 'expected a list of rules' })
    .optional()
    .describe('Which tools tasks need, beside the rules of `task_rule_files`; one of the same name goes before those.'),
  task_profiles: z
    .record(z.string(), profileSchema, { error: 'expected a map of profiles' })
    .optional()
    .describe('Which tools a kind of task begins with, by name; `default` is for tasks of no other kind.'),
  task_rule_files: textList()
    .prefault(['default'])
    .describe(
      'Files with further `task_rules` and `task_profiles`, relative to the folder of this file. `default` is the one that comes with Toolgate.',
    ),
};

/** What a file of rules may hold. */
export const ruleFileSchema = strictMap({
  task_rules: taskShape.task_rules,
  task_profiles: taskShape.task_profiles,
});

const settings = z.object(taskShape);

export type TaskSettings = z.output<typeof settings>;
export type RuleFile = z.output<typeof ruleFileSchema>;
