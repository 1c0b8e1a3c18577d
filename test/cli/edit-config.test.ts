/** `toolgate add`, `remove`, `enable` and `disable` edit the configuration, and a running gateway follows. */
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startHttp } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { type Files, tempFolder } from '../support/temp.ts';

function project(files: Files = {}) {
  const cwd = tempFolder(files);
  const env = { HOME: tempFolder(), TOOLGATE_TRUST: '' };
  const read = (name = 'tools.toml') => readFileSync(join(cwd, name), 'utf8');
  const run = (...args: string[]) => runCli(args, { cwd, env });
  const states = async () => {
    const { stdout, stderr, code } = await run('list', 'servers', '--json');
    expect(code, stderr).toBe(0);
    return Object.fromEntries(
      (JSON.parse(stdout) as { key: string; state: string }[]).map((one) => [one.key, one.state]),
    );
  };
  return { cwd, env, read, run, states };
}

const words = (tools: string) => {
  const { command, args } = serverEntry('basic', '--tools', tools);
  return [command, ...args] as string[];
};

describe('toolgate add', () => {
  it('creates tools.toml, and what was added runs without being asked for', async () => {
    const { run, states, read } = project();
    const { code, stdout, stderr } = await run('add', 'mine', '--env', 'LOOK=red', '--', ...words('x'));
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('Added "mine" to ');
    expect(read()).toContain('namespace = "mine"');
    expect(read()).toContain('env = { LOOK = "red" }');
    expect(await states()).toEqual({ mine: 'up' });
  });

  it('trusts what was added, and nothing else of the file', async () => {
    const { run, states } = project({ 'tools.toml': serversToml({ cloned: server('basic') }) });
    await run('add', 'mine', '--', ...words('x'));
    expect(await states()).toEqual({ cloned: 'untrusted', mine: 'up' });
  });

  it.each([
    ['tools.toml', '# head\n[servers.a] # one\ncommand = "true"\n'],
    ['toolgate.yaml', '# head\nservers:\n  a: # one\n    command: "true"\n'],
    ['toolgate.json', '{\n  // head\n  "servers": [{ "namespace": "a", "command": "true" }]\n}\n'],
    ['.mcp.json', '{\n  "mcpServers": { "a": { "command": "true" } }\n}\n'],
  ])('%s: added, disabled, enabled and removed again, it is as before', async (name, text) => {
    const { run, read } = project({ [name]: text });
    expect((await run('add', 'b', 'https://example.com/mcp', '--header', 'X-Team: a')).code).toBe(0);
    const added = read(name);
    expect(added).toContain('https://example.com/mcp');
    expect((await run('disable', 'b')).stdout).toContain('"b" is disabled in');
    expect(read(name)).toMatch(/enabled"?[ :=]+false|"disabled": true/);
    expect((await run('disable', 'b')).stdout).toContain('"b" is disabled already');
    expect((await run('enable', 'b')).stdout).toContain('"b" is enabled in');
    expect((await run('remove', 'b')).stdout).toContain('Removed "b" from');
    expect(read(name).replace(/\s+/g, '')).toBe(text.replace(/\s+/g, ''));
    if (!name.endsWith('json')) expect(read(name)).toBe(text);
  });

  it.each([
    ['a name that is taken', ['add', 'a', '--', 'x'], 'has a server "a" already. Choose another name'],
    ['a name that cannot be a prefix', ['add', 'a b', '--', 'x'], 'only letters, digits'],
    ['no way to reach it', ['add', 'b'], 'Name the server and how to reach it'],
    ['an option of the program', ['add', 'b', 'npx', '-y', 'x'], 'write -- before the program'],
    ['a header for a program', ['add', 'b', '--header', 'X: y', '--', 'x'], '--header is for servers with a URL'],
    ['a transport that is none', ['add', 'b', 'http://x', '--transport', 'pipe'], '--transport is stdio, http or sse'],
    ['a pair without a value', ['add', 'b', '--env', 'X', '--', 'x'], '--env is KEY=VALUE'],
    ['an unknown name', ['remove', 'aa'], 'has no server "aa". Did you mean "a"?'],
    ['an unknown tool', ['disable', 'nothing'], 'has no server "nothing", and no server in it has a tool "nothing"'],
  ])('refuses %s, and changes nothing', async (_, args, message) => {
    const text = '[servers.a]\ncommand = "true"\n';
    const { run, read } = project({ 'tools.toml': text });
    const { code, stderr } = await run(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(read()).toBe(text);
  });

  it('refuses a file that does not load, and loses nothing of it', async () => {
    const text = '[servers.a]\ncommand = "true"\n[http]\nprot = 1\n';
    const { run, read } = project({ 'tools.toml': text });
    const { code, stderr } = await run('add', 'b', '--', 'x');
    expect([code, stderr]).toEqual([2, expect.stringContaining('Did you mean "port"')]);
    expect(read()).toBe(text);
  });

  it('points out secrets in plain text, without showing them', async () => {
    const { run, read } = project();
    const secrets = ['--env', 'API_TOKEN=s3cret-one', '--', 'x', '--api-key', 's3cret-two', 'ghp_s3cretthree'];
    const { stderr, stdout } = await run('add', 'b', ...secrets);
    expect(stderr).toContain('env.API_TOKEN of "b" looks like a secret');
    expect(stderr).toContain('write ${secret:API_KEY} there, and run toolgate secrets set API_KEY');
    expect(stderr).toContain('args[2]');
    expect(stderr + stdout).not.toContain('s3cret');
    expect((await run('add', 'c', 'http://127.0.0.1:9', '--header', 'Authorization: Bearer ${secret:T}')).stderr).toBe(
      '',
    );
    expect(read()).toContain('Bearer ${secret:T}');
  });

  it('says that a variable is missing, and adds the server all the same', async () => {
    const { run } = project({ 'tools.toml': '[servers.a]\ncommand = "true"\n' });
    const { code, stderr } = await run('add', 'b', '--env', 'X=${NOT_SET}', '--', 'x');
    expect([code, stderr]).toEqual([0, expect.stringContaining('the environment variable NOT_SET is not set')]);
  });

  it('a link stays a link, and the file can be read by those who could', async () => {
    const { run, cwd, read } = project({ 'dotfiles/tools.toml': '[servers.a]\ncommand = "true"\n' });
    symlinkSync('dotfiles/tools.toml', join(cwd, 'tools.toml'));
    const { mode } = statSync(join(cwd, 'tools.toml'));
    await run('add', 'b', '--', 'x');
    expect(read('dotfiles/tools.toml')).toContain('[servers.b]');
    expect(statSync(join(cwd, 'tools.toml')).mode).toBe(mode);
    expect(existsSync(join(cwd, 'tools.toml.lock'))).toBe(false);
  });
});

describe('a single tool', () => {
  const config = serversToml({ a: server('basic', '--tools', 'x,y') });

  it('is switched off for agents and on again, by its exposed name', async () => {
    const { run, read } = project({ 'tools.toml': `# mine\n${config}` });
    await run('trust', '--yes');
    await run('list');
    expect((await run('disable', 'a_z')).stderr).toContain('Did you mean "a_x" or "a_y"?');
    expect((await run('disable', 'a_x')).stdout).toContain('The tool "x" of "a" is disabled in');
    expect(read()).toContain('[denied_tools]\na = ["x"]\n');
    const { stdout } = await run('list', 'tools', '--agent', 'anyone', '--json');
    expect(
      (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name).filter((one) => one.startsWith('a_')),
    ).toEqual(['a_y']);
    expect((await run('disable', 'a.x')).stdout).toContain('disabled already');
    expect((await run('enable', 'a_x')).stdout).toContain('The tool "x" of "a" is enabled in');
    expect((await run('enable', 'a_x')).stdout).toContain('enabled already');
    expect(read()).not.toContain('"x"]');
  });

  it('that a pattern denies is not switched on, because the pattern may mean others too', async () => {
    const { run } = project({ 'tools.toml': `${config}[denied_tools]\na = ["*"]\n` });
    expect((await run('enable', 'a_x')).stderr).toContain('is denied by denied_tools.a = "*"');
  });
});

it('a running gateway follows', async () => {
  const { cwd, env, run } = project({
    'tools.toml': `active_toolsets = ["*"]\n${serversToml({ a: server('basic', '--tools', 'x') })}`,
  });
  await run('trust', '--yes');
  const gateway = await startHttp({ cwd, env });
  const { client } = await gateway.connect();
  const names = async () =>
    (await client.listTools()).tools
      .map(({ name }) => name)
      .filter((name) => /^[ab]_/.test(name))
      .join();
  expect(await names()).toBe('a_x');
  await run('add', 'b', '--', ...words('y,z'));
  await waitFor(async () => (await names()) === 'a_x,b_y,b_z');
  await run('disable', 'b_z');
  await waitFor(async () => (await names()) === 'a_x,b_y');
  await run('remove', 'b');
  await waitFor(async () => (await names()) === 'a_x');
  expect(gateway.stderr()).not.toContain('trusted');
});
