import { describe, expect, it } from 'vitest';
import { EMPTY_CATALOG } from '../catalog/catalog.ts';
import { taskFromValue } from '../config/task.ts';
import { shippedRules, type TaskRule } from '../config/tasks.ts';
import { planTask } from './plan.ts';

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
