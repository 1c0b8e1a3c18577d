/** `toolgate doctor` about names and patterns that match nothing, and about what was saved. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { runDoctor, runDoctorIn } from '../support/doctor.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const FS = serversToml({ fs: server('basic', '--tools', 'read_file,write_file') });

/** Examines these lines with the server `fs`, and files in the data folder. */
async function examine(lines: string, data: Record<string, string> = {}) {
  const files = Object.fromEntries(Object.entries(data).map(([name, text]) => [`.toolgate/${name}`, text]));
  const { code, wrong } = await runDoctorIn(tempFolder({ 'tools.toml': `${lines}\n${FS}`, ...files }));
  return { code, wrong: wrong.map(({ level, about, message }) => `${level} ${about}: ${message}`) };
}

describe('toolgate doctor warns, with the exit code 1, of a name or pattern that matches nothing', () => {
  it.each([
    [
      'active_toolsets = ["sf_*"]',
      'active_toolsets: active_toolsets has "sf_*", which matches nothing. Did you mean "fs_*"?',
    ],
    [
      'active_toolsets = ["fs"]',
      'active_toolsets: active_toolsets has "fs", which matches nothing. Did you mean "fs_*"?',
    ],
    ['active_toolsets = ["fs_raed_file"]', 'Did you mean "fs_read_file"'],
    [
      '[toolsets.x]\ntools = ["fs.raed_file"]',
      'toolset x: it has "fs.raed_file", which matches nothing. Did you mean "fs.read_file"',
    ],
    ['[toolsets.x]\ntools = ["nosrv.*"]', 'toolset x: it has "nosrv.*", which matches nothing.'],
    ['[toolsets.x]\ntools = ["fs"]', 'Did you mean "fs.*"?'],
    [
      '[exposed_tools]\nfs = ["raed_file"]',
      'policy: exposed_tools.fs lists "raed_file", which the server does not offer. Did you mean "read_file"',
    ],
    [
      '[exposed_tools]\nsf = ["*"]',
      'policy: exposed_tools names the server "sf", which does not exist. Did you mean "fs"?',
    ],
    [
      '[[conditions]]\ntools = ["fs.writ_*"]\ndays = ["mon"]',
      'policy: conditions[0] has "fs.writ_*", which matches nothing.',
    ],
    [
      '[security.dangerous_tools]\nfs = ["wipe"]',
      'security: security.dangerous_tools has "fs.wipe", which matches nothing.',
    ],
    [
      '[[security.confirm]]\ntools = ["fs.wipe"]',
      'security: security.confirm[0] has "fs.wipe", which matches nothing.',
    ],
    ['[[security.grants]]\ntools = ["fs.wipe"]', 'security: security.grants[0] has "fs.wipe", which matches nothing.'],
    [
      '[default_policy.tool_limits."fs.raed_file"]\nrate = "5/s"',
      'limits: default_policy.tool_limits has "fs.raed_file", which matches nothing.',
    ],
    [
      '[agent_policies.a.tool_limits."fs.raed_file"]\nrate = "5/s"',
      'limits: agent_policies.a.tool_limits has "fs.raed_file"',
    ],
  ])('%s', async (lines, message) => {
    const { code, wrong } = await examine(lines);
    expect(wrong).toEqual([expect.stringContaining(message)]);
    expect([code, wrong[0]]).toEqual([1, expect.stringMatching(/^warning /)]);
  });

  it('in the limits of a server', async () => {
    const { code, wrong } = await runDoctor(`${FS}tools.raed_file = { rate = "5/s" }\n`);
    expect([code, wrong[0]?.message]).toEqual([
      1,
      'the limits in tools of server "fs" are for "raed_file", which the server does not offer. Did you mean "read_file" or "write_file"?',
    ]);
  });

  it('but not of one that may mean a server that is down or disabled', async () => {
    const lines = `active_toolsets = ["off_*", "fs_*", "down_?"]
[toolsets.x]
tools = ["off.tool", "down.*"]
[agent_policies.a]
allowed_servers = ["off", "fs"]
tool_overrides = { off = ["anything"] }
[servers.off]
command = "none"
enabled = false
[servers.down]
command = "no-such-program"
[servers.fs]
command = ${JSON.stringify(server('basic'))}`;
    const { wrong } = await runDoctor(lines);
    expect(wrong.map(({ about }) => about)).toEqual(['down']);
  });

  it('and says nothing of rules that match', async () => {
    const lines = `active_toolsets = ["fs_*", "category:read", "*"]
[toolsets.x]
tools = ["fs.read_file", "fs_write_file", "fs.*"]
[security.dangerous_tools]
fs = ["write_*"]
[exposed_tools]
"f*" = ["read_*"]`;
    expect(await examine(lines)).toEqual({ code: 0, wrong: [] });
  });
});

describe('toolgate doctor about who approves', () => {
  it.each(['client', 'any'])('warns that an agent can approve its own calls over HTTP with "%s"', async (approvers) => {
    const lines = `[security]\napprovers = "${approvers}"\n[http]\nport = 0`;
    const { code, wrong } = await examine(lines);
    expect([code, wrong]).toEqual([
      1,
      [expect.stringMatching(/^warning security\.approvers: an agent over HTTP can approve its own calls/)],
    ]);
  });

  it('does not warn where nothing points to HTTP: on stdio the client is the person at it', async () => {
    expect(await examine('[security]\napprovers = "any"')).toEqual({ code: 0, wrong: [] });
  });

  it('says nothing by default, and of "operator"', async () => {
    expect(await examine('')).toEqual({ code: 0, wrong: [] });
    expect(await examine('[security]\napprovers = "operator"')).toEqual({ code: 0, wrong: [] });
  });
});

