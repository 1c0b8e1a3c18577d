/** Each server is a toolset by its own name, and `all` has every tool. Nobody has to save them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { allDoors, type Client, enter } from '../support/doors.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { initialize } from '../support/raw-http.ts';
import { replaceFile } from '../support/running-gateway.ts';
import { server, serverEntry } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { control, DOCKER, equippedNames, GIT, refs, THREE, toolsetsToml } from '../support/toolsets.ts';

const mcpJson = JSON.stringify({
  mcpServers: {
    'task-master': serverEntry('basic', '--name', 'tm', '--tools', 'get-tasks,next'),
    git: serverEntry(
      'basic',
      '--name',
      'git',
      '--tools',
      'status,log',
      '--instructions',
      'Keeps the history of files.',
    ),
  },
});

const EVERYTHING = ['git_status', 'git_commit', 'git_log', 'docker_ps', 'docker_images', 'linear_create_issue'];

async function equipText(client: Pick<Client, 'listTools'>): Promise<string> {
  return (await client.listTools()).tools.find(({ name }) => name === 'equip-toolset')!.description!;
}

const instructionsOf = (client: object) => (client as { getInstructions(): string | undefined }).getInstructions();

/** The implicit toolsets that list-saved-toolsets names, with their numbers of tools. */
async function implicit(client: Parameters<typeof control>[0]): Promise<Record<string, number>> {
  const { toolsets } = await control(client, 'list-saved-toolsets');
  const found = (toolsets as { name: string; place: string; toolCount: number }[]).filter(
    ({ place }) => place === 'implicit',
  );
  return Object.fromEntries(found.map(({ name, toolCount }) => [name, toolCount]));
}

describe.each(allDoors)('an .mcp.json over %s', (door) => {
  it('offers each server and all as toolsets, which are equipped in one step', async () => {
    const { client, changes } = await enter(door, { files: { '.mcp.json': mcpJson } });
    const instructions = instructionsOf(client);
    expect(instructions).toContain('equip-toolset with one of these names');
    expect(instructions).toContain('all (4), task-master (2), git (2)');
    const text = await equipText(client);
    expect(text.length).toBeLessThanOrEqual(2_000);
    expect(text).toMatch(/^all \(4 tools, \d+ tokens\)$/m);
    // What its tools are about, or what the server says about itself.
    expect(text).toMatch(/^task-master \(2 tools, \d+ tokens\): tasks, next \(get\)$/m);
    expect(text).toMatch(/^git \(2 tools, \d+ tokens\): Keeps the history of files\.$/m);
    expect(await implicit(client)).toEqual({ all: 4, 'task-master': 2, git: 2 });

    expect(await control(client, 'equip-toolset', { name: 'task-master' })).toMatchObject({
      message: 'Equipped "task-master": 2 tools.',
      exposedTools: ['task_master_get_tasks', 'task_master_next'],
    });
    await waitFor(() => changes('tools') === 1);
    expect(await equippedNames(client)).toEqual(['task_master_get_tasks', 'task_master_next']);
    await control(client, 'equip-toolset', { name: 'all' });
    await waitFor(() => changes('tools') === 2);
    expect(await equippedNames(client)).toHaveLength(4);
    expect(await control(client, 'get-active-toolset')).toMatchObject({ toolset: { name: 'all' }, warnings: [] });
    await control(client, 'unequip-toolset');
    expect(await equippedNames(client)).toEqual([]);
  });
});

