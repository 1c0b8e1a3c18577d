/** A configuration that is found in a project, and not named by the user, runs nothing before the user has trusted it. */
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { serveRegistry } from '../../src/manager/installer/local-registry.ts';
import { atEnd } from '../support/cleanup.ts';
import { CONTROL, runCli } from '../support/cli.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { isMissing } from '../support/needs.ts';
import { waitFor } from '../support/processes.ts';
import { server, serverEntry, serversToml } from '../support/server.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';
import { onTerminal } from '../support/terminal.ts';

/** A cloned project and a user who has not seen it yet. */
function project(files: Files) {
  const cwd = tempFolder(files);
  const home = tempFolder();
  const env = { HOME: home, TOOLGATE_TRUST: '' };
  return { cwd, env, home, trustFile: join(home, '.config/toolgate/trust.json') };
}

type Project = ReturnType<typeof project>;

async function states({ cwd, env }: Pick<Project, 'cwd' | 'env'>, ...args: string[]): Promise<Record<string, string>> {
  const { code, stdout, stderr } = await runCli(['list', 'servers', '--json', ...args], { cwd, env });
  expect(code, stderr).toBe(0);
  const servers = JSON.parse(stdout) as { key: string; state: string }[];
  return Object.fromEntries(servers.map(({ key, state }) => [key, state]));
}

async function trust({ cwd, env }: Project): Promise<void> {
  const { code, stderr } = await runCli(['trust', '--yes'], { cwd, env });
  expect(code, stderr).toBe(0);
}

const basic = serversToml({ a: server('basic', '--tools', 'x') });
const mcp = JSON.stringify({ mcpServers: { a: serverEntry('basic', '--tools', 'x') } });

describe('without a terminal', () => {
  it.each([
    ['tools.toml', basic],
    ['toolgate.toml', basic],
    ['.mcp.json', mcp],
    ['.toolgate/config.yaml', mcp],
  ])('%s in the working folder starts nothing, and says what to do', async (name, text) => {
    const clone = project({ [name]: text });
    expect(await states(clone)).toEqual({ a: 'untrusted' });
    const { code, stderr } = await runCli(['call', 'a_x'], clone);
    expect(code).toBe(2);
    expect(stderr).toContain('server "a" is not started, because nobody has trusted it yet');
    expect(stderr).toContain(`run "toolgate trust" in ${join(clone.cwd, name, '..')}`);
    expect(existsSync(clone.trustFile)).toBe(false);
  });

  it('a program of it does not run, whatever command is used', async () => {
    const clone = project({ 'tools.toml': serversToml({ evil: 'touch ran' }) });
    for (const command of [['list'], ['doctor'], ['call', 'evil_x'], ['toolsets', 'list'], ['explain', 'x']])
      await runCli(command, clone);
    expect(existsSync(join(clone.cwd, 'ran'))).toBe(false);
    await runCli(['list', '--trust'], clone);
    expect(existsSync(join(clone.cwd, 'ran'))).toBe(true);
  });

  it.each([
    ['--config', ['--config', 'tools.toml'], {}],
    ['TOOLGATE_CONFIG', [], { TOOLGATE_CONFIG: 'tools.toml' }],
    ['--trust', ['--trust'], {}],
    ['TOOLGATE_TRUST', [], { TOOLGATE_TRUST: '1' }],
  ])('a configuration is trusted by %s', async (_, args, env) => {
    const clone = project({ 'tools.toml': basic });
    expect(await states({ ...clone, env: { ...clone.env, ...env } }, ...args)).toEqual({ a: 'up' });
    // Only for this time.
    expect(existsSync(clone.trustFile)).toBe(false);
  });

  it('a data folder is trusted by DATA_DIR', async () => {
    const clone = project({ 'data/config.yaml': mcp });
    const env = { ...clone.env, DATA_DIR: join(clone.cwd, 'data') };
    expect(await states({ cwd: tempFolder(), env })).toEqual({ a: 'up' });
  });

  it('doctor warns, and does not call it a mistake', async () => {
    const { code, stdout } = await runCli(['doctor'], project({ 'tools.toml': basic }));
    expect([code, stdout]).toEqual([1, expect.stringContaining('! a: not started, because nobody has trusted it yet')]);
  });

  it('toolgate trust asks nobody: it needs --yes, and shows what it would run', async () => {
    const clone = project({ 'tools.toml': basic });
    const { code, stderr } = await runCli(['trust'], clone);
    expect(code).toBe(2);
    expect(stderr).toContain('Add --yes to do it.');
    expect(stderr).toContain(server('basic', '--tools', 'x'));
    expect(await states(clone)).toEqual({ a: 'untrusted' });
  });
});

