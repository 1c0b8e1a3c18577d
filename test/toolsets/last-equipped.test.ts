/** What is equipped at the next start is what was equipped last. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCli } from '../support/cli.ts';
import { connectHttp } from '../support/connection.ts';
import { startHttp, startStdio } from '../support/gateway.ts';
import { connectModernHttp } from '../support/modern.ts';
import { waitFor } from '../support/processes.ts';
import { createRandom } from '../support/random.ts';
import { logged } from '../support/running-gateway.ts';
import { server, serverEntry } from '../support/server.ts';
import { tempFolder, writeFiles } from '../support/temp.ts';
import { control, equippedNames, refs, toolsetsToml } from '../support/toolsets.ts';
import { runs } from '../support/wide.ts';

const GIT = { git: server('basic', '--name', 'git', '--tools', 'status,log') };
const SETS = '[toolsets.one]\ntools = ["git.status"]\n[toolsets.two]\ntools = ["git.log"]\n';

/** Before anything was equipped, there is no file. */
function equippedIn(cwd: string): string | null {
  const file = join(cwd, '.toolgate/equipped.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { equipped: string | null }).equipped : null;
}

it.each(['own', 'shared'])(
  'with selection = "%s" it is on the disk when the answer comes, in any order',
  async (selection) => {
    const config = toolsetsToml(GIT, `selection = "${selection}"\n${SETS}`);
    const gateway = selection === 'shared' ? await startHttp({ config }) : await startStdio({ config });
    const { client } = 'client' in gateway ? gateway : await gateway.connect();
    const random = createRandom();
    for (let i = 0; i < runs(60); i++) {
      const calls = Array.from({ length: 1 + random.number(4) }, () => random.pick(['one', 'two', null]));
      const answers = await Promise.allSettled(
        calls.map((name) =>
          name === null ? control(client, 'unequip-toolset') : control(client, 'equip-toolset', { name }),
        ),
      );
      const done = calls.filter((_, index) => answers[index]!.status === 'fulfilled');
      const active = (await control(client, 'get-active-toolset')) as { toolset?: { name: string } };
      expect(active.toolset?.name ?? null, `seed ${random.seed}: ${calls}`).toBe(done.at(-1));
      expect(equippedIn(gateway.cwd), `seed ${random.seed}: ${calls}`).toBe(done.at(-1));
    }
  },
);

it('an equip after an equip and an unequip that were sent together is not refused', async () => {
  const { client } = await startStdio({ config: toolsetsToml(GIT, SETS) });
  const equip = () => control(client, 'equip-toolset', { name: 'one' });
  await Promise.all([equip(), control(client, 'unequip-toolset')]);
  await equip();
  expect(await equippedNames(client)).toEqual(['git_status']);
});

describe('a toolset that was equipped last and cannot be equipped again', () => {
  it.each<[string, (file: string) => void]>([
    ['because it was deleted', (file) => rmSync(file)],
    ['because its file is damaged', (file) => writeFileSync(file, '{"tools": ')],
  ])('%s is named by the log, get-active-toolset, doctor and list, and is back when it is mended', async (_, spoil) => {
    const config = toolsetsToml(GIT);
    const env = { HOME: tempFolder() };
    const first = await startStdio({ config, env });
    const { cwd } = first;
    await control(first.client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    await first.stop();
    const file = join(cwd, '.toolgate/toolsets/dev.json');
    const text = readFileSync(file);
    spoil(file);
    const second = await startStdio({ config, cwd, env });
    expect(await equippedNames(second.client)).toEqual([]);
    await logged(second, 'the toolset "dev", which was equipped last');
    expect(await control(second.client, 'get-active-toolset')).toMatchObject({
      equipped: false,
      warnings: [expect.stringContaining('The toolset "dev" was equipped')],
    });
    const checked = await runCli(['doctor'], { cwd, env });
    expect(checked.stdout).toContain('The toolset "dev", which was equipped last, does not exist any more');
    expect(checked.code).toBeGreaterThan(0);
    expect((await runCli(['toolsets'], { cwd, env })).stderr).toContain('The toolset "dev", which was equipped last');
    writeFileSync(file, text);
    await waitFor(async () => (await equippedNames(second.client)).length === 1);
  });
});

it('a persona stays without a toolset after unequip-toolset, although it has a default one', async () => {
  const cwd = tempFolder();
  writeFiles(cwd, {
    'persona.yaml': 'name: dev\ntoolsets:\n  - name: reading\n    toolIds: [git.log]\ndefaultToolset: reading\n',
    'mcp.json': JSON.stringify({ mcpServers: { git: { type: 'stdio', ...serverEntry('basic', '--tools', 'log') } } }),
  });
  const args = ['--config', 'persona.yaml'];
  const first = await startStdio({ cwd, args });
  expect(await equippedNames(first.client)).toEqual(['git_log']);
  await control(first.client, 'unequip-toolset');
  await first.stop();
  const { client } = await startStdio({ cwd, args });
  expect(await equippedNames(client)).toEqual([]);
});

it('a file whose name cannot be that of a toolset is reported', async () => {
  const cwd = tempFolder();
  const toolset = JSON.stringify({ tools: refs('git.log') });
  writeFiles(cwd, { 'tools.toml': toolsetsToml(GIT), '.toolgate/toolsets/Upper_Case.json': toolset });
  const said = /Upper_Case\.json is not used: the name of a toolset has 2 to 50 lower-case letters/;
  expect((await runCli(['toolsets'], { cwd })).stderr).toMatch(said);
  expect((await runCli(['doctor'], { cwd })).stdout).toMatch(said);
});

it('toolsets of a project can be committed, and nothing else of its data folder', async () => {
  const { cwd, client } = await startStdio({
    config: toolsetsToml(GIT),
    files: { '.toolgate/.gitignore': '*\n' },
  });
  await control(client, 'build-toolset', { name: 'dev', tools: refs('git.log'), autoEquip: true });
  const git = (...args: string[]) => execFileSync('git', args, { cwd, encoding: 'utf8' });
  git('init', '-q');
  await waitFor(() => git('status', '--porcelain', '-uall', '.toolgate') === '?? .toolgate/toolsets/dev.json\n');
});

it('a tool of a server without a namespace stays with that server, wherever its entry is', async () => {
  const entry = (name: string) =>
    `[[servers]]\ncommand = ${JSON.stringify(server('basic', '--name', name, '--tools', 'read,whoami'))}\n`;
  const config = (...names: string[]) => `controls = ["equip"]\n${names.map(entry).join('')}`;
  const first = await startStdio({ config: config('mine') });
  const { cwd } = first;
  const found = await control(first.client, 'discover-all-tools', { query: 'read' });
  const [{ tools }] = found.toolsByServer as [{ tools: { namespacedName: string }[] }];
  await control(first.client, 'build-toolset', { name: 'dev', tools, autoEquip: true });
  await first.stop();
  const old = { tools: refs('server-1.read') };
  writeFiles(cwd, { 'tools.toml': config('other', 'mine'), '.toolgate/toolsets/old.json': JSON.stringify(old) });
  const second = await startStdio({ cwd });
  // The other server has the name `read` now, and does not get into the toolset.
  const names = await equippedNames(second.client);
  expect(names).toEqual([expect.stringMatching(/^read_[0-9a-f]{8}$/)]);
  const called = await second.client.callTool({ name: names[0]!, arguments: {} });
  expect(JSON.stringify(called)).toContain('mine');
  // Neither does it with a name that stood for a place in the file.
  expect(await control(second.client, 'equip-toolset', { name: 'old' })).toMatchObject({
    exposedTools: [],
    warnings: [expect.stringMatching(/"server-1\.read"\. It names a server by its place in the file/)],
  });
  await second.stop();
  writeFiles(cwd, { 'tools.toml': config('mine', 'other') });
  const third = await startStdio({ cwd });
  await control(third.client, 'equip-toolset', { name: 'dev' });
  expect(await equippedNames(third.client)).toEqual(['read']);
});

describe('a client over HTTP that is known again', () => {
  const config = toolsetsToml(GIT, SETS);
  const id = (value: string) => ({ 'mcp-client-id': value });
  const nameOf = async (client: Parameters<typeof control>[0]) => {
    const { toolset } = (await control(client, 'get-active-toolset')) as { toolset?: { name: string } };
    return toolset?.name ?? null;
  };

  it('by its mcp-client-id has its toolset after a restart, with or without sessions', async () => {
    const cwd = tempFolder();
    const first = await startHttp({ config, cwd });
    const session = await connectHttp(first.url, id('a'));
    const modern = await connectModernHttp(first.url, id('b'));
    const left = await connectModernHttp(first.url, id('c'));
    await control(session.client, 'equip-toolset', { name: 'one' });
    await control(modern.client, 'equip-toolset', { name: 'two' });
    await control(left.client, 'equip-toolset', { name: 'two' });
    await control(left.client, 'unequip-toolset');
    await first.stop();

    const { url } = await startHttp({ config, cwd });
    expect(await equippedNames((await connectHttp(url, id('a'))).client)).toEqual(['git_status']);
    expect(await nameOf((await connectModernHttp(url, id('a'))).client)).toBe('one');
    expect(await equippedNames((await connectModernHttp(url, id('b'))).client)).toEqual(['git_log']);
    expect(await nameOf((await connectModernHttp(url, id('c'))).client)).toBe(null);
    expect(await nameOf((await connectHttp(url, id('unknown'))).client)).toBe(null);
    expect(await nameOf((await connectHttp(url)).client)).toBe(null);
  });

  it('by its agent alone if it has no session, also after the toolset was renamed', async () => {
    const cwd = tempFolder();
    const first = await startHttp({ config, cwd });
    const { client } = await first.connectModern();
    await control(client, 'build-toolset', { name: 'mine', tools: refs('git.log'), autoEquip: true });
    await control((await first.connect()).client, 'edit-toolset', { name: 'mine', newName: 'ours' });
    expect(await nameOf(client)).toBe('ours');
    await first.stop();

    const second = await startHttp({ config, cwd });
    const { client: again } = await second.connectModern();
    expect(await nameOf(again)).toBe('ours');
    expect(await equippedNames(again)).toEqual(['git_log']);
  });
});
