import { expect, it } from 'vitest';
import { configFromValue } from '../config/load.ts';
import { agentLimits } from './agent-limits.ts';

function limitsOf(agent: string, value: object) {
  return agentLimits(configFromValue(value, { cwd: '/', env: {} }).policy, agent);
}

it('has none where nothing says so', () => {
  expect(limitsOf('a', {})).toBeNull();
  expect(limitsOf('a', { exposed_tools: { x: ['*'] } })).toBeNull();
  expect(limitsOf('a', { agent_policies: { b: { limits: { rate: '1/s' } } } })).toBeNull();
});

it('takes the limits of the agent, then those that it extends, key by key', () => {
  const value = {
    agent_policies: {
      child: {
        extends: ['left', 'right'],
        limits: { concurrency: 1 },
        tool_limits: { 'x.*': { concurrency: 2 }, 'x.own': { rate: '9/s' } },
      },
      left: { limits: { concurrency: 5, queue: 6 }, tool_limits: { 'x.*': { concurrency: 7, queue: 8 } } },
      right: { limits: { queue: 9, calls_per_day: 10 } },
      'team-*': { limits: { max_result: '1KiB' } },
    },
  };
  expect(limitsOf('child', value)).toMatchObject({
    all: { concurrency: 1, queue: 6, callsPerDay: 10, rate: null, maxResult: null },
    tools: [
      { tool: 'x.*', concurrency: 2, queue: 8 },
      { tool: 'x.own', concurrency: null, rate: { count: 9, period: 1_000, text: '9/s' } },
    ],
  });
  expect(limitsOf('team-a', value)).toMatchObject({ all: { maxResult: 1_024 }, tools: [] });
});

it('takes what holds for all where the agent has nothing of its own', () => {
  const value = {
    agent_policies: { own: { limits: { queue: 0 } }, none: { description: 'x' } },
    default_policy: { limits: { rate: '2/m' }, tool_limits: { 'a.b': { timeout: '1s' } } },
  };
  const fallback = { all: { rate: { count: 2, period: 60_000 } }, tools: [{ tool: 'a.b', timeout: 1_000 }] };
  expect(limitsOf('none', value)).toMatchObject(fallback);
  expect(limitsOf('stranger', value)).toMatchObject(fallback);
  expect(limitsOf('own', value)).toMatchObject({ all: { rate: null, queue: 0 }, tools: [{ tool: 'a.b' }] });
});

it('closes nothing', () => {
  const allowed = (value: object) => configFromValue(value, { cwd: '/', env: {} }).policy?.allowUnknown.tool;
  expect(allowed({ default_policy: { limits: { rate: '2/m' } } })).toBe(true);
  expect(allowed({ agent_policies: { a: { limits: { rate: '2/m' }, description: 'x' } } })).toBe(true);
  expect(allowed({ agent_policies: { a: { limits: { rate: '2/m' }, allowed_servers: ['x'] } } })).toBe(false);
  expect(allowed({ default_policy: { limits: { rate: '2/m' }, allow_unknown_tools: false } })).toBe(false);
  expect(allowed({ default_policy: {} })).toBe(false);
});
