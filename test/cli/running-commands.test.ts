/** Commands show and change the gateway that runs. They start no second copy of any server. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { type HttpGateway, startHttp } from '../support/gateway.ts';
import { running, waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';

useProcesses('servers');

const rules = `
[[task_rules]]
name = "any"
tools = { git = ["ok"] }

[macros.again]
description = "Calls it"
[[macros.again.steps]]
id = "first"
tool = "git.ok"
`;

/** A project with a server that counts its starts. */
function project() {
  const folder = tempFolder();
  const name = `counted-${process.pid}-${folder.slice(-6)}`;
  const file = join(folder, 'starts');
  const command = server('crash', '--name', name, '--crash-times', file, '0');
  const config = `controls = ["equip"]\n${serversToml({ git: command })}\n[toolsets.few]\ntools = ["git.ok"]\n${rules}`;
  const starts = () => (existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0);
  return { config, starts, processes: () => running(name).length, env: { HOME: tempFolder() } };
}

/** Every command, with a text of its result. */
const COMMANDS: readonly (readonly [readonly string[], RegExp])[] = [
  [['list'], /git_ok/],
  [['list', 'servers'], /^git +stdio +up/m],
  [['list', 'toolsets'], /few/],
  [['list', 'tools', '--stats'], /NAME|Nothing has been called yet/],
  [['search', 'ok'], /git_ok/],
  [['search', '--examples'], /There are no examples/],
  [['macros'], /git\.ok/],
  [['lock', 'approve'], /^tools\.lock has 1 server, \d+ changes approved/],
  [['lock', 'status'], /^1 server as in tools\.lock/],
  [['lock', 'diff', 'git'], /^1 server as in tools\.lock/],
  [['call', 'git_ok'], /^\d+\n$/],
  [['toolsets'], /few/],
  [['toolsets', 'show', 'few'], /git\.ok/],
  [['toolsets', 'create', 'made', 'git.half'], /Saved "made" with 1 tool/],
  [['toolsets', 'edit', 'made', '--add', 'git.ok'], /Saved "made" with 2 tools/],
  [['toolsets', 'rename', 'made', 'kept'], /Renamed "made" to "kept"/],
  [['toolsets', 'equip', 'kept'], /Equipped "kept" in 1 running gateway, for clients that have not chosen/],
  [['toolsets', 'unequip'], /Unequipped in 1 running gateway/],
  [['toolsets', 'delete', 'kept', '--yes'], /Deleted "kept"/],
  [['approvals'], /Nothing waits/],
  [['plan', '--description', 'anything'], /git/],
  [['explain', 'git_ok', '--agent', 'ci'], /allowed/],
  [['audit', 'tail'], /git_ok/],
  [['doctor'], /gateway: toolgate serve runs since .*\n[\s\S]*git: up, 3 tools/],
  [['status'], /git +stdio +up/],
];

describe('commands at a running gateway', () => {
  it('ask it, say nothing on standard error, and start no server', async () => {
    const { config, starts, processes, env } = project();
    const { cwd } = await startHttp({ config, env });
    await waitFor(() => starts() === 1);
    for (const [args, result] of COMMANDS) {
      const { code, stdout, stderr } = await runCli(args, { cwd, env, keepsNote: true });
      expect([code, stderr], args.join(' ')).toEqual([0, '']);
      expect(stdout, args.join(' ')).toMatch(result);
      expect([starts(), processes()], args.join(' ')).toEqual([1, 1]);
    }
  });

  it('ask the one at --url, also from another folder', async () => {
    const { config, starts, processes, env } = project();
    const { origin } = await startHttp({ config, env });
    const remote = COMMANDS.filter(
      ([[command, verb]]) => command !== 'audit' && command !== 'doctor' && verb !== 'tools',
    );
    for (const [args, result] of remote) {
      const { code, stdout, stderr } = await runCli([...args, '--url', origin], { env, keepsNote: true });
      expect([code, stderr], args.join(' ')).toEqual([0, '']);
      expect(stdout, args.join(' ')).toMatch(result);
    }
    expect([starts(), processes()]).toEqual([1, 1]);
    const other = await runCli(['list', '--url', origin], { env: { HOME: tempFolder() } });
    expect([other.code, other.stdout]).toEqual([2, '']);
    expect(other.stderr).toContain(`The gateway at ${origin} has another operator key. Set TOOLGATE_OPERATOR_KEY`);
  });

  it('say on standard error that none runs, start the servers for a moment, and print the same', async () => {
    const { config, starts, processes, env } = project();
    const cwd = tempFolder();
    const one = async (args: readonly string[]) => runCli(args, { cwd, config, env, keepsNote: true });
    const alone = [
      ['list', '--json'],
      ['toolsets', '--json'],
      ['explain', 'git_ok', '--agent', 'ci', '--json'],
    ] as const;
    const before: string[] = [];
    for (const [i, args] of alone.entries()) {
      const { code, stdout, stderr } = await one(args);
      expect([code, starts(), processes()]).toEqual([0, i + 1, 0]);
      expect(stderr).toMatch(/^No gateway runs with .*tools\.toml: the servers are started for this command\.\n$/);
      before.push(stdout);
    }
    await startHttp({ cwd, env });
    for (const [i, args] of alone.entries()) expect((await one(args)).stdout).toBe(before[i]);
  });

  it('see edits that were saved the moment before, and doctor waits for servers that are starting', async () => {
    const { config, env } = project();
    const { cwd } = await startHttp({ config, env });
    const edit = (change: (text: string) => string) => {
      const file = join(cwd, 'tools.toml');
      writeFileSync(file, change(readFileSync(file, 'utf8')));
    };
    const said = async (...args: string[]) => (await runCli(args, { cwd, env })).stdout;
    edit((text) => `${text}\n[agent_policies.ci]\ntool_overrides = { git = ["half"] }\n`);
    expect(await said('explain', 'git_ok', '--agent', 'ci')).toContain('denied');
    edit((text) => `${text}\n${serversToml({ late: server('basic', '--name', 'late', '--slow-start', '700') })}`);
    expect(await said('doctor')).toMatch(/✓ late: up, \d+ tools?/);
    edit((text) => text.replace('["half"] }', '["ok"] }'));
    expect(await said('call', 'git_ok', '--agent', 'ci')).toMatch(/^\d+\n$/);
    mkdirSync(join(cwd, '.toolgate', 'tools', 'notes'), { recursive: true });
    writeFileSync(join(cwd, '.toolgate', 'tools', 'notes', 'hello.py'), 'tools = []\n');
    expect(await said('status')).toMatch(/^ +notes +folder/m);
    rmSync(join(cwd, '.toolgate', 'tools', 'notes'), { recursive: true });
    expect(await said('status')).not.toMatch(/^ +notes +folder/m);
  });

  it('report what is wrong in the words of the gateway', async () => {
    const { config, env } = project();
    const { cwd } = await startHttp({ config, env });
    const failing = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCli(args, { cwd, env });
      expect([code, stdout]).toEqual([2, '']);
      return stderr;
    };
    expect(await failing('toolsets', 'show', 'fe')).toContain('There is no toolset "fe". Did you mean "few"?');
    expect(await failing('toolsets', 'create', 'other', 'git.okk')).toContain(
      'Nothing was saved: there is no tool "git.okk"',
    );
    expect(await failing('explain', 'git_okk', '--agent', 'ci')).toContain('git_okk');
    expect(await failing('plan', '--profile', 'none')).toContain('There is no task profile "none"');
  });
});

