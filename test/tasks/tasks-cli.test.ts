/** `toolgate plan`: the configuration that a task needs. */
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { configFromValue, loadConfig, openLocalDoor } from '../../src/index.ts';
import { childEnv } from '../support/child.ts';
import { atEnd } from '../support/cleanup.ts';
import { runCli } from '../support/cli.ts';
import { createGateway } from '../support/in-process-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { exposed, TOOLS } from './servers.ts';

const files = server('basic', '--name', 'files', '--tools', TOOLS.filesystem!.join(','));
const memory = server('basic', '--name', 'memory', '--tools', TOOLS.memory!.join(','));
const CONFIG = `active_toolsets = []\n${serversToml({ files, memory })}`;
const RESEARCH = exposed({ files: ['read_file', 'search_files'], memory: ['create_memories', 'search_memories'] });

/** What agents see with the configuration in this file. */
async function toolsIn(cwd: string, file: string, agent = 'default'): Promise<string[]> {
  const gateway = createGateway(await loadConfig({ cwd, env: childEnv({ API_KEY: 'x' }), path: file }));
  atEnd(() => gateway.close());
  await gateway.tried();
  const names = [...openLocalDoor(gateway, 'default', agent).caller.view().entries.tool.keys()].sort();
  await gateway.close();
  return names;
}

describe('toolgate plan', () => {
  it('prints TOML, JSON and a ConfigMap, which all serve exactly what the task needs', async () => {
    const cwd = tempFolder({ 'tools.toml': CONFIG });
    const toml = await runCli(['plan', '--type', 'research'], { cwd });
    expect(toml).toMatchObject({ code: 0, stderr: '' });
    expect(toml.stdout).toContain('# files.read_file: profile "research"\n');
    const json = await runCli(['plan', '--type', 'research', '--format', 'json'], { cwd });
    expect(JSON.parse(json.stdout)).toMatchObject({
      exposed_tools: { files: ['read_file', 'search_files'], memory: ['create_memories', 'search_memories'] },
      default_policy: { allow_unknown_tools: false },
    });
    const map = await runCli(['plan', '--type', 'research', '--service', 'Shop API!', '--format', 'configmap'], {
      cwd,
    });
    const { kind, metadata, data } = parseYaml(map.stdout) as {
      kind: string;
      metadata: { name: string };
      data: Record<string, string>;
    };
    expect([kind, metadata.name]).toEqual(['ConfigMap', 'toolgate-shop-api']);
    writeFiles(cwd, { 'a.toml': toml.stdout, 'b.json': json.stdout, 'c.toml': data['toolgate.toml']! });
    expect(await toolsIn(cwd, 'a.toml')).toEqual(RESEARCH);
    expect(await toolsIn(cwd, 'b.json')).toEqual(RESEARCH);
    expect(await toolsIn(cwd, 'c.toml')).toEqual(
      [...RESEARCH, 'files_create_directory', 'files_list_directory'].sort(),
    );
  });

  it('gives no agent more than the full configuration does', async () => {
    const policies = `
[exposed_tools]
files = ["read_*"]
[agent_policies.writer]
tool_overrides = { "f*" = ["write_file", "search_files", "delete_file"] }
[agent_policies.outsider]
allowed_servers = ["memory"]
`;
    const cwd = tempFolder({ 'tools.toml': CONFIG + policies });
    const { stdout } = await runCli(['plan', '--type', 'research'], { cwd });
    writeFiles(cwd, { 'plan.toml': stdout });
    expect(await toolsIn(cwd, 'plan.toml')).toEqual(['files_read_file']);
    expect(await toolsIn(cwd, 'plan.toml', 'writer')).toEqual(['files_search_files']);
    expect(await toolsIn(cwd, 'plan.toml', 'outsider')).toEqual([]);
    const open = tempFolder({ 'tools.toml': `${CONFIG}[default_policy]\nallow_unknown_tools = true\n` });
    const planned = await runCli(['plan', '--type', 'research', '--format', 'json'], { cwd: open });
    expect(JSON.parse(planned.stdout).default_policy).toEqual({ allow_unknown_tools: false });
  });

  it('leaves out servers that the task does not need, and prints variables instead of secrets', async () => {
    const env = `env = { API_KEY = "sk-very-secret", LEVEL = "1" }`;
    const cwd = tempFolder({ 'toolgate.toml': `${serversToml({ memory, files })}${env}` });
    const { stdout, stderr } = await runCli(['plan', '--type', 'analysis', '--offline'], { cwd });
    expect(stdout).not.toMatch(/memory|sk-very-secret/);
    expect(stdout).toContain('API_KEY = "${API_KEY}"');
    expect(stdout).toContain('files.list_directory: profile "analysis" (not checked');
    expect(stderr).toContain('Set API_KEY in the environment');
    writeFiles(cwd, { 'plan.toml': stdout });
    expect(await toolsIn(cwd, 'plan.toml')).toEqual(exposed({ files: ['list_directory', 'read_file'] }));
  });

  it('explains the plan as JSON, and reports names in your own rules that do not exist', async () => {
    const rule = `
[[task_rules]]
name = "tidy"
keywords = ["tidy up"]
tools = { files = ["move_fil"], memory = ["delete_*"] }
`;
    const cwd = tempFolder({ 'tools.toml': CONFIG + rule, 'task.json': '{"description":"Now TIDY  up!"}' });
    const { stdout } = await runCli(['plan', '--task', 'task.json', '--json'], { cwd });
    const plan = JSON.parse(stdout) as { tools: { name: string; reasons: string[] }[]; missing: string[] };
    expect(plan.tools.map(({ name }) => name).sort()).toEqual(
      exposed({ files: ['read_file', 'write_file'], memory: ['delete_memories'] }),
    );
    expect(plan.tools.find(({ name }) => name === 'memory_delete_memories')?.reasons).toEqual([
      'rule "tidy": the description says "tidy up"',
    ]);
    expect(plan.missing).toEqual([expect.stringContaining('"move_fil" of "files"')]);
    expect(plan.missing[0]).toContain('Did you mean "move_file"?');
  });

  it.each([
    [[], /Which task\?/],
    [['--type', 'api', '--format', 'xml'], /--format is one of toml, json, configmap/],
    [['--profile', 'reserch'], /no task profile "reserch". Did you mean "research"\?/],
    [['--task', 'none.toml'], /none.toml: there is no such file/],
    [['--task', 'bad.toml'], /bad.toml has an unknown key "servce". Did you mean "service"\?/],
    [['--type', 'api', '--name', 'No Name'], /not a valid ConfigMap name/],
  ])('refuses %j with a reason', async (args, why) => {
    const files = { 'bad.toml': 'servce = "x"\n' };
    const { code, stderr } = await runCli(['plan', ...args], { config: CONFIG, files });
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)]);
  });
});