describe('trust', () => {
  it('is remembered in the folder of the user, which only the user can read, and not in the project', async () => {
    const clone = project({ 'tools.toml': basic });
    await trust(clone);
    expect(await states(clone)).toEqual({ a: 'up' });
    expect(statSync(clone.trustFile).mode & 0o777).toBe(0o600);
    expect(existsSync(join(clone.cwd, '.toolgate/trust.json'))).toBe(false);
    expect((await runCli(['trust'], clone)).stdout).toContain('is trusted.');
    await runCli(['trust', 'remove'], clone);
    expect(await states(clone)).toEqual({ a: 'untrusted' });
  });

  it.each([
    ['its command', 'command', 'true'],
    ['a variable', 'env', { NODE_OPTIONS: '--require ./evil.cjs' }],
    ['its folder', 'cwd', 'sub'],
    ['what it inherits', 'inherit_env', ['AWS_*']],
  ])('has to be given again if %s changes', async (_, key, value) => {
    const entry = serverEntry('basic', '--tools', 'x');
    const clone = project({ '.mcp.json': JSON.stringify({ mcpServers: { a: entry } }) });
    await trust(clone);
    writeFiles(clone.cwd, { '.mcp.json': JSON.stringify({ mcpServers: { a: { ...entry, [key]: value } } }) });
    expect(await states(clone)).toEqual({ a: 'untrusted' });
  });

  it.each([
    ['an address', { url: 'http://127.0.0.1:9/mcp' }, { url: 'http://127.0.0.1:8/mcp' }],
    [
      'a header, which could send a variable elsewhere',
      { url: 'http://127.0.0.1:9/mcp' },
      { url: 'http://127.0.0.1:9/mcp', headers: { 'x-key': '$' + '{HOME}' } },
    ],
  ])('has to be given again if %s changes', async (_, before, after) => {
    const clone = project({ '.mcp.json': JSON.stringify({ mcpServers: { a: before } }) });
    await trust(clone);
    expect(await states(clone)).not.toEqual({ a: 'untrusted' });
    writeFiles(clone.cwd, { '.mcp.json': JSON.stringify({ mcpServers: { a: after } }) });
    expect(await states(clone)).toEqual({ a: 'untrusted' });
  });

  it('stays if something else changes, and a new server needs it for itself', async () => {
    const clone = project({ 'tools.toml': basic });
    await trust(clone);
    const described = `start_wait = "1s"\n${basic}description = "What it is for"\ntimeout = "9s"\n`;
    writeFiles(clone.cwd, { 'tools.toml': described + serversToml({ b: server('basic') }) });
    expect(await states(clone)).toEqual({ a: 'up', b: 'untrusted' });
  });

  it('is not given to a copy of the project elsewhere, because its paths mean other files', async () => {
    const one = project({ 'tools.toml': basic });
    await trust(one);
    expect(await states({ cwd: tempFolder({ 'tools.toml': basic }), env: one.env })).toEqual({ a: 'untrusted' });
    const link = join(tempFolder(), 'link');
    symlinkSync(one.cwd, link);
    expect(await states({ cwd: link, env: one.env })).toEqual({ a: 'up' });
  });

  it('is refused from a file that others can write', async () => {
    const clone = project({ 'tools.toml': basic });
    await trust(clone);
    chmodSync(clone.trustFile, 0o666);
    const { code, stderr } = await runCli(['list'], clone);
    expect([code, stderr]).toEqual([2, expect.stringContaining('can be written by others. Run: chmod 600')]);
  });
});

