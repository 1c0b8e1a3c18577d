/** Saved toolsets keep a tool whose server was renamed, and a tool that its server renamed. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { logged, replaceFile } from '../support/running-gateway.ts';
import { server } from '../support/server.ts';
import { tempFolder } from '../support/temp.ts';
import { control, equippedNames, GIT, refs, toolsetsToml } from '../support/toolsets.ts';

const definition = (name: string, description = 'Reads a file.') => ({
  name,
  description,
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
});

/** A project whose server `files` has the tools that `offer` says, and a toolset `dev` with these. */
async function project(tools: readonly object[], inToolset: readonly string[], isTwice = false) {
  const cwd = tempFolder();
  const home = tempFolder();
  const raw = join(cwd, 'offer.json');
  const offer = (...all: object[]) => writeFileSync(raw, JSON.stringify(all));
  offer(...tools);
  const command = server('basic', '--raw-tools', raw);
  /** Has the same tools, and is started in another way. */
  const alike = server('basic', '--raw-tools', raw, '--name', 'alike');
  const configure = (servers: Record<string, string>, head = '') =>
    writeFileSync(join(cwd, 'tools.toml'), toolsetsToml(servers, head));
  const run = (...args: string[]) => runCli(args, { cwd, env: { HOME: home, NO_COLOR: '1' } });
  configure({ files: command, ...(isTwice && { other: alike }) });
  expect((await run('toolsets', 'create', 'dev', ...inToolset)).stderr).toBe('');
  const available = async () => {
    const { stdout } = await run('toolsets', 'show', 'dev', '--json');
    return (JSON.parse(stdout).available as { namespacedName: string }[]).map(({ namespacedName }) => namespacedName);
  };
  const file = join(cwd, '.toolgate/toolsets/dev.json');
  const saved = () =>
    (JSON.parse(readFileSync(file, 'utf8')).tools as { namespacedName: string }[]).map((one) => one.namespacedName);
  return { cwd, command, alike, offer, configure, run, available, saved, file };
}

describe('a toolset', () => {
  it('keeps the tools of a server that was renamed in the configuration', async () => {
    const { command, configure, available, saved, run } = await project(
      [definition('read'), definition('write', 'Writes a file.')],
      ['files.read', 'files.write'],
    );
    configure({ disk: command });
    expect(await available()).toEqual(['disk.read', 'disk.write']);
    expect(saved()).toEqual(['files.read', 'files.write']);
    const doctor = await run('doctor');
    expect(doctor.code).toBe(1);
    expect(doctor.stdout).toContain(
      '! toolset dev: it has "files.read", which is called "disk.read" now, and "files.write", which',
    );
  });

  it('keeps a tool that its server renamed, also twice and together with the server', async () => {
    const { command, offer, configure, available } = await project([definition('read')], ['files.read']);
    offer(definition('read_file'));
    expect(await available()).toEqual(['files.read_file']);
    offer(definition('readFile'));
    expect(await available()).toEqual(['files.readFile']);
    configure({ disk: command });
    expect(await available()).toEqual(['disk.readFile']);
    offer(definition('read'));
    expect(await available()).toEqual(['disk.read']);
  });

  it('has the new names in its file after doctor --fix, which keeps a copy of the old file', async () => {
    const { cwd, command, configure, run, saved, available, file } = await project(
      [definition('read')],
      ['files.read'],
    );
    configure({ disk: command });
    const before = readFileSync(file, 'utf8');
    const fixed = await run('doctor', '--fix');
    expect(fixed.stdout).toContain('✓ toolset dev: fixed: "files.read" is written as "disk.read" now');
    expect(fixed.code).toBe(0);
    expect(saved()).toEqual(['disk.read']);
    expect(await available()).toEqual(['disk.read']);
    const [backup] = readdirSync(join(cwd, '.toolgate/backup'));
    expect(readFileSync(join(cwd, '.toolgate/backup', backup!, 'toolsets/dev.json'), 'utf8')).toBe(before);
    expect((await run('doctor')).code).toBe(0);
  });

  it('gets the new names when it is edited', async () => {
    const { command, configure, run, saved } = await project(
      [definition('read'), definition('write', 'Writes a file.')],
      ['files.read'],
    );
    configure({ disk: command });
    await run('toolsets', 'edit', 'dev', '--add', 'disk.write');
    expect(saved()).toEqual(['disk.read', 'disk.write']);
    await run('toolsets', 'edit', 'dev', '--remove', 'disk.read');
    expect(saved()).toEqual(['disk.write']);
  });

  it('for all projects keeps the names in its file', async () => {
    const { command, configure, run } = await project([definition('read')], ['files.read']);
    await run('toolsets', 'create', 'mine', 'files.read', '--user');
    configure({ disk: command, git: GIT });
    const { stdout } = await run('toolsets', 'edit', 'mine', '--add', 'git.log', '--json');
    expect(JSON.parse(stdout).tools).toMatchObject(refs('files.read', 'git.log'));
    expect(JSON.parse((await run('toolsets', 'show', 'mine', '--json')).stdout).available).toMatchObject(
      refs('disk.read', 'git.log'),
    );
  });

  it('is kept in a running gateway, whose clients are told and can call the tool', async () => {
    const gateway = await startHttp({ config: toolsetsToml({ git: GIT }) });
    const { client, changes } = await gateway.connect();
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    expect(await equippedNames(client)).toEqual(['git_status']);
    const before = changes('tools');
    replaceFile(gateway.cwd, toolsetsToml({ vcs: GIT }));
    await waitFor(() => changes('tools') > before);
    expect(await equippedNames(client)).toEqual(['vcs_status']);
    expect((await client.callTool({ name: 'vcs_status', arguments: {} })).isError).not.toBe(true);
    await logged(gateway, 'the toolset "dev" has "git.status", which is called "vcs.status" now');
  });
});

