/** `toolgate status`: the gateway that runs, found by its configuration, and asked instead of a second one. */
import { readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { untilPrinted } from '../support/child.ts';
import { runCli, startCli } from '../support/cli.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const controls = 'controls = ["equip"]\n';
const toolsets = '[toolsets.few]\ntools = ["git.echo"]\n';
const config = `${controls}${serversToml({ git: server('basic', '--name', 'git'), gone: 'no-such-program-anywhere' })}\n${toolsets}`;

interface Status {
  readonly gateways: {
    readonly pid: number;
    readonly command: string;
    readonly url: string | null;
    readonly servers: { key: string; state: string; detail: string; restarts: number; tools: number; since: string }[];
    readonly clients: { agent: string; door: string; toolset: string | null; tools: number; tokens: number }[];
    readonly firstLists: { agent: string | null; shown: number; tools: number; tokens: number }[];
  }[];
}

/** Commands of one user: they have one HOME, and with it one operator key. */
function user() {
  const env = { HOME: tempFolder() };
  const status = async (cwd: string) => {
    const { code, stdout, stderr } = await runCli(['status', '--json'], { cwd, env });
    expect(stderr).toBe('');
    return { code, ...(JSON.parse(stdout) as Status) };
  };
  return { env, status };
}

const runFolder = (cwd: string) => join(cwd, '.toolgate', 'run');

describe('toolgate status', () => {
  it('shows the servers, the clients and what they have equipped, of toolgate serve', async () => {
    const { env, status } = user();
    const { cwd, url, connect } = await startHttp({ config, env });
    const { client } = await connect({ name: 'claude-code' });
    await client.callTool({ name: 'equip-toolset', arguments: { name: 'few' } });
    const { code, gateways } = await status(cwd);
    expect(code).toBe(0);
    expect(gateways).toHaveLength(1);
    const [{ servers, clients, firstLists, ...one }] = gateways as [Status['gateways'][number]];
    expect(one).toMatchObject({ pid: expect.any(Number), command: 'serve', url });
    expect(servers).toMatchObject([
      { key: 'git', state: 'up', restarts: 0 },
      { key: 'gone', state: 'down', tools: 0, detail: expect.stringContaining('no-such-program-anywhere') },
    ]);
    expect(servers[0]!.tools).toBeGreaterThan(0);
    expect(clients).toMatchObject([{ client: 'Claude Code', door: 'http', toolset: 'few' }]);
    expect(clients[0]!.tokens).toBeGreaterThan(0);
    expect(firstLists).toMatchObject([{ agent: null }]);

    const { stdout } = await runCli(['status'], { cwd, env });
    expect(stdout).toContain(`, at ${url}`);
    expect(stdout).toMatch(/^ {2}gone +stdio +down +since .*no-such-program-anywhere/m);
    expect(stdout).toMatch(
      /^ {2}[0-9a-f]{8} +Claude Code \d\S* +agent anonymous +http +since .*; list changed once; results about [\d,]+ tokens; toolset few$/m,
    );
    expect(stdout).toMatch(/^A new client sees /m);
  });

  it('finds a gateway that a client started on stdio, and several at once', async () => {
    const { env, status } = user();
    const first = await startStdio({ config, env });
    await waitFor(async () => (await status(first.cwd)).gateways.length === 1);
    const second = await startHttp({ cwd: first.cwd, env });
    const { gateways } = await status(first.cwd);
    expect(gateways.map(({ command }) => command).sort()).toEqual(['serve', 'stdio']);
    await second.stop();
    await first.stop();
    expect(await status(first.cwd)).toEqual({ code: 1, gateways: [] });
    expect(readdirSync(runFolder(first.cwd))).toEqual([]);
  });

  it('says so if none runs, and starts nothing', async () => {
    const cwd = tempFolder();
    const { code, stdout, stderr } = await runCli(['status'], { cwd, config: serversToml({ git: server('basic') }) });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^No gateway runs with .*tools\.toml\. Start one: toolgate serve\./);
  });

  it('does not show a gateway with another configuration', async () => {
    const { env, status } = user();
    const { cwd } = await startHttp({ config, env });
    writeFileSync(join(cwd, 'other.toml'), 'controls = []\n');
    const { stdout } = await runCli(['status', '--json', '--config', 'other.toml'], { cwd, env });
    expect(JSON.parse(stdout)).toEqual({ gateways: [] });
    expect((await status(cwd)).gateways).toHaveLength(1);
  });

  it('passes over the socket of a gateway that was killed, and removes it', async () => {
    const { env, status } = user();
    const { cwd, stop } = await startHttp({ config, env });
    const [name] = readdirSync(runFolder(cwd));
    await stop();
    // Nobody listens on the socket of a killed process.
    const left = join(runFolder(cwd), name!);
    const killed = createServer().listen(left);
    await new Promise((resolve) => killed.once('listening', resolve));
    const kept = `${left}.kept`;
    renameSync(left, kept);
    await new Promise((resolve) => killed.close(resolve));
    renameSync(kept, left);
    expect(await status(cwd)).toEqual({ code: 1, gateways: [] });
    await waitFor(async () => readdirSync(runFolder(cwd)).length === 0);
  });

  it('is for this user only, and needs the operator key', async () => {
    const { env } = user();
    const { cwd, origin } = await startHttp({ config, env });
    const [name] = readdirSync(runFolder(cwd));
    expect(statSync(runFolder(cwd)).mode & 0o777).toBe(0o700);
    expect(statSync(join(runFolder(cwd), name!)).mode & 0o777).toBe(0o600);
    const other = await runCli(['status'], { cwd, env: { HOME: tempFolder() } });
    expect([other.code, other.stdout]).toEqual([2, '']);
    expect(other.stderr).toContain('The running gateway has another operator key.');
    expect((await fetch(`${origin}/admin/status`)).status).toBe(403);
    expect((await fetch(`${origin}/admin/tools/git_echo`)).status).toBe(403);
  });

  it('asks a gateway elsewhere with --url', async () => {
    const { env } = user();
    const { origin } = await startHttp({ config, env });
    const { code, stdout } = await runCli(['status', '--url', origin, '--json'], { env });
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as Status).gateways[0]!.servers.map(({ key }) => key)).toEqual(['git', 'gone']);
  });

  it('goes on with --watch, and prints what changed', async () => {
    const { env } = user();
    const { cwd } = await startHttp({ config, env });
    const watching = startCli(['status', '--watch'], { cwd, env });
    await untilPrinted(watching, /^ {2}gone +stdio +down/m);
    writeFileSync(join(cwd, 'tools.toml'), serversToml({ other: server('basic', '--name', 'other') }));
    await untilPrinted(watching, /^ {2}other +stdio +up/m);
    expect((await watching.stop()).code).toBe(0);
  });

  it('tells in the log why it cannot be found, if the data folder cannot be written', async () => {
    const { env } = user();
    const cwd = tempFolder();
    // A file in the place of the folder fails for every user, root too.
    const { stderr } = await startHttp({ config, env, cwd, files: { '.toolgate/run': 'not a folder' } });
    await waitFor(async () => stderr().includes('cannot reach this gateway'));
    expect(stderr()).toMatch(/toolgate status and other commands cannot reach this gateway: .*EEXIST/);
  });
});

