/** `toolgate list`: the items of the gateway, for people and for programs. */
import { encode } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { readExposition } from '../support/exposition.ts';
import { startHttp } from '../support/gateway.ts';
import { server, serversToml } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';

const offer = ['--resources', 'up://one', '--templates', 'up://{id}', '--prompts', 'greet'];
const config = `active_toolsets = ["up_echo", "up_up://one"]\n${serversToml({
  up: server('basic', ...offer),
  other: server('basic', '--tools', 'lonely'),
})}`;

describe('toolgate list --tokens', () => {
  it('shows what each tool, each server and each toolset costs, and the sum', async () => {
    const { stdout } = await runCli(['list', '--tokens'], { config });
    expect(stdout).toMatch(/^\* up_echo +\d+ tokens {2}Gives its arguments back/m);
    expect(stdout).toMatch(/\nAll together: \d+ tokens \(o200k_base\)\.\n$/);
    const servers = JSON.parse((await runCli(['list', 'servers', '--tokens', '--json'], { config })).stdout);
    expect(servers.map(({ server, tools }: { server: string; tools: number }) => [server, tools])).toEqual([
      ['up', 4],
      ['other', 1],
    ]);
    const items = JSON.parse((await runCli(['list', '--tokens', '--json'], { config })).stdout) as { tokens: number }[];
    const sum = (all: { tokens: number }[]) => all.reduce((total, { tokens }) => total + tokens, 0);
    expect(sum(items)).toBe(sum(servers));
    const few = `${config}\n[toolsets.few]\ntools = ["up.echo"]\n`;
    expect((await runCli(['list', 'toolsets', '--tokens'], { config: few })).stdout).toMatch(/few .*\d+ tokens/);
  });

  it('counts with a tokenizer, and adds up what an agent may use and what it sees at first', async () => {
    const policy = `${config}\n[agent_policies.narrow]\nallowed_servers = ["other"]\ntool_overrides = { other = ["lonely"] }\n[default_policy]\nallow_unknown_tools = true\n`;
    const read = async (...args: string[]) =>
      JSON.parse((await runCli([...args, '--json'], { config: policy })).stdout);
    const agents = await read('list', 'agents', '--tokens');
    const [item] = await read('list', '--tokens', '--agent', 'narrow');
    expect(agents).toContainEqual({
      agent: 'narrow',
      tools: 1,
      tokens: item.tokens,
      first: { tools: 1, tokens: expect.any(Number) },
    });
    const { name, description, inputSchema } = { name: 'other_lonely', description: 'Tool lonely', inputSchema: {} };
    expect(item.tokens).toBeGreaterThanOrEqual(encode(JSON.stringify({ name, description, inputSchema })).length);
    expect((await runCli(['list', 'agents', '--tokens'], { config: policy })).stdout).toMatch(
      /^narrow +1 tool, \d+ tokens +at first 1 tool, \d+ tokens$/m,
    );
  });

  it('shows what the clients of a running gateway were sent, as /metrics and doctor do', async () => {
    const env = { HOME: tempFolder() };
    const gateway = await startHttp({ config, env });
    const { client } = await gateway.connect();
    await client.listTools();
    await client.listTools();
    await client.callTool({ name: 'up_echo', arguments: { text: 'x'.repeat(4_000) } });
    const run = (...args: string[]) => runCli(args, { cwd: gateway.cwd, env });
    const [row] = JSON.parse((await run('list', 'clients', '--tokens', '--json')).stdout);
    expect(row.lists).toEqual({ sent: 2, changes: 0, tokens: 2 * row.now.tokens });
    expect(row.results.bytes).toBeGreaterThan(4_000);
    expect(row.results.tokens).toBe(Math.ceil(row.results.bytes / 4));
    expect((await run('list', 'clients')).stdout).toMatch(
      /2 lists sent, [\d,]+ tokens +0 changes +results about 1,\d00 tokens/,
    );
    expect((await run('list', 'servers', '--tokens')).stdout).toMatch(/^up +4 tools +\d+ tokens$/m);
    expect((await run('search', 'echo', '--tokens')).stdout).toMatch(/up_echo +\d+ tokens/);
    const metrics = readExposition(await (await fetch(`${gateway.origin}/metrics`)).text());
    // The commands above have counted everything.
    const value = (name: string) => metrics.get(name)!.samples.map((sample) => sample.value);
    expect(value('toolgate_client_lists_tokens')).toEqual([row.lists.tokens]);
    expect(value('toolgate_client_results_tokens')).toEqual([row.results.tokens]);
    const servers = JSON.parse((await run('list', 'servers', '--tokens', '--json')).stdout) as { tokens: number }[];
    expect(value('toolgate_server_tools_tokens').sort()).toEqual(servers.map(({ tokens }) => tokens).sort());
    const { stdout } = await run('doctor');
    expect(stdout).toMatch(
      /tokens: The definitions of all 5 tools have [\d,]+ tokens \(o200k_base\): up \d+, other \d+\./,
    );
    expect(stdout).toMatch(
      /tokens: 1 client has a list of about \d+ tokens, changed 0 times, and got results of about 1,\d00/,
    );
  });
});

