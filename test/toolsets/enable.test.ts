/** `controls = ["toolsets"]`: a model enables any number of toolsets, and every server is one. */
import { describe, expect, it } from 'vitest';
import {
  allDoors,
  type Client,
  call,
  type Door,
  enter,
  isModern,
  ownError,
  visit,
  visitModern,
} from '../support/doors.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { control, THREE, toolsetsToml } from '../support/toolsets.ts';

const META = ['list_tools', 'list_toolsets', 'enable_toolset', 'disable_toolset', 'describe_toolset'];

const MIX = '[toolsets.mix]\ndescription = "A bit of both"\ntools = ["git.status", "docker.ps"]\n';
const toml = (more = MIX, top = '') =>
  toolsetsToml(THREE, top).replace('controls = ["equip"]', 'controls = ["toolsets"]') + more;
const files = (text = toml()) => ({ 'tools.toml': text });

/** The listed tools that are not meta-tools. */
async function enabled(client: Pick<Client, 'listTools'>): Promise<string[]> {
  const names = (await client.listTools()).tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(META));
  return names.filter((name) => !META.includes(name) && name !== 'toolman_call');
}

describe.each(allDoors)('over %s', (door) => {
  it('a model finds, describes, enables and disables toolsets', async () => {
    const guest = await enter(door, { files: files() });
    const { client, changes } = guest;
    expect(await enabled(client)).toEqual([]);
    const { toolsets } = await control(client, 'list_toolsets');
    expect((toolsets as { key: string; active: boolean }[]).map(({ key, active }) => [key, active])).toEqual(
      ['mix', 'all', 'git', 'docker', 'linear'].map((key) => [key, false]),
    );
    expect(await control(client, 'describe_toolset', { name: 'mix' })).toEqual({
      key: 'mix',
      active: false,
      definition: { name: 'mix', description: 'A bit of both' },
      tools: ['git_status', 'docker_ps'],
    });
    expect(ownError(await call(client, 'git_log')).message).toContain('call enable_toolset with the name "git"');

    expect(await control(client, 'enable_toolset', { name: 'mix' })).toMatchObject({
      success: true,
      message: 'Enabled the toolset "mix": 2 tools.',
      tools: ['git_status', 'docker_ps'],
    });
    await control(client, 'enable_toolset', { name: 'git' });
    expect(await enabled(client)).toEqual(['git_status', 'git_commit', 'git_log', 'docker_ps']);
    await waitFor(() => changes('tools') === 2);
    expect(await control(client, 'enable_toolset', { name: 'git' })).toMatchObject({
      message: 'The toolset "git" is already enabled.',
    });
    expect(await control(client, 'list_tools')).toEqual({
      tools: ['git_status', 'git_commit', 'git_log', 'docker_ps'],
      toolsetToTools: { mix: ['git_status', 'docker_ps'], git: ['git_status', 'git_commit', 'git_log'] },
    });
    expect((await call(client, 'git_log')).isError).not.toBe(true);

    expect(await control(client, 'disable_toolset', { name: 'git' })).toEqual({
      success: true,
      message: 'Disabled the toolset "git". 1 tool stays, which it shares.',
    });
    expect(await enabled(client)).toEqual(['git_status', 'docker_ps']);
    expect((await call(client, 'git_log')).isError).toBe(true);
    expect(await control(client, 'disable_toolset', { name: 'git' })).toEqual({
      success: true,
      message: 'The toolset "git" is not enabled.',
    });
    await expect(control(client, 'enable_toolset', { name: 'dockr' })).rejects.toThrow(
      'item_unknown: There is no toolset "dockr". Did you mean "docker"?',
    );
    await expect(control(client, 'enable_toolset', {})).rejects.toThrow('"name" must be a string');
    await waitFor(() => changes('tools') === 3);
  });

  it('an edit of a toolset reaches who has it enabled, and a removed one is gone', async () => {
    const { client, changes, cwd } = await enter(door, { files: files() });
    await control(client, 'enable_toolset', { name: 'mix' });
    await control(client, 'enable_toolset', { name: 'linear' });
    expect(await enabled(client)).toEqual(['git_status', 'docker_ps', 'linear_create_issue']);
    const edited = MIX.replace('git.status', 'git.commit');
    replaceFile(cwd, toml(edited));
    await waitFor(async () => (await enabled(client)).includes('git_commit'));
    expect(await enabled(client)).toEqual(['docker_ps', 'linear_create_issue', 'git_commit']);
    await waitFor(() => changes('tools') === 3);
    replaceFile(cwd, toml(''));
    await waitFor(() => changes('tools') === 4);
    expect(await enabled(client)).toEqual(['linear_create_issue']);
  });
});

