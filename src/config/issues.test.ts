import { describe, expect, it } from 'vitest';
import { forbiddenKeys, InvalidConfig, issueText, type Path, pathText } from './issues.ts';

it('writes paths as they would be typed', () => {
  expect(pathText(['servers', 1, 'env', 'API_KEY'])).toBe('servers[1].env.API_KEY');
  expect(pathText(['mcpServers', 'my server', 'url'])).toBe('mcpServers["my server"].url');
});

it('ends every message as a sentence', () => {
  expect(issueText({ path: ['a'], message: 'is wrong' })).toBe('a: is wrong.');
  expect(issueText({ path: [], message: 'Did you mean "b"?' })).toBe('Did you mean "b"?');
});

it('lists all issues in one error, in the order of the file', () => {
  const lines = new Map([
    ['b', 2],
    ['a', 7],
  ]);
  const issues = [
    { path: ['a'], message: 'is wrong' },
    { path: ['b'], message: 'is wrong too' },
    { path: ['c'], message: 'is nowhere' },
  ];
  const error = new InvalidConfig({ name: 'tools.toml' }, issues, ([key]: Path) => lines.get(String(key)));
  expect(error.code).toBe('config_invalid');
  expect(error.message.split('\n')).toEqual([
    'tools.toml: c: is nowhere.',
    'tools.toml:2: b: is wrong too.',
    'tools.toml:7: a: is wrong.',
  ]);
});

describe('keys that reach into prototypes', () => {
  it('are found at every depth', () => {
    const value = JSON.parse('{"a":[{"__proto__":{"x":1}}],"constructor":1,"b":{"prototype":null}}');
    expect(
      forbiddenKeys(value)
        .map((issue) => pathText(issue.path))
        .sort(),
    ).toEqual(['a[0].__proto__', 'b.prototype', 'constructor']);
  });

  it('are searched for in values that contain themselves, and in very deep ones', () => {
    const ring: Record<string, unknown> = {};
    ring.self = ring;
    expect(forbiddenKeys(ring)).toEqual([]);
    let deep: unknown = {};
    for (let i = 0; i < 3000; i++) deep = [deep];
    expect(forbiddenKeys(deep)).toEqual([]);
  });
});