describe('an implicit toolset', () => {
  it('cannot be changed or deleted, and nothing of it is saved', async () => {
    const { client, cwd } = await startStdio({ config: toolsetsToml(THREE) });
    await control(client, 'equip-toolset', { name: 'git' });
    for (const name of ['git', 'all'])
      await expect(control(client, 'delete-toolset', { name, confirm: true })).rejects.toThrow(/is not saved, so it/);
    const note = { toolRef: { namespacedName: 'git.log' }, notes: [{ name: 'when', note: 'Never.' }] };
    await expect(control(client, 'add-tool-annotation', note)).rejects.toThrow(/"git" is not saved, so it cannot/);
    expect(existsSync(join(cwd, '.toolgate/toolsets'))).toBe(false);
    expect(await equippedNames(client)).toEqual(['git_status', 'git_commit', 'git_log']);
  });

  it('gives way to a toolset of the user with its name, and is reached as NAME.* then', async () => {
    const more = '[toolsets.docker]\ntools = ["docker.ps"]\n';
    const commands = { ...THREE, all: server('basic', '--name', 'all', '--tools', 'every') };
    const gateway = await startStdio({ config: toolsetsToml(commands, more) });
    const { client } = gateway;
    // A server called `all` is not everything.
    expect(await implicit(client)).toEqual({ all: 7, git: 3, 'docker.*': 2, linear: 1, 'all.*': 1 });
    await control(client, 'build-toolset', { name: 'git', tools: refs('git.log') });
    await control(client, 'build-toolset', { name: 'all', tools: refs('git.status', 'docker.ps') });
    expect(await implicit(client)).toEqual({ '*': 7, 'git.*': 3, 'docker.*': 2, linear: 1, 'all.*': 1 });
    const text = await equipText(client);
    for (const line of ['docker (1 tool, ', 'git (1 tool, ', 'all (2 tools, ', '* (7 tools, ', 'git.* (3 tools, '])
      expect(text).toContain(`\n${line}`);
    for (const [name, tools] of [
      ['git', ['git_log']],
      ['git.*', ['git_status', 'git_commit', 'git_log']],
      ['docker', ['docker_ps']],
      ['docker.*', ['docker_ps', 'docker_images']],
      ['all', ['git_status', 'docker_ps']],
      ['*', [...EVERYTHING, 'all_every']],
      ['all.*', ['all_every']],
    ] as const) {
      await control(client, 'equip-toolset', { name });
      // What the client has seen stays in front.
      expect((await equippedNames(client)).sort()).toEqual([...tools].sort());
    }
    await control(client, 'delete-toolset', { name: 'git', confirm: true });
    expect(await implicit(client)).toMatchObject({ git: 3 });
    await expect(control(client, 'equip-toolset', { name: 'git.*' })).rejects.toThrow(/no toolset "git\.\*"/);
  });

  it('has the tools of exactly one server, also if another begins with the same name', async () => {
    const mcpServers = {
      a: serverEntry('basic', '--name', 'a', '--tools', 'one'),
      'a.b': serverEntry('basic', '--name', 'b', '--tools', 'two'),
    };
    const { client } = await startStdio({ files: { '.mcp.json': JSON.stringify({ mcpServers }) } });
    expect(await implicit(client)).toEqual({ all: 2, a: 1, 'a.b': 1 });
    await control(client, 'equip-toolset', { name: 'a' });
    expect(await equippedNames(client)).toEqual(['a_one']);
  });

  it('is equipped again at the next start, and by --equip-toolset before its server is up', async () => {
    const slow = { git: server('basic', '--name', 'git', '--tools', 'status', '--slow-start', 300), docker: DOCKER };
    const config = toolsetsToml(slow);
    const first = await startStdio({ config, args: ['--equip-toolset', 'git'] });
    expect(await equippedNames(first.client)).toEqual(['git_status']);
    await first.stop();
    expect(JSON.parse(readFileSync(join(first.cwd, '.toolgate/equipped.json'), 'utf8'))).toEqual({ equipped: 'git' });
    const second = await startStdio({ config, cwd: first.cwd });
    expect(await equippedNames(second.client)).toEqual(['git_status']);
    await control(second.client, 'equip-toolset', { name: 'all' });
    await second.stop();
    const third = await startStdio({ config, cwd: first.cwd });
    expect(await equippedNames(third.client)).toEqual(['git_status', 'docker_ps', 'docker_images']);
  });

  it('appears with a notification when a server is added, and follows what the server offers', async () => {
    const changing = server('changing');
    const gateway = await startStdio({ config: toolsetsToml({ git: GIT }) });
    const { client, cwd, changes } = gateway;
    expect(await equipText(client)).not.toContain('changing');
    replaceFile(cwd, toolsetsToml({ git: GIT, changing }));
    await waitFor(() => changes('tools') === 1);
    expect(await equipText(client)).toMatch(/^changing \(\d+ tools/m);
    await control(client, 'equip-toolset', { name: 'changing' });
    const before = await equippedNames(client);
    const count = (await implicit(client)).changing!;
    expect(before).toHaveLength(count);
    await client.callTool({ name: 'changing_add_tool', arguments: { name: 'later' } });
    await waitFor(async () => (await equippedNames(client)).includes('changing_later'));
    expect(await implicit(client)).toMatchObject({ changing: count + 1 });
    expect(await equipText(client)).toContain(`changing (${count + 1} tools`);
  });

  it('of a server that is down is equipped with a warning', async () => {
    const { client } = await startStdio({ config: toolsetsToml({ git: GIT, gone: 'no-such-program-anywhere' }) });
    expect(await implicit(client)).toEqual({ all: 3, git: 3 });
    expect(await control(client, 'equip-toolset', { name: 'gone' })).toMatchObject({
      exposedTools: [],
      unavailableServers: ['gone'],
      warnings: [expect.stringMatching(/^Server "gone" is not available/)],
    });
    expect(await control(client, 'equip-toolset', { name: 'all' })).toMatchObject({ unavailableServers: ['gone'] });
  });
});

describe('with a policy', () => {
  const policy = `
http.trust_agent_header = true
[agent_policies.guest]
allowed_servers = ["git"]
tool_overrides = { git = ["status"] }
[agent_policies.owner]
allowed_servers = ["*"]
[default_policy]
allow_unknown_tools = true
`;

  it('an agent knows only the toolsets of servers that it may see, with what it may see', async () => {
    const gateway = await startHttp({ config: toolsetsToml(THREE, policy) });
    const guest = { 'x-agent-id': 'guest' };
    const legacy = (await gateway.connect({ headers: guest })).client;
    const modern = (await gateway.connectModern(guest)).client;
    for (const client of [legacy, modern]) {
      expect(await implicit(client)).toEqual({ all: 1, git: 1 });
      const said = JSON.stringify([
        client.getInstructions(),
        await client.listTools(),
        await control(client, 'list-saved-toolsets'),
      ]);
      expect(said).not.toMatch(/docker|linear/);
      expect(said).toContain('git (1 tool, ');
      const unknown = (name: string) => control(client, 'equip-toolset', { name }).catch(({ message }) => message);
      expect(await unknown('docker')).toBe((await unknown('dooker')).replace('dooker', 'docker'));
      for (const name of ['docker', 'dooker'])
        await expect(control(client, 'delete-toolset', { name, confirm: true })).rejects.toThrow(
          `item_unknown: There is no toolset "${name}".`,
        );
      await control(client, 'equip-toolset', { name: 'all' });
      expect(await equippedNames(client)).toEqual(['git_status']);
    }
    const at = async (path: string) => (await gateway.post(initialize(), guest, path)).status;
    expect([await at('/mcp/t/git'), await at('/mcp/t/docker'), await at('/mcp/t/dooker')]).toEqual([200, 404, 404]);
    const owner = (await gateway.connect({ headers: { 'x-agent-id': 'owner' } })).client;
    expect(await implicit(owner)).toEqual({ all: 6, git: 3, docker: 2, linear: 1 });
  });
});

describe('an address', () => {
  it('may name an implicit toolset, at every door that takes toolsets', async () => {
    const gateway = await startHttp({ config: toolsetsToml(THREE) });
    for (const [path, headers] of [
      ['/mcp/t/docker', {}],
      ['/mcp?toolset=docker', {}],
      ['/mcp', { 'x-toolset': 'docker' }],
    ] as const) {
      expect(await equippedNames((await gateway.connect({ path, headers })).client)).toEqual(DOCKERS);
      expect(await equippedNames((await connectModernHttp(gateway.origin + path, headers)).client)).toEqual(DOCKERS);
    }
    expect(await equippedNames((await gateway.connect({ path: '/mcp/t/all' })).client)).toEqual(EVERYTHING);
    const rest = (path: string) => fetch(gateway.origin + path).then((answer) => answer.json());
    const shown = (await rest('/tools?toolset=docker')) as { tools: { name: string }[] };
    expect(shown.tools.map(({ name }) => name)).toEqual(DOCKERS);
    expect((await gateway.post(initialize(), {}, '/mcp/t/none')).status).toBe(404);
  });

  const DOCKERS = ['docker_ps', 'docker_images'];
});

it('toolgate toolsets lists, shows and equips them, and refuses to edit or delete them', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': toolsetsToml(THREE) });
  const run = (...args: string[]) => runCli(['toolsets', ...args], { cwd, env: { NO_COLOR: '1' } });
  expect((await run()).stdout).toBe(
    [
      '  all     implicit  6 tools  Every tool of every server',
      '  git     implicit  3 tools  Every tool of the server "git"',
      '  docker  implicit  2 tools  Every tool of the server "docker"',
      '  linear  implicit  1 tool   Every tool of the server "linear"',
      '',
    ].join('\n'),
  );
  expect((await run('show', 'docker')).stdout).toMatch(/✓ docker\.ps .*\n.*✓ docker\.images/);
  for (const args of [
    ['edit', 'git', '--description', 'Mine'],
    ['delete', 'git', '--yes'],
  ])
    expect(await run(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining('"git" is not saved') });
  expect((await run('equip', 'docker')).stdout).toBe('Equipped "docker", from the next start on.\n');
  expect(await equippedNames((await startStdio({ cwd })).client)).toEqual(['docker_ps', 'docker_images']);
});

it('without the control equip there are none', async () => {
  const config = toolsetsToml(THREE).replace('["equip"]', '["activate"]');
  const gateway = await startHttp({ config });
  expect((await gateway.post(initialize(), {}, '/mcp/t/git')).status).toBe(404);
  expect((await runCli(['toolsets'], { config })).stdout).toBe('There are no toolsets.\n');
});