describe('toolgate toolsets equip at a running gateway', () => {
  const config = `controls = ["equip"]\n${serversToml({ git: server('basic', '--name', 'git', '--tools', 'a,b') })}
[toolsets.first]\ntools = ["git.a"]\n[toolsets.second]\ntools = ["git.b"]\n`;

  async function open() {
    const env = { HOME: tempFolder() };
    const gateway = await startHttp({ config: `${config}\n[http]\ntrust_agent_header = true\n`, env });
    const equip = (...args: string[]) => runCli(['toolsets', 'equip', ...args], { cwd: gateway.cwd, env });
    const ids = async () => {
      const { stdout } = await runCli(['status', '--json'], { cwd: gateway.cwd, env });
      const { clients } = (JSON.parse(stdout) as { gateways: [{ clients: { id: string; agent: string }[] }] })
        .gateways[0];
      return clients;
    };
    return { gateway, equip, ids };
  }

  async function connectAs(gateway: HttpGateway, agent: string) {
    const { client, changes } = await gateway.connect({ headers: { 'x-agent-id': agent } });
    const tools = async () =>
      (await client.listTools()).tools.map(({ name }) => name).filter((name) => name.startsWith('git_'));
    await tools();
    return { client, tools, changes: () => changes('tools') };
  }

  it('is for clients that have not chosen themselves, and tells them', async () => {
    const { gateway, equip } = await open();
    const ann = await connectAs(gateway, 'ann');
    const bob = await connectAs(gateway, 'bob');
    await bob.client.callTool({ name: 'equip-toolset', arguments: { name: 'second' } });
    expect((await equip('first')).code).toBe(0);
    await waitFor(() => ann.changes() === 1);
    expect([await ann.tools(), await bob.tools()]).toEqual([['git_a'], ['git_b']]);
  });

  it('is for an agent, a session or all, if that is said', async () => {
    const { gateway, equip, ids } = await open();
    const ann = await connectAs(gateway, 'ann');
    const bob = await connectAs(gateway, 'bob');
    const done = await equip('first', '--agent', 'ann');
    expect(done.stdout).toBe('Equipped "first" in 1 running gateway, for 1 connected client.\n');
    await waitFor(() => ann.changes() === 1);
    expect([await ann.tools(), await bob.tools()]).toEqual([['git_a'], []]);

    const { id } = (await ids()).find(({ agent }) => agent === 'bob')!;
    expect((await equip('second', '--session', id)).code).toBe(0);
    await waitFor(() => bob.changes() === 1);
    expect([await ann.tools(), await bob.tools()]).toEqual([['git_a'], ['git_b']]);

    expect((await equip('second', '--all')).stdout).toContain('for 2 connected clients, and for new ones');
    await waitFor(() => ann.changes() === 2);
    expect([await ann.tools(), await (await connectAs(gateway, 'eve')).tools()]).toEqual([['git_b'], ['git_b']]);
  });

  it('says so if nobody is meant', async () => {
    const { gateway, equip } = await open();
    await connectAs(gateway, 'ann');
    const failure = async (...args: string[]) => {
      const { code, stderr } = await equip(...args);
      expect(code).toBe(2);
      return stderr;
    };
    expect(await failure('first', '--agent', 'nobody')).toContain('No client of agent "nobody" is connected');
    expect(await failure('first', '--session', 'x')).toContain(
      'No client "x" is connected. toolgate status shows who is',
    );
    expect(await failure('first', '--session', 'x', '--all')).toContain('Give one of --agent, --session and --all');
    await gateway.stop();
    expect(await failure('first', '--agent', 'ann')).toContain('No gateway runs with this configuration');
  });
});
