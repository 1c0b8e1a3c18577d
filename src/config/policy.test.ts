import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { loadConfig } from './load.ts';

async function load(name: string, text: string) {
  const cwd = tempFolder();
  writeFileSync(join(cwd, name), text);
  return loadConfig({ cwd, env: {}, path: name });
}

const foreign = {
  servers: {
    github: { command: 'npx', args: ['-y', 'server-github'], description: 'GitHub', enabled: true },
    old: { command: 'my server', enabled: false },
  },
  exposed_tools: { github: ['create_pull_request', 'get_file_contents'] },
  agent_policies: {
    'claude-code': { allowed_servers: ['github'], tool_overrides: { github: ['get_file_contents'] } },
  },
  default_policy: { allow_unknown_tools: false },
};

describe('a policy JSON of another program', () => {
  it('loads as it is', async () => {
    const config = await load('filter.json', JSON.stringify(foreign));
    expect(config.notices).toEqual([]);
    expect(config.controls).toEqual([]);
    expect(config.names).toBe('join');
    expect(
      config.servers.map(({ key, enabled, description, launch }) => [key, enabled, description, launch]),
    ).toMatchObject([
      ['github', true, 'GitHub', { kind: 'stdio', file: 'npx', args: ['-y', 'server-github'] }],
      // One executable, even with a space in its name.
      ['old', false, '', { kind: 'stdio', file: 'my server', args: [] }],
    ]);
    expect(config.policy).toMatchObject({
      exposed: { tool: foreign.exposed_tools },
      agents: [
        { name: 'claude-code', allowedServers: ['github'], overrides: { tool: { github: ['get_file_contents'] } } },
      ],
      allowUnknown: { tool: false, resource: null, prompt: null },
    });
  });

  it('may have unknown keys, anywhere', async () => {
    const config = await load(
      'filter.json',
      JSON.stringify({
        ...foreign,
        version: 2,
        agent_policies: { a: { allowed_servers: ['github'], colour: 'red' } },
        default_policy: { allow_unknown_tools: false, log: true },
      }),
    );
    expect([...config.notices].sort()).toEqual([
      'filter.json: agent_policies.a: ignored "colour".',
      'filter.json: default_policy: ignored "log".',
      'filter.json: ignored "version".',
    ]);
    expect(config.policy?.agents).toMatchObject([{ name: 'a', allowedServers: ['github'] }]);
  });

  it('is refused if a rule is invalid, because ignoring it could allow too much', async () => {
    await expect(load('filter.json', JSON.stringify({ ...foreign, exposed_tools: { github: 'all' } }))).rejects.toThrow(
      'filter.json:1: exposed_tools.github: expected a list of strings, found a string.',
    );
    await expect(
      load('.mcp.json', JSON.stringify({ mcpServers: {}, agent_policies: { a: { allowed_servers: 'x' } } })),
    ).rejects.toThrow('agent_policies.a.allowed_servers: expected a list of strings');
  });

  it('under our own name is read strictly', async () => {
    await expect(load('toolgate.json', JSON.stringify({ ...foreign, version: 2 }))).rejects.toThrow(
      'version: unknown key',
    );
  });
});

describe('a policy', () => {
  it('means the same in TOML and in JSON', async () => {
    const { policy } = await load(
      'tools.toml',
      `[exposed_tools]
github = ["create_pull_request", "get_file_contents"]
[agent_policies.claude-code]
allowed_servers = ["github"]
tool_overrides = { github = ["get_file_contents"] }
[default_policy]
allow_unknown_tools = false`,
    );
    expect(policy).toEqual((await load('filter.json', JSON.stringify(foreign))).policy);
  });

  it.each([
    [
      '[agent_policies.a]\nallowed_server = ["x"]',
      'agent_policies.a.allowed_server: unknown key. Did you mean "allowed_servers"?',
    ],
    ['[agent_policies.a]\nextends = ["b"]', 'agent_policies.a.extends[0]: there is no policy "b" to extend.'],
    [
      '[agent_policies.a]\nextends = ["b"]\n[agent_policies.b]\nextends = ["a"]',
      'agent_policies.a.extends: leads back to this policy. Break the cycle.',
    ],
    [
      '[default_policy]\nallow_unknown_tool = true',
      'default_policy.allow_unknown_tool: unknown key. Did you mean "allow_unknown_tools"',
    ],
    ['[[conditions]]\nbetween = ["8", "18:00"]', 'expected a time of day such as "08:30", found "8"'],
    ['[[conditions]]\nbetween = ["08:00"]', 'expected two times of day'],
    ['[[conditions]]\ndays = ["monday"]', 'expected one of sun, mon'],
    ['[[conditions]]\ntimezone = "Mars"', 'conditions[0].timezone: is not the name of a time zone'],
    ['[[conditions]]\nargument = { a = "b" }', 'conditions[0].argument: unknown key. Did you mean "arguments"?'],
    [
      '[[agent_policies.a.conditions]]\nannotations = { readonly = true }',
      'agent_policies.a.conditions[0].annotations.readonly: unknown key.',
    ],
    ['[exposed_tools]\na = "b"', 'exposed_tools.a: expected a list of strings, found a string.'],
  ])('with %j is refused', async (text, message) => {
    await expect(load('tools.toml', text)).rejects.toThrow(message);
  });
});
