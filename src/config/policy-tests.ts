/** A table of decisions that are expected of a policy, for `toolgate policy test`. */
import { resolve } from 'node:path';
import * as z from 'zod';
import { choice, section, text } from './fields.ts';
import { InvalidConfig, type Issue, schemaIssues } from './issues.ts';
import { parseConfig, readConfigText, withLines } from './parse.ts';
import { type Task, taskFromValue } from './task.ts';

/** One row of the table: who asks for what, and what the policy should decide. */
export interface PolicyTest {
  /** What the row is about; empty if it does not say. */
  readonly name: string;
  readonly agent: string;
  readonly claims: Readonly<Record<string, unknown>> | null;
  readonly task: Task | null;
  readonly kind: 'tool' | 'resource' | 'prompt';
  /** As `server.name`, or the exposed name. */
  readonly item: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** In milliseconds since 1970; null for now. */
  readonly time: number | null;
  readonly expect: 'allow' | 'deny' | 'confirm';
  /** The rule that has to decide; null for any. */
  readonly rule: string | null;
}

const KINDS = ['tool', 'resource', 'prompt'] as const;

const values = () => z.record(z.string(), z.unknown(), { error: 'expected a map' }).optional();

const testSchema = section({
  name: text().prefault(''),
  agent: text().prefault('default'),
  claims: values(),
  task: z
    .union([text(), values()], { error: 'expected a description, or a map of service, type, description, profile' })
    .optional(),
  tool: text().optional(),
  resource: text().optional(),
  prompt: text().optional(),
  arguments: values(),
  time: z
    .union([text(), z.date().transform((date) => date.toISOString())], { error: 'expected a date and time' })
    .refine((written) => !Number.isNaN(Date.parse(written)), {
      error: 'expected a time such as "2026-11-16T18:30:00Z"',
    })
    .optional(),
  expect: choice(['allow', 'deny', 'confirm']),
  rule: text().optional(),
});

const fileSchema = section({
  tests: z.array(testSchema, { error: 'expected a list of tests' }).min(1, { error: 'has no tests' }),
});

/** Reads TOML, YAML or JSON. Throws one error with everything that is wrong. */
export async function loadPolicyTests(path: string, cwd: string): Promise<PolicyTest[]> {
  const document = await parseConfig(await readConfigText(resolve(cwd, path), path), path);
  return withLines(document, () => {
    const { data, error } = fileSchema.safeParse(document.value, { jitless: true });
    if (error) throw new InvalidConfig(document, schemaIssues(fileSchema, error, document.value, document));
    const issues: Issue[] = [];
    const tests = data.tests.map((row, i): PolicyTest => {
      const add = (message: string) => issues.push({ path: ['tests', i], message });
      const kinds = KINDS.filter((kind) => row[kind] !== null);
      const [kind = 'tool'] = kinds;
      if (kinds.length !== 1) add('names one of tool, resource and prompt');
      if (kind === 'resource' && row.arguments !== null) add('a resource has no arguments');
      return {
        name: row.name,
        agent: row.agent,
        claims: row.claims,
        task: row.task === null ? null : readTask(row.task, add),
        kind,
        item: row[kind] ?? '',
        arguments: row.arguments ?? {},
        time: row.time === null ? null : Date.parse(row.time),
        expect: row.expect,
        rule: row.rule,
      };
    });
    if (issues.length > 0) throw new InvalidConfig(document, issues);
    return tests;
  });
}

function readTask(written: unknown, add: (message: string) => void): Task | null {
  try {
    return taskFromValue(typeof written === 'string' ? { description: written } : written, 'its task');
  } catch (error) {
    add((error as Error).message);
    return null;
  }
}