describe('toolgate list', () => {
  it('shows tools, the active ones with a star', async () => {
    const { code, stdout, stderr } = await runCli(['list'], { config });
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toContain('* up_echo       Gives its arguments back as JSON text');
    expect(lines).toContain('  other_lonely  Tool lonely');
    expect(lines).toHaveLength(5);
  });

  it.each([
    ['tools', ['up_echo', 'up_whoami', 'up_count', 'up_raw', 'other_lonely']],
    ['resources', ['up_up://one', 'up_up://{id}']],
    ['prompts', ['up_greet']],
  ])('shows %s', async (kind, names) => {
    const { code, stdout } = await runCli(['list', kind], { config });
    expect(code).toBe(0);
    const shown = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.slice(2).split(' ')[0]);
    expect(shown).toEqual(names);
  });

  it.each([
    [
      'tools',
      {
        name: 'up_echo',
        kind: 'tool',
        server: 'up',
        active: true,
        description: 'Gives its arguments back as JSON text',
      },
    ],
    ['tools', { name: 'up_count', active: false }],
    ['resources', { name: 'up_up://one', kind: 'resource', active: true }],
    ['resources', { name: 'up_up://{id}', kind: 'template', active: false }],
    ['prompts', { name: 'up_greet', kind: 'prompt', active: true }],
    ['servers', { key: 'up', kind: 'stdio', state: 'up', present: true, revision: '2025-11-25' }],
  ])('prints %s as JSON', async (kind, expected) => {
    const { code, stdout } = await runCli(['list', kind, '--json'], { config });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining(expected));
  });

  it('shows servers with their state, including failed ones', async () => {
    const { code, stdout } = await runCli(['list', 'servers'], {
      config: serversToml({ up: server('basic'), gone: 'no-such-program-anywhere' }),
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^up +stdio +up/m);
    expect(stdout).toMatch(/^gone +stdio +down .*no-such-program-anywhere/m);
  });

  it('shows since when a server is in its state, and its history with --json', async () => {
    const commands = { up: server('basic', '--name', 'basic'), gone: 'no-such-program-anywhere' };
    const shown = await runCli(['list', 'servers'], { config: serversToml(commands) });
    expect(shown.stdout).toMatch(/^up +stdio +up +since \d\d:\d\d:\d\d {2}basic 1\.0\.0$/m);
    expect(shown.stdout).toMatch(/^gone +stdio +down +since \d\d:\d\d:\d\d {2}could not be started/m);
    const { stdout } = await runCli(['list', 'servers', '--json'], { config: serversToml(commands) });
    const [up, gone] = JSON.parse(stdout) as { since: string; history: { time: string; state: string }[] }[];
    expect(up!.history.map(({ state }) => state)).toEqual(['starting', 'up']);
    expect(gone!.history.map(({ state }) => state)).toEqual(['starting', 'down']);
    for (const { since, history } of [up!, gone!]) {
      expect(since).toBe(history[1]!.time);
      expect(since).toMatch(/^\d{4}-\d\d-\d\dT/);
    }
  });

  it('prints a notice if there is nothing to list', async () => {
    expect((await runCli(['list'], { config: 'controls = []\n' })).stdout).toBe('There is nothing to list.\n');
    expect((await runCli(['list', 'servers'], { config: '' })).stdout).toBe('No servers are configured.\n');
    expect((await runCli(['list', '--json'], { config: '' })).stdout).toBe('[]\n');
  });

  it.each([
    ['tool', 'Did you mean "tools"'],
    ['promts', 'Did you mean "prompts"'],
    ['zebras', 'Choose from servers, tools, resources, prompts, toolsets, namespaces, agents, clients.'],
    ['constructor', 'Choose from servers, tools, resources, prompts, toolsets, namespaces, agents, clients.'],
  ])('refuses to list %s, with a hint', async (what, hint) => {
    const { code, stdout, stderr } = await runCli(['list', what], { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`"${what}" cannot be listed`);
    expect(stderr).toContain(hint);
  });
});