describe.each(['http', 'modern http'] satisfies Door[])('clients of one gateway over %s', (door) => {
  const open = async (gateway: Awaited<ReturnType<typeof startHttp>>, id: string) =>
    isModern(door) ? visitModern(gateway, { 'mcp-client-id': id }) : visit(gateway);

  it('have their own toolsets', async () => {
    const gateway = await startHttp({ files: files() });
    const [one, other] = [await open(gateway, 'one'), await open(gateway, 'other')];
    await control(one.client, 'enable_toolset', { name: 'git' });
    await control(other.client, 'enable_toolset', { name: 'docker' });
    expect(await enabled(one.client)).toEqual(['git_status', 'git_commit', 'git_log']);
    expect(await enabled(other.client)).toEqual(['docker_ps', 'docker_images']);
    expect([one.changes('tools'), other.changes('tools')]).toEqual([1, 1]);
    // The same client again, without a session: it has what it enabled.
    if (isModern(door)) expect(await enabled((await open(gateway, 'one')).client)).toContain('git_log');
  });

  it('share them if the configuration says so', async () => {
    const gateway = await startHttp({ files: files(toml(MIX, 'selection = "shared"')) });
    const [one, other] = [await open(gateway, 'one'), await open(gateway, 'other')];
    await control(one.client, 'enable_toolset', { name: 'git' });
    await waitFor(() => other.changes('tools') === 1);
    expect(await enabled(other.client)).toEqual(['git_status', 'git_commit', 'git_log']);
  });
});

it('a policy hides toolsets of which an agent may use nothing, and the denied tools of others', async () => {
  const policy = `
[toolsets.ships]
description = "Secret"
tools = ["docker.*"]
[agent_policies.guest]
allowed_servers = ["git"]
tool_overrides = { git = ["log"] }
`;
  const gateway = await startHttp({ files: files(toml(policy, 'http.trust_agent_header = true')) });
  const { client } = await gateway.connect({ headers: { 'x-agent-id': 'guest' } });
  expect(await enabled(client)).toEqual([]);
  const { toolsets } = await control(client, 'list_toolsets');
  expect((toolsets as { key: string }[]).map(({ key }) => key)).toEqual(['all', 'git']);
  await expect(control(client, 'describe_toolset', { name: 'ships' })).rejects.toThrow('There is no toolset "ships".');
  await expect(control(client, 'enable_toolset', { name: 'ships' })).rejects.toThrow('There is no toolset "ships".');
  expect(await control(client, 'describe_toolset', { name: 'git' })).toMatchObject({ tools: ['git_log'] });
  await control(client, 'enable_toolset', { name: 'all' });
  expect(await enabled(client)).toEqual(['git_log']);
});

it('says which servers are missing from the list, and why', async () => {
  const more = `[[servers]]\nnamespace = "dead"\ncommand = "no-such-program"\n`;
  const { client } = await enter('http', { files: files(`${toml('')}${more}`) });
  await enabled(client);
  const { toolsets, warnings } = await control(client, 'list_toolsets');
  expect((toolsets as { key: string }[]).map(({ key }) => key)).not.toContain('dead');
  expect(warnings).toEqual([
    expect.stringMatching(/^The tools of the server "dead" are not known: down: could not be started/),
  ]);
});