describe('folders of tool files', () => {
  const tool = `export const run = { description: 'x', inputSchema: {}, execute: () => 'ran' };\n`;

  it('in the data folder of a clone are not run before they are trusted', async () => {
    const clone = project({ 'tools.toml': 'controls = []\n', '.toolgate/tools/evil/index.ts': tool });
    expect(await states(clone)).toEqual({ evil: 'untrusted' });
    expect((await runCli(['call', 'evil_run'], clone)).stderr).toContain('nobody has trusted it yet');
    await trust(clone);
    expect((await runCli(['call', 'evil_run'], clone)).stdout).toBe('ran\n');
  });

  it('that the user creates are trusted, unless others are there already', async () => {
    const own = project({ 'tools.toml': 'controls = []\n' });
    await runCli(['namespaces', 'create', 'mine'], own);
    expect(await states(own)).toEqual({ mine: 'up' });
    const clone = project({ 'tools.toml': 'controls = []\n', '.toolgate/tools/evil/index.ts': tool });
    await runCli(['namespaces', 'create', 'mine'], clone);
    expect(await states(clone)).toEqual({ evil: 'untrusted', mine: 'untrusted' });
  });
});

describe('a client on stdio', () => {
  it('is told what to do, and gets the tools when it is done', async () => {
    const clone = project({ 'tools.toml': `active_toolsets = ["*"]\n${basic}` });
    const { client } = await startStdio(clone);
    expect(client.getInstructions()).toContain(
      `Tell the user: to see and trust it, run "toolgate trust" in ${clone.cwd}`,
    );
    const names = async () => (await client.listTools()).tools.map(({ name }) => name);
    expect(await names()).not.toContain('a_x');
    await trust(clone);
    await waitFor(async () => (await names()).includes('a_x'));
  });
});

describe('an edit while Toolgate runs', () => {
  it('starts a new server, and a changed one, only when they are trusted; the old one goes on until then', async () => {
    const clone = project({ 'tools.toml': `active_toolsets = ["*"]\n${basic}` });
    await trust(clone);
    const gateway = await startHttp(clone);
    const { client } = await gateway.connect();
    const names = async () =>
      (await client.listTools()).tools.map(({ name }) => name).filter((name) => /^[ab]_/.test(name));
    expect(await names()).toEqual(['a_x']);
    const edited = { a: server('basic', '--tools', 'y'), b: server('basic', '--tools', 'z') };
    writeFiles(clone.cwd, { 'tools.toml': `active_toolsets = ["*"]\n${serversToml(edited)}` });
    for (const said of ['what it runs has changed and is not trusted yet', 'nobody has trusted it yet'])
      await waitFor(() => gateway.stderr().includes(said));
    expect(await names()).toEqual(['a_x']);
    await trust(clone);
    // In any order: a client keeps that in which it saw its tools, and either server may be up first.
    await waitFor(async () => (await names()).sort().join() === 'a_y,b_z');
  });
});

