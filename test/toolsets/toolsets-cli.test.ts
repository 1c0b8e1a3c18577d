/** `toolgate toolsets`. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startStdio } from '../support/gateway.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { equippedNames, THREE, toolsetsToml } from '../support/toolsets.ts';

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
    expect((await run('create', 'dev', 'git.*', 'docker_ps', '--description', 'Daily')).stdout).toBe(
      'Saved "dev" with 4 tools.\n',
    );
    expect(JSON.parse((await run('list', '--json')).stdout)).toMatchObject([
      { name: 'fixed', place: 'configuration' },
      { name: 'dev', place: 'project', description: 'Daily' },
      { name: 'all', place: 'implicit' },
      { name: 'git', place: 'implicit' },
      { name: 'docker', place: 'implicit' },
      { name: 'linear', place: 'implicit' },
    ]);
    await run('edit', 'dev', '--remove', 'git.log', '--remove', 'git.commit', '--add', 'linear.create_issue');
    const shown = JSON.parse((await run('show', 'dev', '--json')).stdout);
    expect(shown.available.map(({ exposed }: { exposed: string }) => exposed)).toEqual([
      'git_status',
      'docker_ps',
      'linear_create_issue',
    ]);
    expect((await run('equip', 'dev')).code).toBe(0);
    const { client } = await startStdio({ config, cwd });
    expect(await equippedNames(client)).toEqual(['git_status', 'docker_ps', 'linear_create_issue']);
    expect((await run('delete', 'dev')).stderr).toContain('--yes');
    expect((await run('delete', 'dev', '--yes')).code).toBe(0);
    expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(false);
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

describe('several toolgate processes saving toolsets at once', () => {
  it('exactly one wins if they use the same name, and the others leave nothing behind', async () => {
    const { cwd, run } = project(true);
    const tools = ['git.status', 'git.log', 'git.commit', 'docker.ps'];
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
    const names = ['one', 'two', 'three', 'four'];
    const runs = await Promise.all(names.map((name) => run('create', name, 'git.status')));
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect(readdirSync(join(cwd, '.toolgate/toolsets')).sort()).toEqual(names.map((name) => `${name}.json`).sort());
  });
});