describe('nothing is taken for a renamed tool', () => {
  it('if another server with the same definitions was there all the time', async () => {
    const { alike, configure, available, run } = await project([definition('read')], ['files.read'], true);
    configure({ other: alike });
    expect(await available()).toEqual([]);
    const { stdout } = await run('doctor');
    expect(stdout).toContain(
      '! toolset dev: it has "files.read", which matches nothing. "other.read" has the same definition, but nothing shows that it is the same tool. If it is meant: toolgate toolsets edit dev --remove files.read --add other.read',
    );
  });

  it('if its definition is another', async () => {
    const { offer, available } = await project([definition('read')], ['files.read']);
    offer(definition('read_file', 'Reads a file and sends it away.'));
    expect(await available()).toEqual([]);
  });

  it('if two could be meant, which doctor says', async () => {
    const { offer, available, run } = await project([definition('read')], ['files.read']);
    offer(definition('read_a'), definition('read_b'));
    expect(await available()).toEqual([]);
    const { stdout } = await run('doctor');
    expect(stdout).toContain('"files.read_a" and "files.read_b" have the same definition. If it is meant: ');
  });

  it('if two went and one came', async () => {
    const { offer, available } = await project([definition('a'), definition('b')], ['files.a']);
    offer(definition('c'));
    expect(await available()).toEqual([]);
  });

  it('if the server is one of two that are started in the same way', async () => {
    const { command, configure, available } = await project([definition('read')], ['files.read']);
    configure({ one: command, two: command });
    expect(await available()).toEqual([]);
  });

  it('if the former name is in use again', async () => {
    const { command, alike, configure, available, offer } = await project([definition('read')], ['files.read']);
    configure({ disk: command });
    expect(await available()).toEqual(['disk.read']);
    configure({ disk: command, files: alike });
    expect(await available()).toEqual(['files.read']);
    configure({ disk: command });
    offer(definition('read_file'));
    await available();
    offer(definition('read'), definition('read_file'));
    configure({ files: command });
    expect(await available()).toEqual(['files.read']);
  });

  it('and a policy about the present name decides', async () => {
    const policy = 'denied_tools = { disk = ["read"] }\n';
    const { cwd, command, configure, run } = await project([definition('read')], ['files.read']);
    await run('toolsets', 'equip', 'dev');
    configure({ disk: command }, policy);
    const { client } = await startStdio({ config: toolsetsToml({ disk: command }, policy), cwd });
    expect(await equippedNames(client)).toEqual([]);
  });
});
