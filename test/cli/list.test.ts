/** `toolgate list`: the items of the gateway, for people and for programs. */
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';

const offer = ['--resources', 'up://one', '--templates', 'up://{id}', '--prompts', 'greet'];
const config = `active_toolsets = ["up_echo", "up_up://one"]\n${serversToml({
  up: server('basic', ...offer),
  other: server('basic', '--tools', 'lonely'),
})}`;

describe('toolgate list --tokens', () => {
  it('shows what each tool, each server and each toolset costs, and the sum', async () => {
    const { stdout } = await runCli(['list', '--tokens'], { config });
    expect(stdout).toMatch(/^\* up_echo +\d+ tokens {2}Gives its arguments back/m);
    expect(stdout).toMatch(/\nAll together: about \d+ tokens\.\n$/);
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
    ['zebras', 'Choose from servers, tools, resources, prompts, toolsets, namespaces, agents.'],
    ['constructor', 'Choose from servers, tools, resources, prompts, toolsets, namespaces, agents.'],
  ])('refuses to list %s, with a hint', async (what, hint) => {
    const { code, stdout, stderr } = await runCli(['list', what], { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`"${what}" cannot be listed`);
    expect(stderr).toContain(hint);
  });
});
