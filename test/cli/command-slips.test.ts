/** Likely slips on the command line. */
import { describe, expect, it } from 'vitest';
import { VERSION } from '../../src/base/version.ts';
import { runCli } from '../support/cli.ts';
import { server, serversToml } from '../support/server.ts';

const config = serversToml({ fs: server('basic', '--tools', 'read,write') });

describe('the command line', () => {
  it.each([
    [['toolsets', 'show'], 'toolgate toolsets show needs one name: toolgate toolsets show dev'],
    [['toolsets', 'equip'], 'toolgate toolsets equip needs one name'],
    [['toolsets', 'delete', 'a', 'b', '--yes'], 'toolgate toolsets delete needs one name'],
    [['toolsets', 'create', 'dev', 'fs'], 'there is no tool "fs". Did you mean "fs.*"?'],
    [['list', 'servers', 'tools'], 'toolgate list does not take "tools". See toolgate list --help.'],
    [['doctor', 'fs'], 'toolgate doctor does not take "fs".'],
    [['serve', 'x', 'y'], 'toolgate serve does not take "x" and "y".'],
  ])('%j says what is wrong', async (args, message) => {
    const { code, stdout, stderr } = await runCli(args, { config });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('suggests no command that only looks like the one that is missing', async () => {
    expect((await runCli(['inti'])).stderr).not.toContain('"wait"');
  });

  it.each([['-v'], ['--version']])('%s prints the version', async (option) => {
    expect(await runCli([option])).toMatchObject({ code: 0, stdout: `${VERSION}\n` });
  });

  it('explains a command with help as with --help, in 80 columns', async () => {
    const [help, option] = await Promise.all([runCli(['help', 'toolsets']), runCli(['toolsets', '--help'])]);
    const page = 'There is a page about it: toolgate help toolsets page';
    expect(help).toEqual({ ...option, stdout: `${option.stdout}\n${page}\n` });
    const all = await runCli(['--help']);
    for (const line of `${help.stdout}${all.stdout}`.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect((await runCli(['help', 'toolset'])).stdout).toBe(help.stdout);
    expect((await runCli(['help', 'nothing'])).code).toBe(2);
  });
});

describe('toolgate list', () => {
  const down = serversToml({ gone: 'no-such-program-anywhere' });

  it('fails and says why if every server is down', async () => {
    const { code, stdout, stderr } = await runCli(['list'], { config: down });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/something is missing: .*gone.*down.*no-such-program-anywhere/);
    expect(await runCli(['list', '--json'], { config: down })).toMatchObject({ code: 1, stdout: '[]\n' });
  });

  it('names the servers that are missing as well as those that are there', async () => {
    const { code, stdout, stderr } = await runCli(['list'], { config: `${config}\n${down}` });
    expect([code, stdout]).toEqual([0, expect.stringContaining('fs_read')]);
    expect(stderr).toMatch(/something is missing: .*gone/);
  });

  it('says that agents may see less if there is a policy', async () => {
    const policy = `[exposed_tools]\nfs = ["read"]\n${config}`;
    expect((await runCli(['list'], { config: policy })).stderr).toContain('Add --agent NAME.');
    const narrow = await runCli(['list', '--agent', 'default'], { config: policy });
    expect([narrow.stderr, narrow.stdout.trim().split('\n').length]).toEqual(['', 1]);
  });
});
