/** What tasks need: the rules and profiles of a configuration, and those of the files that it names. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import * as z from 'zod';
import { ownFile } from '../base/own-files.ts';
import { byServer, type Section, section, text, textList, toolList } from './fields.ts';
import { type ConfigDocument, forbiddenKeys, InvalidConfig, type Issue, schemaIssues } from './issues.ts';
import { type ParsedText, parseConfig, readConfigText, withLines } from './parse.ts';
import type { ServerLists } from './policy.ts';

/** A named choice of tools for a kind of work. */
export interface TaskProfile {
  readonly name: string;
  readonly description: string;
  readonly types: readonly string[];
  readonly tools: ServerLists;
  /** Whether it comes with Toolgate. Then it names tools of several versions of servers, which may not all exist. */
  readonly isShipped: boolean;
}

/** Tools that tasks of a kind need. */
export interface TaskRule {
  readonly name: string;
  readonly description: string;
  readonly services: readonly string[];
  readonly types: readonly string[];
  readonly keywords: readonly string[];
  readonly tools: ServerLists;
  readonly profiles: readonly string[];
  readonly isShipped: boolean;
}

/** All profiles and rules, your own before those that are shipped. */
export interface TaskRules {
  readonly profiles: readonly TaskProfile[];
  readonly rules: readonly TaskRule[];
}

/** What a configuration says about tasks. */
export interface TasksConfig {
  /** The rules. Those that come with Toolgate are read at the first call. */
  rules(): TaskRules;
  /** Files that rules were read from, other than the configuration itself. */
  readonly files: readonly string[];
}

/** Stands for the file that comes with Toolgate. */
const SHIPPED = 'default';
const SHIPPED_FILE = 'rules/tasks.toml';

const toolLists = () =>
  byServer(toolList(), 'tools').describe(
    'By the name of the server (or a pattern): its own names for tools, patterns over them, or categories.',
  );

const profileSchema = section(
  {
    description: text().prefault('').describe('What kind of tasks these are.'),
    types: textList().prefault([]).describe('Types of tasks that use this profile, in addition to its own name.'),
    tools: toolLists(),
  },
  { id: 'TaskProfile', description: 'The tools that a kind of task starts with.' },
);

const ruleSchema = section(
  {
    name: text().min(1, { error: 'must not be empty' }).describe('Name of the rule, shown as the reason.'),
    description: text().prefault('').describe('Why such tasks need this.'),
    services: textList()
      .optional()
      .describe('Names of services, or patterns over them or over one of their words (`api*`). One must match.'),
    types: textList().optional().describe('Types of tasks, or patterns over them. One must match.'),
    keywords: textList()
      .optional()
      .describe('Words or phrases of the description, or patterns over words (`deploy*`). One must occur.'),
    tools: toolLists().optional(),
    profiles: textList().optional().describe('Profiles whose tools are added.'),
  },
  { id: 'TaskRule', description: 'Tools that some tasks need. One of its conditions must match.' },
);

const ruleShape = {
  task_rules: z
    .array(ruleSchema, { error: 'expected a list of rules' })
    .optional()
    .describe(
      'Which tools tasks need, in addition to the rules of `task_rule_files`; a rule replaces one of the same name there.',
    ),
  task_profiles: z
    .record(z.string(), profileSchema, { error: 'expected a map of profiles' })
    .optional()
    .describe('Which tools a kind of task starts with, by name; `default` is for tasks of no other kind.'),
};

export const taskShape = {
  ...ruleShape,
  task_rule_files: textList()
    .prefault([SHIPPED])
    .describe(
      'Files with further `task_rules` and `task_profiles`, relative to the folder of this file. `default` is the one that comes with Toolgate.',
    ),
};

const ruleFileSchema = section(ruleShape);

type TasksSection = Section<typeof taskShape>;
type RulesSection = Section<typeof ruleShape>;

/** The tasks of the configuration in `file`. Throws if that, or a file of rules, has a mistake. */
export async function loadTasks(written: TasksSection, document: ConfigDocument, file: string): Promise<TasksConfig> {
  const files: string[] = [];
  const parts: RulePart[] = [];
  for (const name of written.taskRuleFiles) {
    if (name === SHIPPED) {
      parts.push(shippedRules);
      continue;
    }
    const path = resolve(dirname(file), name);
    files.push(path);
    const ruleFile = await parseConfig(await readConfigText(path, name), name);
    const rules = await withLines(ruleFile, () => readRuleFile(ruleFile));
    parts.push(() => rules);
  }
  return combine(written, parts, files, document);
}

