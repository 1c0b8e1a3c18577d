/** Which configuration a command uses, and what it reports about the choice. */
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { atEnd } from '../support/cleanup.ts';
import { runCli, startCli } from '../support/cli.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';

const toml = (name: string) => serversToml({ [name]: server('basic', '--tools', 'x') });
const json = (name: string) => JSON.stringify({ servers: { [name]: serverEntry('basic', '--tools', 'x') } });
const yaml = (name: string) =>
  `servers:\n  ${name}:\n    command: ${JSON.stringify(server('basic', '--tools', 'x'))}\n`;
const mcp = (name: string) => JSON.stringify({ mcpServers: { [name]: serverEntry('basic', '--tools', 'x') } });

async function serverNames(options: Parameters<typeof runCli>[1], ...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runCli(['list', 'servers', '--json', ...args], options);
  expect(code, stderr).toBe(0);
  return (JSON.parse(stdout) as { key: string }[]).map(({ key }) => key);
}

const all = {
  'tools.toml': toml('one'),
  'toolgate.toml': toml('two'),
  'toolgate.yaml': yaml('three'),
  'toolgate.yml': yaml('four'),
  'toolgate.json': json('five'),
  '.mcp.json': mcp('six'),
};

describe('the configuration', () => {
  it('is the first existing file, in the order that the help gives', async () => {
    const entries = Object.entries(all);
    const order = ['one', 'two', 'three', 'four', 'five', 'six'];
    for (const [i, name] of order.entries()) {
      expect(await serverNames({ files: Object.fromEntries(entries.slice(i)) })).toEqual([name]);
    }
  });

  it('is the file given by --config, before TOOLGATE_CONFIG and before files in the default locations', async () => {
    const files = { ...all, 'sub/named.toml': toml('named'), 'env.json': json('from-env') };
    const env = { TOOLGATE_CONFIG: 'env.json' };
    expect(await serverNames({ files, env })).toEqual(['from-env']);
    expect(await serverNames({ files, env }, '--config', 'sub/named.toml')).toEqual(['named']);
    expect(await serverNames({ files, env: { TOOLGATE_CONFIG: '' } })).toEqual(['one']);
  });

  it.each([
    ['--config', ['--config', 'nowhere.toml'], {}],
    ['TOOLGATE_CONFIG', [], { TOOLGATE_CONFIG: 'nowhere.toml' }],
  ])('given by %s but missing is an error', async (by, args, env: Record<string, string>) => {
    const { code, stderr } = await runCli(['list', ...args], { config: '', env });
    expect(code).toBe(2);
    expect(stderr).toMatch(new RegExp(`There is no file .*nowhere\\.toml, which ${by} names`));
  });

  it('found nowhere is an error with an example', async () => {
    for (const command of ['list', 'serve', 'stdio']) {
      const { code, stdout, stderr } = await runCli([command]);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toContain('There is no configuration in ');
      expect(stderr).toContain('[[servers]]');
    }
  });

  it('with errors has each of them reported with its line', async () => {
    const config = 'start_wait = "soon"\n\n[[servers]]\nnamespace = "a b"\ncomand = "x"\n';
    const { code, stderr } = await runCli(['list'], { config });
    expect(code).toBe(2);
    expect(stderr).toContain('tools.toml:1: start_wait: ');
    expect(stderr).toContain('tools.toml:4: servers[0].namespace: ');
    expect(stderr).toContain('tools.toml:5: servers[0].comand: unknown key. Did you mean "command"?');
  });
});

describe('ignored configuration files', () => {
  const notice = 'tools.toml is used, and toolgate.json, .mcp.json are ignored. Choose one with --config.';
  const files = { 'tools.toml': '', 'toolgate.json': '{}', '.mcp.json': '{}' };

  it('are mentioned by serve and stdio, on stderr', async () => {
    const serve = startCli(['serve', '--port', '0'], { files });
    await waitFor(() => serve.stderr().includes(notice));
    const stdio = startCli([], { files });
    await waitFor(() => stdio.stderr().includes(notice));
    expect(stdio.stdout()).toBe('');
  });

  it('are not mentioned in data output', async () => {
    expect(await runCli(['list', '--json'], { files })).toEqual({ code: 0, stdout: '[]\n', stderr: '' });
  });
});

describe('a port that is already in use', () => {
  it('is reported', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    atEnd(() => taken.close());
    const port = String((taken.address() as { port: number }).port);
    const { code, stdout, stderr } = await runCli(['serve', '--port', port], { config: '' });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`port ${port} on 127.0.0.1 is in use; choose another with --port`);
  });
});