describe('toolgate list servers', () => {
  it('shows the servers that run, with their restarts, and starts none', async () => {
    const { env } = user();
    const { cwd, connect } = await startHttp({
      env,
      config: `controls = []\n${serversToml({ crash: server('crash') })}`,
    });
    const { client } = await connect();
    await client.callTool({ name: 'crash_crash', arguments: { code: 9 } }).catch(() => {});
    await waitFor(async () => /up .*restarts: 1/.test((await runCli(['status'], { cwd, env })).stdout));
    const { code, stdout } = await runCli(['list', 'servers'], { cwd, env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^crash +stdio +up +since .*\(restarts: 1, last reason: exited with code 9/m);
  });
});

describe('toolgate status after crashes, restarts and equips', () => {
  it('agrees with the metrics', async () => {
    const { env, status } = user();
    const servers = serversToml({ crash: server('crash'), gone: 'no-such-program-anywhere', git: server('basic') });
    const { cwd, origin, connect } = await startHttp({
      config: `${controls}${servers}\n[toolsets.few]\ntools = ["git.echo", "crash.*"]\n`,
      env,
    });
    const first = await connect({ name: 'claude-code' });
    const second = await connect();
    for (const { client } of [first, second]) {
      await client.listTools();
      await client.callTool({ name: 'equip-toolset', arguments: { name: 'few' } });
      await client.listTools();
    }
    for (const restarts of [1, 2]) {
      await first.client.callTool({ name: 'crash_crash', arguments: { code: 7 } }).catch(() => {});
      await waitFor(async () => {
        const [one] = (await status(cwd)).gateways[0]!.servers;
        return one!.state === 'up' && one!.restarts === restarts;
      });
    }
    const [{ servers: all, clients }] = (await status(cwd)).gateways as [Status['gateways'][number]];
    const metrics = readExposition(await (await fetch(`${origin}/metrics`)).text());
    const values = (name: string) => metrics.get(name)!.samples;
    const of = (name: string, labels: Record<string, string>) =>
      values(name).find((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
        ?.value;
    for (const { key, state, restarts } of all) {
      expect(of('toolgate_server_state', { server: key, state }), key).toBe(1);
      expect(of('toolgate_server_restarts_total', { server: key }), key).toBe(restarts);
    }
    expect(all).toMatchObject([
      { key: 'crash', restarts: 2 },
      { key: 'gone', state: 'down' },
      { key: 'git', restarts: 0 },
    ]);
    expect(clients).toHaveLength(of('toolgate_sessions', { transport: 'http', era: 'legacy' })!);
    expect(clients).toMatchObject([
      { client: 'Claude Code', version: expect.any(String), toolset: 'few' },
      { toolset: 'few' },
    ]);
    const lists = clients.map((one) => (one as unknown as { lists: Record<string, number> }).lists);
    const sum = (key: string) => lists.reduce((total, one) => total + one[key]!, 0);
    expect(of('toolgate_list_changes_total', { list: 'tools' })).toBe(sum('changes'));
    expect(of('toolgate_lists_sent_again_total', {})).toBe(sum('sentAgain'));
    expect(of('toolgate_lists_sent_again_tokens_total', {})).toBe(sum('tokens'));
    expect((await runCli(['status'], { cwd, env })).stdout).toMatch(
      /^ {2}crash +stdio +up +since .*protocol \S+ .*\(restarts: 2, last reason: exited with code 7/m,
    );
  });
});
