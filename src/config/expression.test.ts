import { describe, expect, it } from 'vitest';
import { expressionOf, expressionProblem } from './expression.ts';
import { configFromValue } from './load.ts';

const TASK = { service: 'shop', type: 'api', description: '', profile: '' };
const map = (value: object): Map<string, unknown> => new Map(Object.entries(value));
const decide = (text: string, args: object = {}, claims: object = {}) =>
  expressionOf(text).decide({
    agent: 'ci-7',
    claims: map(claims),
    task: TASK,
    now: new Date('2026-11-16T17:30:00Z'),
    args: map(args),
  });

describe('an expression', () => {
  it.each([
    ['claims.team == "ops" && args.amount < 100', true],
    ['agent.like("ci-*") && !agent.like("ci-?-*")', true],
    ['task.type == "api" && task.profile == ""', true],
    ['now < timestamp("2026-11-16T17:31:00Z") && now.getHours("Europe/Berlin") == 18', true],
    ['"admins" in claims.groups', false],
    ['args.files.all(file, file.startsWith("src/"))', true],
    ['has(args.force) ? args.force == false : true', true],
    ['!(args.amount in [1, 5, 9])', false],
  ])('%s is %s', (text, holds) => {
    const args = { amount: 5, files: ['src/a', 'src/b'] };
    expect(decide(text, args, { team: 'ops', groups: ['users'] })).toBe(holds);
  });

  it.each([
    ['args.amount < 100', 'No such key: amount'],
    ['args.text < 100', 'no such overload: dyn<string> < int'],
    ['args.text', 'its value is not true or false'],
    ['claims.__proto__ == null', 'No such key: __proto__'],
    ['claims.constructor == null', 'No such key: constructor'],
    ['args.toString == null', 'No such key: toString'],
    ['now.getHours("Nowhere/City") > 1', 'Invalid time zone specified: Nowhere/City'],
  ])('%s cannot be decided: %s', (text, reason) => {
    expect(() => decide(text, { text: 'x' })).toThrow(reason);
  });

  it('knows what it looks at', () => {
    const { uses, names } = expressionOf('claims.team == "ops" && args.list.exists(x, x.a in args.b)');
    expect([[...uses].sort(), [...names].sort()]).toEqual([
      ['args', 'claims'],
      ['a', 'b', 'list', 'ops', 'team'],
    ]);
  });
});

it('knows by the sizes whether it would take long', () => {
  const expression = expressionOf('args.list.all(x, args.list.all(y, x != y))');
  const none = { bytes: 0, values: 0 };
  expect(expression.takesLong({ bytes: 300, values: 100 }, none)).toBe(false);
  expect(expression.takesLong({ bytes: 30_000, values: 10_000 }, none)).toBe(true);
  expect(expression.takesLong(none, { bytes: 30_000, values: 10_000 })).toBe(false);
});

describe('a bad expression', () => {
  it.each([
    ['claims.team ==', 'at character 15: Unexpected token: EOF'],
    ['claim.team == "x"', 'at character 1: there is no variable "claim". Did you mean "claims"?'],
    ['args.a = 1', 'at character 8: Unexpected character: ='],
    ['agent == 5', 'at character 1: no such overload: string == int'],
    ['task.typ == "x"', 'at character 6: No such key: typ'],
    ['agent + "x"', ': its value is of type string, and not true or false'],
    ['args.a.matches("(a+)+$")', 'at character 1: there is no "matches"'],
    ['args.a.all(x, x.all(y, y.all(z, z)))', 'at character 24: "all" is inside of two others'],
    ['process.exit() == 1', 'there is no variable "process"'],
    ['', 'Unexpected token'],
  ])('%j is refused: %s', (text, problem) => {
    expect(expressionProblem(text)).toContain(problem);
  });

  it('is reported with its place in the configuration', () => {
    const read = () => configFromValue({ conditions: [{ when: 'agent == "a"' }, { when: 'nobody == 1' }] });
    expect(read).toThrow(
      'conditions[1].when: is not a valid expression at character 1: there is no variable "nobody". It may use agent, args, claims, now, task',
    );
    expect(() => configFromValue({ security: { confirm: [{ when: 'args.' }] } })).toThrow(
      'security.confirm[0].when: is not a valid expression',
    );
  });
});