/** The tasks of a configuration in code, which cannot name its own files. */
export function tasksInCode(written: TasksSection, document: ConfigDocument): TasksConfig {
  const own = written.taskRuleFiles.findIndex((name) => name !== SHIPPED);
  if (own >= 0) {
    const message = 'only "default" can be named in code. Put the rules into task_rules, or use loadConfig';
    throw new InvalidConfig(document, [{ path: ['task_rule_files', own], message }]);
  }
  const parts = written.taskRuleFiles.map(() => shippedRules);
  return combine(written, parts, [], document);
}

/** Rules that may have to be read first. */
type RulePart = () => TaskRules;

let shipped: TaskRules | null = null;

/** The rules that come with Toolgate. */
export function shippedRules(): TaskRules {
  shipped ??= toRules(ruleFileSchema.parse(parseToml(readFileSync(ownFile(SHIPPED_FILE), 'utf8'))), true);
  return shipped;
}

function readRuleFile(document: ParsedText): TaskRules {
  const { data, error } = ruleFileSchema.safeParse(document.value);
  const forbidden = forbiddenKeys(document.value);
  if (error || forbidden.length > 0)
    throw new InvalidConfig(document, [
      ...forbidden,
      ...(error ? schemaIssues(ruleFileSchema, error, document.value) : []),
    ]);
  const issues = issuesOf(data);
  if (issues.length > 0) throw new InvalidConfig(document, issues);
  return toRules(data, false);
}

function combine(
  written: TasksSection,
  parts: readonly RulePart[],
  files: readonly string[],
  document: ConfigDocument,
): TasksConfig {
  // Most configurations have nothing but the shipped rules. They need no check, and are read when a task asks for them.
  const isPlain = written.taskRules === null && written.taskProfiles === null && parts.length === 1;
  if (isPlain && parts[0] === shippedRules) return { rules: shippedRules, files };
  const issues = issuesOf(written);
  const merged = [...parts.map((part) => part()), toRules(written, false)].reduce(merge, { profiles: [], rules: [] });
  const names = new Set(merged.profiles.map(({ name }) => name));
  for (const [i, { profiles }] of (written.taskRules ?? []).entries())
    for (const [k, name] of (profiles ?? []).entries())
      if (!names.has(name))
        issues.push({ path: ['task_rules', i, 'profiles', k], message: `there is no profile "${name}"` });
  if (issues.length > 0) throw new InvalidConfig(document, issues);
  const unknown = merged.rules.flatMap((rule) => rule.profiles).find((name) => !names.has(name));
  if (unknown !== undefined)
    throw new InvalidConfig(document, [
      { path: ['task_rule_files'], message: `their rules name the profile "${unknown}", which does not exist` },
    ]);
  return { rules: () => merged, files };
}

/** A later rule or profile replaces an earlier one of the same name. */
function merge(before: TaskRules, after: TaskRules): TaskRules {
  const add = <T extends { readonly name: string }>(a: readonly T[], b: readonly T[]) => [
    ...a.filter(({ name }) => !b.some((one) => one.name === name)),
    ...b,
  ];
  return { profiles: add(before.profiles, after.profiles), rules: add(before.rules, after.rules) };
}

/** Mistakes that the schema cannot detect. */
function issuesOf({ taskRules, taskProfiles }: RulesSection): Issue[] {
  const issues: Issue[] = [];
  const names = new Set<string>();
  for (const [i, { name, tools, profiles, keywords }] of (taskRules ?? []).entries()) {
    const path = ['task_rules', i];
    if (names.has(name)) issues.push({ path: [...path, 'name'], message: `another rule is called "${name}" already` });
    names.add(name);
    if (tools === null && profiles === null)
      issues.push({ path, message: 'adds nothing. Give it "tools" or "profiles"' });
    for (const [k, keyword] of (keywords ?? []).entries())
      if (!/[\p{L}\p{N}*?]/u.test(keyword))
        issues.push({ path: [...path, 'keywords', k], message: 'contains no word' });
  }
  const owners = new Map<string, string>();
  for (const [name, { types }] of Object.entries(taskProfiles ?? {}))
    for (const [k, type] of types.entries()) {
      const owner = owners.get(type.toLowerCase());
      if (owner !== undefined)
        issues.push({
          path: ['task_profiles', name, 'types', k],
          message: `the profile "${owner}" already has the type "${type}"`,
        });
      owners.set(type.toLowerCase(), name);
    }
  return issues;
}

function toRules({ taskRules, taskProfiles }: RulesSection, isShipped: boolean): TaskRules {
  return {
    profiles: Object.entries(taskProfiles ?? {}).map(([name, profile]) => ({ name, ...profile, isShipped })),
    rules: (taskRules ?? []).map((rule) => ({
      ...rule,
      services: rule.services ?? [],
      types: rule.types ?? [],
      keywords: rule.keywords ?? [],
      tools: rule.tools ?? {},
      profiles: rule.profiles ?? [],
      isShipped,
    })),
  };
}
