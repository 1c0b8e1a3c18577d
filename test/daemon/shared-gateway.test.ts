/** Clients on stdio share the gateway of their project, which runs in the background. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { alive, running, waitFor } from '../support/processes.ts';
import { callText, pidOf, toolNames } from '../support/running-gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { tempFolder } from '../support/temp.ts';
import { openProject } from '../support/windows.ts';

useProcesses('servers');

const MARK = `shared-${process.pid}`;
const config = (more = '', servers = serversToml({ a: server('basic', '--name', MARK) })) =>
  `active_toolsets = ["*"]\n${more}\n${servers}`;

describe('ten windows of one project', () => {
  it('started at once, have one gateway and one process of each server, which leave nothing when they are stopped', async () => {
    const project = openProject(config());
    const windows = await Promise.all(
      Array.from({ length: 10 }, (_, i) => project.window({ args: ['--agent', `agent-${i}`] })),
    );
    const pids = await Promise.all(windows.map(({ client }) => pidOf(client, 'a')));
    expect(new Set(pids).size).toBe(1);
    expect(running(MARK)).toEqual([pids[0]]);
    expect(await project.gateways()).toMatchObject([{ windows: 10 }]);
    const pid = await project.pid();
    // They are found by toolgate status.
    const { stdout } = await runCli(['status', '--json'], { cwd: project.cwd, env: project.env, process: false });
    const [found] = (
      JSON.parse(stdout) as { gateways: { pid: number; command: string; clients: { agent: string }[] }[] }
    ).gateways;
    expect(found).toMatchObject({ command: 'daemon', pid });
    expect(found!.clients.map(({ agent }) => agent).sort()).toEqual(windows.map((_, i) => `agent-${i}`));
    // Nobody else can reach it.
    const [socket] = project.left().filter((name) => name.endsWith('.sock'));
    expect(statSync(project.runtime).mode & 0o777).toBe(0o700);
    expect(statSync(join(project.runtime, socket!)).mode & 0o777).toBe(0o600);
    expect((await project.daemon('stop')).stdout).toContain(`Stopped process ${pid}`);
    expect(alive(pid)).toBe(false);
    expect(running(MARK)).toEqual([]);
    expect(project.left()).toEqual([]);
    expect((await project.daemon('status')).code).toBe(1);
  });
});

describe('a shared gateway', () => {
  it('ends by itself when it has had no client for a while', async () => {
    const project = openProject(config('shared_idle = "200ms"'));
    const window = await project.window();
    const pid = await project.pid();
    await window.stop();
    await waitFor(() => !alive(pid));
    await waitFor(() => project.left().length === 0 && running(MARK).length === 0);
  });

  it('writes its log to a file that toolgate daemon status names, and to its windows', async () => {
    const project = openProject(config('', serversToml({ a: server('basic'), b: server('dead') })));
    const window = await project.window();
    await waitFor(() => window.stderr().includes('"source":"b"'), 45_000).catch(async (error: Error) => {
      const [shared] = await project.gateways();
      throw new Error(`${error.message}\nWindow: ${window.stderr()}\nLog: ${readFileSync(shared!.log, 'utf8')}`);
    });
    const { log } = (await project.gateways())[0]!;
    expect((await project.daemon('status')).stdout).toContain(`log: ${log}`);
    expect(readFileSync(log, 'utf8')).toContain('"source":"b"');
    // A window that comes later is told what is wrong.
    const later = await project.window();
    await waitFor(() => later.stderr().includes('"source":"b"'));
  });

  it('can be started before there is a client', async () => {
    const project = openProject(config());
    expect((await project.daemon('start')).stdout).toContain('0 clients');
    const pid = await project.pid();
    await project.daemon('start');
    const { client } = await project.window();
    await callText(client, 'a_echo', { text: 'x' });
    expect(await project.pid()).toBe(pid);
  });
});

describe('a window', () => {
  it('has its own identity, task and toolset', async () => {
    const policy = `[agent_policies.ann]\ntool_overrides = { a = ["*"] }
[agent_policies.bob]\ntool_overrides = { a = ["echo"] }\n`;
    const toolset = '[toolsets.small]\ntools = ["a.echo"]\n';
    const project = openProject(`controls = ["equip"]\n${policy}${toolset}${serversToml({ a: server('basic') })}`);
    const ann = await project.window({ args: ['--agent', 'ann', '--equip-toolset', 'small'] });
    const names = async ({ client }: typeof ann) => (await toolNames(client)).filter((name) => name.startsWith('a_'));
    expect(await names(ann)).toEqual(['a_echo']);
    await ann.client.callTool({ name: 'unequip-toolset', arguments: {} });
    expect(await names(ann)).toEqual([]);
    const bob = await project.window({ args: ['--agent', 'bob'] });
    await bob.client.callTool({ name: 'equip-toolset', arguments: { name: 'a' } });
    expect(await names(bob)).not.toContain('a_count');
    expect(await names(bob)).toContain('a_echo');
    expect(await names(ann)).toEqual([]);
    expect((await project.gateways()).length).toBe(1);
  });

  it('begins with the toolset that a window equipped last', async () => {
    const toolset = '[toolsets.small]\ntools = ["a.echo"]\n';
    const project = openProject(`controls = ["equip"]\n${toolset}${serversToml({ a: server('basic') })}`);
    const first = await project.window();
    await first.client.callTool({ name: 'equip-toolset', arguments: { name: 'small' } });
    const second = await project.window();
    expect(await toolNames(second.client)).toContain('a_echo');
    await project.daemon('stop');
    const third = await project.window();
    expect(await toolNames(third.client)).toContain('a_echo');
  });

  it('says why the gateway cannot start, as without a shared one', async () => {
    const project = openProject('servers = 5');
    const shared = await runCli([], { cwd: project.cwd, env: project.env, input: '', process: true });
    const own = await runCli(['--no-shared'], { cwd: project.cwd, env: project.env, input: '', process: true });
    expect(shared.code).toBe(2);
    expect(shared.stderr).toBe(own.stderr);
    expect(project.left()).toEqual([]);
  });

  it('is refused for an unknown toolset or task file, and the gateway stays', async () => {
    const project = openProject(`controls = ["equip"]\n${serversToml({ a: server('basic') })}`);
    await project.window();
    const start = (...args: string[]) => runCli(args, { cwd: project.cwd, env: project.env, input: '', process: true });
    expect(await start('--equip-toolset', 'nothing')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no toolset "nothing"'),
    });
    expect(await start('--task', 'missing.toml')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('missing.toml'),
    });
    expect(await project.gateways()).toMatchObject([{ windows: 1 }]);
  });

  it('runs nothing of a configuration that nobody has trusted', async () => {
    const project = openProject(config());
    const untrusted = { TOOLGATE_TRUST: '0' };
    const { client } = await project.window({ env: untrusted });
    expect(client.getInstructions()).toContain('toolgate trust');
    expect(running(MARK)).toEqual([]);
    // One that trusts it is not served by the same gateway.
    const trusting = await project.window();
    expect(await callText(trusting.client, 'a_echo', { text: 'x' })).toContain('x');
    expect(await toolNames(client)).not.toContain('a_echo');
  });
});

describe('windows do not share', () => {
  it('if the configuration, the command line or a variable says so', async () => {
    const own = openProject(config('shared = false'));
    const [first, second] = [await own.window(), await own.window()];
    expect(await pidOf(first.client, 'a')).not.toBe(await pidOf(second.client, 'a'));
    expect(own.left()).toEqual([]);
    const project = openProject(config());
    await project.window({ args: ['--no-shared'] });
    await project.window({ env: { TOOLGATE_SHARED: '0' } });
    expect(await project.gateways()).toEqual([]);
  });

  it('if a variable differs that the configuration or a server uses', async () => {
    const uses = `${serversToml({ a: server('basic') })}\n[servers.env]\nWORD = "\${WORD:-none}"\n`;
    const project = openProject(config('', uses));
    const pids: number[] = [];
    const environments: Record<string, string>[] = [
      { WORD: 'one' },
      { WORD: 'two' },
      { WORD: 'one', OTHER: 'x', TERM: 'dumb' },
      { PATH: `${process.env.PATH}:/x` },
    ];
    for (const env of environments) pids.push(await pidOf((await project.window({ env })).client, 'a'));
    expect(pids[2]).toBe(pids[0]);
    expect(new Set(pids).size).toBe(3);
    const text = JSON.stringify(project.left());
    expect(text).not.toContain('one');
  });

  it('in other folders, or with another configuration', async () => {
    const project = openProject(config(), { 'other.toml': config() });
    const pids = [
      await pidOf((await project.window()).client, 'a'),
      await pidOf((await project.window({ args: ['--config', 'other.toml'] })).client, 'a'),
    ];
    expect(new Set(pids).size).toBe(2);
    expect((await project.gateways()).length).toBe(1);
    await runCli(['daemon', 'stop', '--config', 'other.toml'], { cwd: project.cwd, env: project.env, process: false });
  });

  it('if the folder of the sockets could be of somebody else', async () => {
    const project = openProject(config());
    const runtime = tempFolder({ 'toolgate/x': '' });
    writeFileSync(join(runtime, 'toolgate/x'), '');
    const window = await project.window({ env: { XDG_RUNTIME_DIR: runtime } });
    await callText(window.client, 'a_echo', { text: 'x' });
    // It was made private before anything was put into it.
    expect(statSync(join(runtime, 'toolgate')).mode & 0o777).toBe(0o700);
    await runCli(['daemon', 'stop'], {
      cwd: project.cwd,
      env: { ...project.env, XDG_RUNTIME_DIR: runtime },
      process: true,
    });
  });

  it('any more when an edit says so', async () => {
    const project = openProject(config());
    const window = await project.window();
    const pid = await project.pid();
    writeFileSync(join(project.cwd, 'tools.toml'), config('shared = false'));
    await waitFor(() => window.stderr().includes('applied'));
    const own = await project.window();
    expect(await pidOf(own.client, 'a')).not.toBe(await pidOf(window.client, 'a'));
    await window.stop();
    await waitFor(() => !alive(pid));
  });
});
