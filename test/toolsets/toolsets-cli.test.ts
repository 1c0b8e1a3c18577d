/** `toolgate toolsets`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { control, equippedNames, THREE, toolsetsToml } from '../support/toolsets.ts';
import { some } from '../support/wide.ts';

const config = toolsetsToml(THREE, '[toolsets.fixed]\ntools = ["git.status"]\n');

function project(isProcess?: true) {
  const cwd = tempFolder();
  const home = tempFolder();
  writeFiles(cwd, { 'tools.toml': config });
  const run = (...args: string[]) =>
    runCli(['toolsets', ...args], { cwd, env: { HOME: home, NO_COLOR: '1' }, process: isProcess });
  return { cwd, home, run };
}

describe('toolgate toolsets', () => {
  it('creates, lists, shows, edits, equips and deletes a toolset', async () => {
    const { cwd, run } = project();
    expect((await run('create', 'dev', 'git.s*', 'git.log', 'docker_ps', '--description', 'Daily')).stdout).toBe(
      'Saved "dev" with 3 tools.\n',
    );
    expect(JSON.parse((await run('list', '--json')).stdout)).toMatchObject([
      { name: 'fixed', place: 'configuration' },
      { name: 'dev', place: 'project', description: 'Daily' },
      { name: 'all', place: 'implicit' },
      { name: 'git', place: 'implicit' },
      { name: 'docker', place: 'implicit' },
      { name: 'linear', place: 'implicit' },
    ]);
    expect((await run('edit', 'dev', '--remove', 'git.status')).stderr).toContain('is in "dev" through "git.s*"');
    expect((await run('edit', 'dev', '--remove', 'git.commit')).stderr).toContain('does not have "git.commit"');
    await run('edit', 'dev', '--remove', 'git_log', '--add', 'linear.create_issue');
    const shown = JSON.parse((await run('show', 'dev', '--json')).stdout);
    expect(shown.available.map(({ exposed }: { exposed: string }) => exposed)).toEqual([
      'git_status',
      'docker_ps',
      'linear_create_issue',
    ]);
    expect((await run('equip', 'dev')).stdout).toBe('Equipped "dev", from the next start on.\n');
    expect((await run()).stdout).toMatch(/^ {2}fixed .*\n\* dev /);
    expect((await run('rename', 'dev', 'daily')).stdout).toBe('Renamed "dev" to "daily".\n');
    expect(JSON.parse((await run('list', '--json')).stdout)).toMatchObject([
      { name: 'fixed', equipped: false },
      { name: 'daily', equipped: true },
      ...[{}, {}, {}, {}],
    ]);
    const { client } = await startStdio({ config, cwd });
    expect(await equippedNames(client)).toEqual(['git_status', 'docker_ps', 'linear_create_issue']);
    expect((await run('delete', 'daily')).stderr).toContain('--yes');
    expect((await run('delete', 'daily', '--yes')).code).toBe(0);
    expect(readdirSync(join(cwd, '.toolgate/toolsets'))).toEqual([]);
  });

  it('saves to the user folder with --user, and a project toolset of the same name takes precedence', async () => {
    const { home, cwd, run } = project();
    await run('create', 'dev', 'git.status', '--user');
    expect(readFileSync(join(home, '.config/toolgate/toolsets/dev.json'), 'utf8')).toContain('git.status');
    await run('create', 'dev', 'git.log');
    expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(true);
    const shown = JSON.parse((await run('show', 'dev', '--json')).stdout);
    expect(shown.tools).toMatchObject([{ namespacedName: 'git.log' }]);
  });

  it.each([
    [['create', 'dev', 'git.stauts'], /Did you mean "git\.status"/],
    [['create', 'Dev!', 'git.status'], /needs a name/],
    [['create', 'dev'], /needs a name/],
    [['create', 'fixed', 'git.log'], /is part of the configuration/],
    [['show', 'nothing'], /no toolset "nothing"/],
    [['equip', 'fixd'], /Did you mean "fixed"/],
    [['equip'], /needs one name/],
    [['rename', 'fixed', 'other'], /is part of the configuration/],
    [['rename', 'dev', 'Dev!'], /a new one of 2 to 50/],
    [['edit', 'nothing', '--add', 'git.log'], /no toolset "nothing"/],
    [['shwo'], /Did you mean "show"/],
  ])('%j fails with a clear error', async (args, message) => {
    const { run } = project();
    const { code, stderr } = await run(...args);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

it('--equip-toolset equips the toolset at startup, and reports an unknown toolset', async () => {
  const { client } = await startStdio({ config, args: ['--equip-toolset', 'fixed'] });
  expect(await equippedNames(client)).toEqual(['git_status']);
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': config });
  const { code, stderr } = await runCli(['stdio', '--equip-toolset', 'none'], { cwd });
  expect(code).toBe(2);
  expect(stderr).toContain('There is no toolset "none"');
});

describe('without the control equip', () => {
  const plain = config.replace('["equip"]', '[]');
  const configured = /Set controls = \["equip"\] in .*tools\.toml/;

  it.each([[['toolsets', 'equip', 'fixed']], [['serve', '--port', '0', '--equip-toolset', 'fixed']]])(
    '%j is refused and says what to configure',
    async (args) => {
      const cwd = tempFolder();
      writeFiles(cwd, { 'tools.toml': plain });
      const { code, stderr } = await runCli(args, { cwd });
      expect(code).toBe(2);
      expect(stderr).toMatch(configured);
      expect(existsSync(join(cwd, '.toolgate/equipped.json'))).toBe(false);
    },
  );
});

describe('a command while a gateway runs', () => {
  const notChosen = ['git_status'];

  it.each([
    ['toolsets equip', ['toolsets', 'equip', 'fixed'], /^Equipped "fixed" in 1 running gateway/],
    ['call equip-toolset', ['call', 'equip-toolset', 'name=fixed'], /Equipped \\?"fixed\\?": 1 tool/],
  ])('%s equips for its clients that have not chosen themselves, and for the next start', async (_, args, said) => {
    const env = { HOME: tempFolder() };
    const gateway = await startHttp({ config, env });
    const { cwd } = gateway;
    const [one, other] = [await gateway.connect(), await gateway.connect()];
    await control(other.client, 'equip-toolset', { name: 'docker' });
    await one.client.listTools();
    const { stdout, code } = await runCli(args, { cwd, env });
    expect(stdout).toMatch(said);
    expect(code).toBe(0);
    await waitFor(() => one.changes('tools') === 1);
    expect(await equippedNames(one.client)).toEqual(notChosen);
    expect(await equippedNames(other.client)).toEqual(['docker_ps', 'docker_images']);
    expect(JSON.parse(readFileSync(join(cwd, '.toolgate/equipped.json'), 'utf8'))).toEqual({ equipped: 'fixed' });
    expect((await runCli(['toolsets', 'unequip'], { cwd, env })).stdout).toContain('Unequipped in 1');
    await waitFor(() => one.changes('tools') === 2);
  });
});

it('toolgate call equip-toolset without a running gateway is for the next start, and says so', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': config });
  const { code, stderr } = await runCli(['call', 'equip-toolset', 'name=fixed'], { cwd, keepsNote: true });
  expect(code).toBe(0);
  expect(stderr).toMatch(/^No gateway runs with .*\n.*What is equipped now is equipped from the next start on/);
  const { client } = await startStdio({ config, cwd });
  expect(await equippedNames(client)).toEqual(['git_status']);
});

it('toolgate call toolman_activate without a running gateway says that nothing lasts', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, { 'tools.toml': config.replace('equip', 'activate') });
  const lists = '{"tools_on":["git_*"],"tools_off":[],"resources_on":[],"resources_off":[]}';
  const { stderr } = await runCli(['call', 'toolman_activate', lists], { cwd });
  expect(stderr).toContain('What was switched lasts no longer than this command');
});

describe('several toolgate processes saving toolsets at once', () => {
  it('exactly one wins if they use the same name, and the others leave nothing behind', async () => {
    const { cwd, run } = project(true);
    const tools = some(['git.status', 'git.log', 'git.commit', 'docker.ps'], ['git.status', 'docker.ps']);
    const runs = await Promise.all(tools.map((tool) => run('create', 'dev', tool)));
    const winners = tools.filter((_, index) => runs[index]!.code === 0);
    expect(winners).toHaveLength(1);
    for (const { code, stderr } of runs) if (code !== 0) expect(stderr).toContain('already');
    const saved = JSON.parse(readFileSync(join(cwd, '.toolgate/toolsets/dev.json'), 'utf8'));
    expect(saved.tools).toMatchObject([{ namespacedName: winners[0] }]);
    expect(readdirSync(join(cwd, '.toolgate/toolsets'))).toEqual(['dev.json']);
  });

  it('all succeed if they use different names', async () => {
    const { cwd, run } = project(true);
    const names = some(['one', 'two', 'three', 'four'], ['one', 'two']);
    const runs = await Promise.all(names.map((name) => run('create', name, 'git.status')));
    expect(runs.map(({ code }) => code)).toEqual(names.map(() => 0));
    expect(readdirSync(join(cwd, '.toolgate/toolsets')).sort()).toEqual(names.map((name) => `${name}.json`).sort());
  });
});