describe.skipIf(isMissing('python'))('on a terminal', () => {
  const config = serversToml({ a: server('basic', '--tools', 'x') }).replace(
    /command = .*/,
    `command = ${JSON.stringify(server('basic', '--tools', 'x'))}\nenv = { LOOK = "red \\u001b[31m\\u202ebidi", API_TOKEN = "s3cret-value" }`,
  );

  it('the question shows everything that would run, once', async () => {
    const clone = project({ 'tools.toml': config });
    const first = await onTerminal(['list'], [['Trust this', 'y\r']], clone);
    expect(first.code, first.screen).toBe(0);
    expect(first.shown).toContain(`a: ${server('basic', '--tools', 'x')}`);
    expect(first.shown).toContain('LOOK=red \\u001b[31m\\u202ebidi');
    expect(first.screen).not.toContain('s3cret-value');
    expect(first.shown.split('✔')[0]).not.toMatch(CONTROL);
    const second = await onTerminal(['list'], [], clone);
    expect(second.screen).not.toContain('Trust this');
    expect(second.shown).toContain('a_x');
  });

  it('no ends the command, and starts nothing', async () => {
    const clone = project({ 'tools.toml': serversToml({ evil: 'touch ran' }) });
    const { code, shown } = await onTerminal(['serve'], [['Trust this', 'n\r']], clone);
    expect([code, shown]).toEqual([2, expect.stringContaining('Nothing was started.')]);
    expect(existsSync(join(clone.cwd, 'ran'))).toBe(false);
  });
});

describe('tokens of agents', () => {
  const token = 'a-token-that-the-author-of-the-project-knows';
  const hash = createHash('sha256').update(token).digest('hex');
  const agents = JSON.stringify({
    agents: [
      {
        name: 'evil',
        description: '',
        created: '2026-01-01T00:00:00Z',
        tokens: [{ sha256: hash, created: '2026-01-01T00:00:00Z', expires: null }],
      },
    ],
  });
  const statusWith = async (origin: string, one: string) =>
    (await fetch(`${origin}/tools`, { headers: { authorization: `Bearer ${one}` } })).status;

  it.each([
    ['agents.json of the data folder', { 'tools.toml': 'controls = []\n', '.toolgate/agents.json': agents }],
    ['the configuration', { 'tools.toml': `controls = []\n[agents.evil]\ntoken_sha256 = "${hash}"\n` }],
  ])('that a project brings in %s let nobody in before they are trusted', async (_, files) => {
    const clone = project(files);
    const gateway = await startHttp({ cwd: clone.cwd, env: clone.env });
    expect(await statusWith(gateway.origin, token)).toBe(401);
    expect((await fetch(`${gateway.origin}/tools`)).status).toBe(401);
    expect(gateway.stderr()).toContain('1 token of agents lets nobody in, because nobody has trusted it yet');
    await trust(clone);
    await waitFor(async () => (await statusWith(gateway.origin, token)) === 200);
  });

  it('that the user makes are trusted by that, and those of the project are not', async () => {
    const clone = project({ 'tools.toml': 'controls = []\n', '.toolgate/agents.json': agents });
    const { stdout } = await runCli(['agents', 'add', 'mine'], clone);
    const gateway = await startHttp({ cwd: clone.cwd, env: clone.env });
    expect(await statusWith(gateway.origin, stdout.trim())).toBe(200);
    expect(await statusWith(gateway.origin, token)).toBe(401);
    const rotated = await runCli(['agents', 'rotate', 'mine'], clone);
    await waitFor(async () => (await statusWith(gateway.origin, rotated.stdout.trim())) === 200);
  });
});

it('a server that the user installs from a registry is trusted by that, and no other', async () => {
  const entry = {
    name: 'io.github.acme/remote',
    description: 'Somewhere',
    version: '1.0.0',
    remotes: [{ type: 'streamable-http', url: 'http://127.0.0.1:9/mcp' }],
  };
  const registry = tempFolder({ 'remote.json': JSON.stringify(entry) });
  const local = await serveRegistry(registry, { host: '127.0.0.1', port: 0, problem: () => {} });
  atEnd(() => local.close());
  const settings = `controls = []\n[registry]\nurl = "${local.url}"\nallow_private = true\n`;
  const clone = project({ 'tools.toml': `${settings}${basic}` });
  const { code, stderr } = await runCli(['registry', 'install', 'io.github.acme/remote'], clone);
  expect(code, stderr).toBe(0);
  const found = await states(clone);
  expect(found.a).toBe('untrusted');
  expect(found.remote).not.toBe('untrusted');
});