describe('rules with mistakes', () => {
  const load = (value: object) => () => configFromValue(value, { cwd: tempFolder(), env: {} });

  it.each([
    [{ task_rules: [{ name: 'a' }] }, /task_rules\[0\]: adds nothing/],
    [{ task_rules: [{ name: 'a', tools: {}, keyword: ['x'] }] }, /unknown key. Did you mean "keywords"\?/],
    [{ task_rules: [{ name: 'a', profiles: ['none'] }] }, /there is no profile "none"/],
    [{ task_rules: [{ name: 'a', tools: {}, keywords: ['-'] }] }, /keywords\[0\]: contains no word/],
    [{ task_rules: [1, 2].map(() => ({ name: 'a', tools: {} })) }, /another rule is called "a" already/],
    [{ task_profiles: { a: { tools: { git: 'x' } } } }, /task_profiles.a.tools.git: expected a list of strings/],
    [{ task_rule_files: ['more.toml'] }, /only "default" can be named in code/],
    [{ task_rule_files: [], task_rules: [{ name: 'a', profiles: ['research'] }] }, /there is no profile "research"/],
  ])('%j', (value, why) => {
    expect(load(value)).toThrow(why);
  });

  it('are reported with the rule file and the line', async () => {
    const cwd = tempFolder({
      'tools.toml': 'task_rule_files = ["default", "more.toml"]\n',
      'more.toml': '[[task_rules]]\nname = "a"\ntols = {}\n',
    });
    await expect(loadConfig({ cwd, env: {} })).rejects.toThrow(
      /more.toml:3: task_rules\[0\].tols: unknown key. Did you mean "tools"\?/,
    );
  });

  it('suggest the keys of a rule file, not those of a configuration', async () => {
    const cwd = tempFolder({
      'tools.toml': 'task_rule_files = ["more.toml"]\n',
      'more.toml': '[[servers]]\ncommand = "x"\n',
    });
    await expect(loadConfig({ cwd, env: {} })).rejects.toThrow(
      'more.toml:1: servers: unknown key. Known keys: task_rules, task_profiles.',
    );
  });

  it('name the line of the right file if two files have the same name', async () => {
    const cwd = tempFolder({
      'sub/tools.toml': '\n\n\ntask_rule_files = ["sub/tools.toml"]\n',
      'sub/sub/tools.toml': '\ntask_rule_files = []\n',
    });
    await expect(loadConfig({ cwd, env: {}, path: 'sub/tools.toml' })).rejects.toThrow(
      'sub/tools.toml:2: task_rule_files: unknown key.',
    );
  });
});