describe('toolgate doctor about what was saved', () => {
  it('warns of a saved toolset that names unknown things', async () => {
    const toolset = { name: 'dev', tools: [{ namespacedName: 'fs.raed_file' }, { namespacedName: 'fs.read_file' }] };
    const { code, wrong } = await examine('', { 'toolsets/dev.json': JSON.stringify(toolset) });
    expect([code, wrong]).toEqual([
      1,
      [
        'warning toolset dev: it has "fs.raed_file", which matches nothing. Did you mean "fs.read_file" or "fs.write_file"?',
      ],
    ]);
  });

  it.each([
    ['toolsets/dev.json', '{"tools": 1}', 'broken toolsets: '],
    ['toolsets/dev.json', '{', 'broken toolsets: '],
    ['agents.json', '{', 'broken agents: '],
    ['equipped.json', '{"equipp', 'broken data folder: '],
    ['usage.json', 'x', 'broken data folder: '],
    ['approvals/a.json', 'x', 'broken data folder: '],
    ['secrets.meta.yaml', 'global: [', 'broken secrets: '],
  ])('exits 2 if %s is damaged', async (file, text, start) => {
    const { code, wrong } = await examine('', { [file]: text });
    expect([code, wrong]).toEqual([2, [expect.stringContaining(start)]]);
    expect(wrong[0]).toContain(file);
  });

  it('warns of a damaged offer, which is written again', async () => {
    const { code, wrong } = await examine('', { 'offers/0123.json': '{"tools":' });
    expect([code, wrong]).toEqual([1, [expect.stringMatching(/offers\/0123\.json is damaged \(it is not JSON\)\./)]]);
  });

  it('warns of a data folder that cannot be written', async () => {
    const cwd = tempFolder({ 'tools.toml': `data_dir = "file/data"\n${FS}`, file: '' });
    const { code, wrong } = await runDoctorIn(cwd);
    expect([code, wrong.map(({ about }) => about)]).toEqual([1, ['data folder', 'tools']]);
    expect(wrong[0]?.message).toContain(`${join(cwd, 'file/data')} cannot be written (ENOTDIR): no toolset`);
  });
});

describe('tool files and folders that cannot be served', () => {
  function project() {
    const tool = 'export const ok = { description: "Fine", inputSchema: { type: "object" }, execute: () => "ok" };\n';
    const cwd = tempFolder({
      'tools.toml': 'controls = []\n',
      '.toolgate/tools/half/good.ts': tool,
      '.toolgate/tools/half/bad.ts': 'import "not-there";\nexport const gone = 1;\n',
      '.toolgate/tools/half/worse.ts': 'throw new Error("as told");\n',
      '.toolgate/tools/Wrong_Name/a.ts': tool,
      'elsewhere/a.ts': tool,
    });
    symlinkSync(join(cwd, 'elsewhere'), join(cwd, '.toolgate/tools/linked'));
    return cwd;
  }

  it('are warnings of doctor', async () => {
    const { code, wrong } = await runDoctorIn(project());
    expect(code).toBe(1);
    expect(wrong.map(({ about, message }) => `${about}: ${message}`)).toEqual([
      expect.stringMatching(/^half: bad\.ts:1: .*not-there/),
      expect.stringMatching(/^half: worse\.ts:1: .*as told/),
      expect.stringMatching(/^Wrong_Name: "Wrong_Name" in .* is ignored/),
      expect.stringMatching(/^linked: "linked" in .* is ignored: it is a link/),
    ]);
  });

  it('are listed with their servers and namespaces', async () => {
    const cwd = project();
    const before = JSON.parse((await runCli(['namespaces', 'list', '--json'], { cwd })).stdout) as Listed[];
    expect(before).toMatchObject([{ name: 'half', state: 'new', problems: [] }]);
    const { stdout } = await runCli(['list', 'servers'], { cwd });
    expect(stdout).toMatch(/^half .*\n +! bad\.ts:1: .*\n +! worse\.ts:1: /);
    const [half] = JSON.parse((await runCli(['list', 'servers', '--json'], { cwd })).stdout) as Listed[];
    expect(half).toMatchObject({ problems: [{ file: 'bad.ts' }, { file: 'worse.ts', message: 'as told' }] });
    const after = JSON.parse((await runCli(['namespaces', 'list', '--json'], { cwd })).stdout) as Listed[];
    expect(after).toMatchObject([
      { name: 'half', state: 'problems', problems: [expect.stringMatching(/^bad\.ts:1: /), 'worse.ts:1: as told'] },
    ]);
    mkdirSync(join(cwd, '.toolgate/tools/other'));
    writeFileSync(join(cwd, '.toolgate/tools/other/a.ts'), 'export {};\n');
    expect((await runCli(['namespaces', 'list', 'other'], { cwd })).stdout).toMatch(/^other {2}new /);
  });

  interface Listed {
    readonly problems: readonly unknown[];
  }
});
