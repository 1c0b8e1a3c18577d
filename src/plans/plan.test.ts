import { describe, expect, it } from 'vitest';
import { EMPTY_CATALOG } from '../catalog/catalog.ts';
import { taskFromValue } from '../config/task.ts';
import { shippedRules, type TaskRule } from '../config/tasks.ts';
import { planTask } from './plan.ts';
import { planToml } from './plan-text.ts';

const RULE: TaskRule = {
  name: 'r',
  description: '',
  services: [],
  types: [],
  keywords: [],
  tools: { git: ['log'] },
  profiles: [],
  isShipped: false,
};

function fits(rule: Partial<TaskRule>, task: object): boolean {
  const rules = { profiles: [], rules: [{ ...RULE, ...rule }] };
  return planTask(taskFromValue(task), rules, EMPTY_CATALOG).rules.length === 1;
}

describe('a rule matches', () => {
  it.each([
    [['test'], 'Run the Test.', true],
    [['test'], 'the latest contest, attested', false],
    [['test*'], 'testing it', true],
    [['ci/cd'], 'fix CI-CD now', true],
    [['data analysis'], 'a data\nanalysis', true],
    [['data analysis'], 'data and analysis', false],
    [['prüfung'], 'Die PRÜFUNG', true],
    [['unit-test*'], 'unit tests', true],
  ])('with the keywords %j for "%s": %s', (keywords, description, expected) => {
    expect(fits({ keywords }, { description })).toBe(expected);
  });

  it.each([
    [['api'], 'user-api', true],
    [['api'], 'userApi', true],
    [['api*'], 'capital-rapid', false],
    [['shop-*'], 'Shop-Front', true],
    [['api'], '', false],
  ])('with the services %j for "%s": %s', (services, service, expected) => {
    expect(fits({ services }, { service, description: 'x' })).toBe(expected);
  });

  it('by type, in upper or lower case, and matches every task if it has no conditions', () => {
    expect(fits({ types: ['API'] }, { type: 'api' })).toBe(true);
    expect(fits({ types: ['api'] }, { type: 'apis' })).toBe(false);
    expect(fits({}, { type: 'any' })).toBe(true);
  });
});

it('the shipped rules name only existing profiles and give a reason for every tool', () => {
  const rules = shippedRules();
  const names = rules.profiles.map(({ name }) => name);
  expect(names).toEqual(['default', 'development', 'research', 'analysis', 'automation']);
  for (const { profiles } of rules.rules) expect(names).toEqual(expect.arrayContaining([...profiles]));
  const servers = [{ key: 'github', namespace: 'github', present: false }];
  const { tools } = planTask(taskFromValue({ service: 'api', description: 'test' }), rules, EMPTY_CATALOG, servers);
  expect(tools).toEqual([
    { server: 'github', tool: 'get_file_contents', entry: null, reasons: ['profile "default"'] },
    { server: 'github', tool: 'create_pull_request', entry: null, reasons: ['rule "api": the service is "api"'] },
    { server: 'github', tool: 'create_branch', entry: null, reasons: ['rule "api": the service is "api"'] },
  ]);
});

describe('a plan says', () => {
  const rules = shippedRules();
  const servers = [{ key: 'github', namespace: 'github', present: false }];
  const notesOf = (task: object) => planTask(taskFromValue(task), rules, EMPTY_CATALOG, servers).notes;

  it('that no rule matches the task, and what it gets', () => {
    expect(notesOf({ description: 'Take a screenshot' })).toEqual([
      'No rule matches this task, so it gets only what the profile "default" has. Name a type, describe the task in other words, or add a rule.',
    ]);
  });

  it('that its type is unknown, with the type that was probably meant', () => {
    const [note] = notesOf({ type: 'reserch', description: 'test' });
    expect(note).toBe(
      'The type "reserch" is unknown: no profile and no rule names it. Did you mean "research" or "researcher"?',
    );
    expect(notesOf({ type: 'Research' })).toEqual([]);
    expect(notesOf({ profile: 'research', description: 'Take a screenshot' })).toEqual([]);
  });

  it('that a rule matches and adds nothing', () => {
    const idle = { ...RULE, name: 'idle', keywords: ['paint'], tools: { brush: ['stroke'] } };
    const task = taskFromValue({ description: 'paint it' });
    expect(planTask(task, { profiles: [], rules: [idle] }, EMPTY_CATALOG, servers).notes).toEqual([
      'The rule "idle" matches and adds nothing: no server has a tool that it names.',
    ]);
  });
});

it('a long description is cut after 99 characters, however many bytes they have', () => {
  const headOf = (description: string) => {
    const plan = planTask(taskFromValue({ description }), shippedRules(), EMPTY_CATALOG);
    return planToml(plan, { value: {}, variables: [] }).split('\n')[0];
  };
  expect(headOf('😀'.repeat(100))).toBe(`# What this task needs: "${'😀'.repeat(100)}".`);
  expect(headOf('😀'.repeat(101))).toBe(`# What this task needs: "${'😀'.repeat(99)}…".`);
});
