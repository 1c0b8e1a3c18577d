/** The rules of a configuration about tasks: its own, and those of the files that it names. */
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { ownFile } from '../base/own-files.ts';
import { type ConfigDocument, forbiddenKeys, InvalidConfig, type Issue, schemaIssues } from './issues.ts';
import { parseConfig, readConfigText, withLines } from './parse.ts';
import type { ServerLists } from './policy.ts';
import { type RuleFile, ruleFileSchema, type TaskSettings } from './task-schema.ts';

/** A named choice of tools for a kind of work. */
export interface TaskProfile {
  readonly name: string;
  readonly description: string;
  readonly types: readonly string[];
  readonly tools: ServerLists;
  /** Whether it comes with Toolgate: it names tools of servers as they were at different times. */
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
  /** Read when they are first asked for, where they are only those that come with Toolgate. */
  rules(): TaskRules;
  /** Files that they were read from, beside the configuration. */
  readonly files: readonly string[];
}

/** Stands for the file that comes with Toolgate. */
const DEFAULT = 'default';
export const DEFAULT_RULES = 'rules/tasks.toml';

/** Throws where a file, or the configuration itself, has a mistake. */
export async function loadTaskRules(
  settings: TaskSettings,
  origin: ConfigDocument,
  file: string,
): Promise<TasksConfig> {
  const files: string[] = [];
  const parts: TaskRules[] = [];
  for (const written of settings.task_rule_files) {
    if (written === DEFAULT) {
      parts.push(defaultRules());
      continue;
    }
    const path = resolve(dirname(file), written);
    files.push(path);
    const document = await parseConfig(await readConfigText(path, written), written);
    parts.push(await withLines(document, () => checkFile(document.value, document)));
  }
  return combine(settings, parts, files, origin);
}

/** The same for a configuration in code, which names no files of its own. */
export function taskRulesOf(settings: TaskSettings, origin: ConfigDocument): TasksConfig {
  const own = settings.task_rule_files.findIndex((name) => name !== DEFAULT);
  if (own >= 0) {
    const message = 'only "default" can be named in code. Put the rules into task_rules, or use loadConfig';
    throw new InvalidConfig(origin, [{ path: ['task_rule_files', own], message }]);
  }
  if (isPlain(settings)) return { rules: defaultRules, files: [] };
  return combine(
    settings,
    settings.task_rule_files.map(() => defaultRules()),
    [],
    origin,
  );
}

/** Whether there is nothing to check at the start: no rules but those that come with Toolgate. */
export function isPlain({ task_rules, task_profiles, task_rule_files: files }: TaskSettings): boolean {
  return task_rules === undefined && task_profiles === undefined && files.length === 1 && files[0] === DEFAULT;
}

let known: TaskRules | null = null;

/** Those that come with Toolgate. */
export function defaultRules(): TaskRules {
  if (known !== null) return known;
  const text = readFileSync(ownFile(DEFAULT_RULES), 'utf8');
  known = toRules(ruleFileSchema.parse(parseToml(text)), true);
  return known;
}

function checkFile(value: unknown, origin: ConfigDocument): TaskRules {
  const { data, error } = ruleFileSchema.safeParse(value);
  const forbidden = forbiddenKeys(value);
  if (error || forbidden.length > 0)
    throw new InvalidConfig(origin, [...forbidden, ...(error ? schemaIssues(ruleFileSchema, error, value) : [])]);
  const issues = issuesOf(data);
  if (issues.length > 0) throw new InvalidConfig(origin, issues);
  return toRules(data, false);
}

function combine(
  settings: TaskSettings,
  parts: readonly TaskRules[],
  files: readonly string[],
  origin: ConfigDocument,
): TasksConfig {
  const issues = issuesOf(settings);
  const merged = [...parts, toRules(settings, false)].reduce(merge, { profiles: [], rules: [] });
  const names = new Set(merged.profiles.map(({ name }) => name));
  for (const [i, { profiles = [] }] of (settings.task_rules ?? []).entries())
    for (const [k, name] of profiles.entries())
      if (!names.has(name))
        issues.push({ path: ['task_rules', i, 'profiles', k], message: `there is no profile "${name}"` });
  if (issues.length > 0) throw new InvalidConfig(origin, issues);
  const strays = merged.rules.flatMap((rule) => rule.profiles.filter((name) => !names.has(name)));
  if (strays.length > 0)
    throw new InvalidConfig(origin, [
      { path: ['task_rule_files'], message: `their rules name a profile "${strays[0]}", and there is none` },
    ]);
  return { rules: () => merged, files };
}

/** What comes later goes before what has its name. */
function merge(before: TaskRules, after: TaskRules): TaskRules {
  const add = <T extends { readonly name: string }>(a: readonly T[], b: readonly T[]) => [
    ...a.filter(({ name }) => !b.some((one) => one.name === name)),
    ...b,
  ];
  return { profiles: add(before.profiles, after.profiles), rules: add(before.rules, after.rules) };
}

/** What the schema cannot see. */
function issuesOf({ task_rules: rules = [], task_profiles: profiles = {} }: RuleFile): Issue[] {
  const issues: Issue[] = [];
  const names = new Set<string>();
  for (const [i, { name, tools, profiles, keywords = [] }] of rules.entries()) {
    const path = ['task_rules', i];
    if (names.has(name)) issues.push({ path: [...path, 'name'], message: `another rule is called "${name}" already` });
    names.add(name);
    if (tools === undefined && profiles === undefined)
      issues.push({ path, message: 'adds nothing. Give it "tools" or "profiles"' });
    for (const [k, keyword] of keywords.entries())
      if (!/[\p{L}\p{N}*?]/u.test(keyword))
        issues.push({ path: [...path, 'keywords', k], message: 'has no word in it' });
  }
  const owners = new Map<string, string>();
  for (const [name, { types }] of Object.entries(profiles))
    for (const [k, type] of types.entries()) {
      const owner = owners.get(type.toLowerCase());
      if (owner !== undefined)
        issues.push({
          path: ['task_profiles', name, 'types', k],
          message: `tasks of the type "${type}" begin with the profile "${owner}" already`,
        });
      owners.set(type.toLowerCase(), name);
    }
  return issues;
}

function toRules({ task_rules = [], task_profiles = {} }: RuleFile, isShipped: boolean): TaskRules {
  return {
    profiles: Object.entries(task_profiles).map(([name, profile]) => ({ name, ...profile, isShipped })),
    rules: task_rules.map(({ services = [], types = [], keywords = [], tools = {}, profiles = [], ...rest }) => ({
      ...rest,
      services,
      types,
      keywords,
      tools,
      profiles,
      isShipped,
    })),
  };
}
