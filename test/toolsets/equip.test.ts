/** Building, equipping and unequipping toolsets with the control tools. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { BUILT_IN, control, equippedNames, refs, THREE, toolsetsToml } from '../support/toolsets.ts';

const config = toolsetsToml(THREE);

/** What list-saved-toolsets says, without the implicit toolsets. */
async function userToolsets(client: Parameters<typeof control>[0]) {
  const said = await control(client, 'list-saved-toolsets', { detail: 'full' });
  const toolsets = (said.toolsets as { place: string }[]).filter(({ place }) => place !== 'implicit');
  return { ...said, toolsets };
}

describe('equip-toolset and unequip-toolset', () => {
  it('adds the toolset to the control tools when equipped and removes it when unequipped', async () => {
    const gateway = await startStdio({ config });
    const { client } = gateway;
    const names = async () => (await client.listTools()).tools.map(({ name }) => name);
    expect(await names()).toEqual(BUILT_IN);
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status', 'docker.ps') });
    expect(await names()).toEqual(BUILT_IN);
    // The description of equip-toolset names it from now on.
    await waitFor(() => gateway.changes('tools') === 1);

    expect(await control(client, 'equip-toolset', { name: 'dev' })).toMatchObject({
      success: true,
      exposedTools: ['git_status', 'docker_ps'],
      warnings: [],
      unavailableServers: [],
    });
    await waitFor(() => gateway.changes('tools') === 2);
    expect(await names()).toEqual([...BUILT_IN, 'git_status', 'docker_ps']);
    const called = await client.callTool({ name: 'git_status', arguments: { a: 1 } });
    expect(JSON.stringify(called)).toContain('status');

    await control(client, 'unequip-toolset');
    await waitFor(() => gateway.changes('tools') === 3);
    expect(await names()).toEqual(BUILT_IN);
    const closed = await client.callTool({ name: 'git_status', arguments: {} });
    expect(closed).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('item_inactive') }] });
    expect(JSON.stringify(closed)).toContain('call equip-toolset with the name \\\\\\"dev\\\\\\" or \\\\\\"git\\\\\\"');
  });

  it('sends one list-changed notification if the same toolset is equipped twice', async () => {
    const gateway = await startStdio({ config });
    await gateway.client.listTools();
    await control(gateway.client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    await control(gateway.client, 'equip-toolset', { name: 'dev' });
    await control(gateway.client, 'equip-toolset', { name: 'dev' });
    await gateway.client.ping();
    expect(gateway.changes('tools')).toBe(1);
  });
});

describe('discover-all-tools', () => {
  it('lists every tool of every server, equipped or not, by namespaced name and refId if asked for all', async () => {
    const { client } = await startStdio({ config });
    const said = await control(client, 'discover-all-tools', { detail: 'full' });
    expect(said.summary).toEqual({ totalTools: 6, totalServers: 3 });
    expect(said.toolsByServer).toMatchObject([
      { serverName: 'git', toolCount: 3, tools: [{ name: 'status', namespacedName: 'git.status' }, {}, {}] },
      { serverName: 'docker', toolCount: 2 },
      { serverName: 'linear', toolCount: 1 },
    ]);
    const [git] = said.toolsByServer as { tools: { refId: string; context: { tokens: number } }[] }[];
    const { tools } = git!;
    expect(tools[0]!.refId).toMatch(/^[0-9a-f]{64}$/);
    expect(tools[0]!.context.tokens).toBeGreaterThan(5);
    expect(await control(client, 'list-available-tools')).toEqual(said);
    await control(client, 'build-toolset', { name: 'by-id', tools: [{ refId: tools[0]!.refId }], autoEquip: true });
    expect(await equippedNames(client)).toEqual(['git_status']);
  });

  it('is short by default, and narrowed by server, words and limit', async () => {
    const { client } = await startStdio({ config });
    const names = async (args: object) => {
      const said = await control(client, 'discover-all-tools', args);
      const servers = said.toolsByServer as { tools: { namespacedName: string }[] }[];
      return { ...said, names: servers.flatMap(({ tools }) => tools.map((tool) => tool.namespacedName)) };
    };
    expect((await control(client, 'discover-all-tools')).toolsByServer).toContainEqual({
      serverName: 'docker',
      toolCount: 2,
      tools: [
        { namespacedName: 'docker.ps', description: expect.any(String) },
        { namespacedName: 'docker.images', description: expect.any(String) },
      ],
    });
    expect((await names({ server: 'docker' })).names).toEqual(['docker.ps', 'docker.images']);
    expect((await names({ server: '*i*' })).names).toHaveLength(4);
    expect((await names({ query: 'GIT log' })).names).toEqual(['git.log']);
    expect(await names({ limit: 2, offset: 1 })).toMatchObject({
      names: ['git.commit', 'git.log'],
      summary: { totalTools: 6, totalServers: 3 },
      more: '3 more tools. Call again with offset 3, or narrow it with "server" or "query".',
    });
    await expect(names({ server: 'dokcer' })).rejects.toThrow(/No server "dokcer".*Did you mean "docker"/);
    await expect(names({ limit: 0 })).rejects.toThrow(/"limit" must be a whole number, at least 1/);
  });
});

describe('the answers of build-toolset and equip-toolset', () => {
  it('name what can be called and leave refIds out, unless they are asked for', async () => {
    const { client } = await startStdio({ config });
    const tools = refs('git.status', 'git.log');
    const built = await control(client, 'build-toolset', { name: 'dev', tools, autoEquip: true });
    expect(built).toEqual({
      meta: { success: true, toolsetName: 'dev', autoEquipped: true },
      toolset: { name: 'dev', description: '', place: 'project', toolCount: 2 },
      exposedTools: ['git_status', 'git_log'],
    });
    const short = await control(client, 'equip-toolset', { name: 'dev' });
    expect(short).toMatchObject({ exposedTools: ['git_status', 'git_log'], toolset: { name: 'dev', toolCount: 2 } });
    expect(JSON.stringify([short, await control(client, 'get-active-toolset')])).not.toContain('refId');
    const full = await control(client, 'equip-toolset', { name: 'dev', detail: 'full' });
    const refId = expect.stringMatching(/^[0-9a-f]{64}$/);
    expect(full.toolset).toMatchObject({ tools: [{ namespacedName: 'git.status', refId }, {}] });
    expect(await control(client, 'list-saved-toolsets', { name: 'dev' })).toMatchObject({
      toolsets: [{ name: 'dev', active: true, tools }],
    });
  });
});

describe('build-toolset', () => {
  it.each([
    ['an unknown tool', { name: 'dev', tools: refs('git.status', 'git.stauts') }, /did you mean git\.status/],
    ['an unknown refId', { name: 'dev', tools: [{ refId: 'x' }] }, /refId "x"/],
    ['both ways to name a tool', { name: 'dev', tools: [{ namespacedName: 'git.status', refId: 'x' }] }, /either/],
    ['a name that is none', { name: 'My Set', tools: refs('git.status') }, /lower-case/],
    ['a name that is a path', { name: '../x', tools: refs('git.status') }, /lower-case/],
    ['no tools', { name: 'dev', tools: [] }, /list of 1 to 100/],
    ['a tool that is no object', { name: 'dev', tools: [7] }, /Tool 1 of "tools" must be an object such as/],
    ['a pattern without tools', { name: 'dev', tools: refs('gti.*') }, /"gti\.\*" \(it matches no tool\)/],
    ['a server', { name: 'dev', tools: refs('git') }, /"git" \(a server; "git\.\*" means all of its tools\)/],
    ['an argument it does not know', { name: 'dev', tools: refs('git.status'), equip: true }, /Unknown argument equip/],
  ])('refuses %s and saves nothing', async (_, args, message) => {
    const { client } = await startStdio({ config });
    await expect(control(client, 'build-toolset', args)).rejects.toThrow(message);
    expect((await userToolsets(client)).toolsets).toEqual([]);
  });

  it('refuses a name that is already in use', async () => {
    const { client } = await startStdio({ config });
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status') });
    await expect(control(client, 'build-toolset', { name: 'dev', tools: refs('git.log') })).rejects.toThrow(/already/);
    expect(await userToolsets(client)).toMatchObject({
      toolsets: [{ name: 'dev', tools: [{ namespacedName: 'git.status' }] }],
    });
  });
});

describe('patterns and plain names in build-toolset', () => {
  it('are accepted, and a pattern stays one', async () => {
    const { client, cwd } = await startStdio({ config });
    const tools = ['docker.ps', { namespacedName: 'git.*' }];
    expect(await control(client, 'build-toolset', { name: 'dev', tools, autoEquip: true })).toMatchObject({
      toolset: { toolCount: 4 },
    });
    expect(await equippedNames(client)).toEqual(['git_status', 'git_commit', 'git_log', 'docker_ps']);
    const saved = JSON.parse(readFileSync(join(cwd, '.toolgate/toolsets/dev.json'), 'utf8'));
    expect(saved.tools).toMatchObject([{ namespacedName: 'docker.ps' }, { namespacedName: 'git.*' }]);
  });
});

describe('edit-toolset', () => {
  it('adds and removes tools and renames the toolset, and everybody who has it follows', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await gateway.connect(), await gateway.connect()];
    const tools = refs('git.status', 'git.log');
    await control(one.client, 'build-toolset', { name: 'dev', tools, autoEquip: true });
    await control(two.client, 'equip-toolset', { name: 'dev' });
    await Promise.all([one.client.listTools(), two.client.listTools()]);
    const told = [one.changes('tools'), two.changes('tools')] as const;
    const edit = { name: 'dev', add: refs('docker.ps'), remove: refs('git_log'), description: 'Daily' };
    expect(await control(one.client, 'edit-toolset', edit)).toMatchObject({
      success: true,
      toolset: { name: 'dev', description: 'Daily', toolCount: 2 },
      exposedTools: ['git_status', 'docker_ps'],
    });
    await waitFor(() => two.changes('tools') > told[1]);
    for (const { client } of [one, two]) expect(await equippedNames(client)).toEqual(['git_status', 'docker_ps']);
    await control(two.client, 'edit-toolset', { name: 'dev', newName: 'daily', remove: refs('git.status') });
    await waitFor(() => one.changes('tools') > told[0] + 1);
    for (const { client } of [one, two]) {
      expect(await equippedNames(client)).toEqual(['docker_ps']);
      expect(await control(client, 'get-active-toolset')).toMatchObject({ equipped: true, toolset: { name: 'daily' } });
    }
  });

  it('saves under which name the next start finds it', async () => {
    const first = await startStdio({ config });
    await control(first.client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    await control(first.client, 'edit-toolset', { name: 'dev', newName: 'daily' });
    await first.stop();
    const { client } = await startStdio({ config, cwd: first.cwd });
    expect(await equippedNames(client)).toEqual(['git_status']);
  });

  it.each([
    ['a tool that it does not have', { remove: refs('git.lg') }, /does not have "git\.lg".*Did you mean "git\.log"/],
    ['one tool of a pattern', { remove: refs('docker.ps') }, /is in "dev" through "docker\.\*"/],
    ['an unknown tool to add', { add: refs('git.lg'), remove: refs('git.log') }, /Unknown tools: "git\.lg"/],
    ['a name that is taken', { newName: 'other', remove: refs('git.log') }, /There is a toolset "other" already/],
    ['nothing', {}, /Nothing to change/],
  ])('refuses %s and changes nothing', async (_, edit, message) => {
    const { client } = await startStdio({ config });
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.log', 'docker.*') });
    await control(client, 'build-toolset', { name: 'other', tools: refs('git.log') });
    const before = await control(client, 'list-saved-toolsets', { detail: 'full' });
    await expect(control(client, 'edit-toolset', { name: 'dev', ...edit })).rejects.toThrow(message);
    expect(await control(client, 'list-saved-toolsets', { detail: 'full' })).toEqual(before);
  });
});

describe('toolset notes', () => {
  it('are appended to the tool description and saved with the toolset', async () => {
    const { client } = await startStdio({ config });
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    const before = (await client.listTools()).tools.at(-1)!;
    const notes = [{ name: 'when', note: 'Only on "main".' }];
    await control(client, 'add-tool-annotation', { toolRef: { namespacedName: 'git.status' }, notes });
    const after = (await client.listTools()).tools.at(-1)!;
    expect(after).toEqual({ ...before, description: `${before.description}\n\nNotes:\n- when: Only on "main".` });
    expect(JSON.stringify(await client.callTool({ name: 'git_status', arguments: {} }))).toContain('status');
    // A note of the same name takes its place, and others stay.
    const more = { toolRef: { namespacedName: 'git.status' }, notes: [{ name: 'why', note: 'x' }] };
    await control(client, 'add-tool-annotation', more);
    await control(client, 'add-tool-annotation', { ...more, notes: [{ name: 'when', note: 'Always.' }] });
    expect((await client.listTools()).tools.at(-1)!.description).toBe(
      `${before.description}\n\nNotes:\n- why: x\n- when: Always.`,
    );
    const other = { toolRef: { namespacedName: 'git.log' }, notes };
    await expect(control(client, 'add-tool-annotation', other)).rejects.toThrow(/not in the equipped toolset/);
  });
});

describe('delete-toolset', () => {
  it('requires confirmation, and unequips the toolset it deletes', async () => {
    const { client, cwd } = await startStdio({ config });
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    await expect(control(client, 'delete-toolset', { name: 'dev' })).rejects.toThrow(/confirm/);
    expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(true);
    await control(client, 'delete-toolset', { name: 'dev', confirm: true });
    expect(existsSync(join(cwd, '.toolgate/toolsets/dev.json'))).toBe(false);
    expect(await equippedNames(client)).toEqual([]);
  });
});

describe('scope of an equipped toolset', () => {
  it('equipping in one session does not change the tool list of another session', async () => {
    const gateway = await startHttp({ config });
    const [one, two] = [await gateway.connect(), await gateway.connect()];
    await control(one.client, 'build-toolset', { name: 'dev', tools: refs('git.status') });
    await two.client.listTools();
    // The new toolset is named in the description of equip-toolset.
    await waitFor(() => two.changes('tools') === 1);
    await control(one.client, 'equip-toolset', { name: 'dev' });
    expect(await equippedNames(one.client)).toEqual(['git_status']);
    expect(await equippedNames(two.client)).toEqual([]);
    expect(two.changes('tools')).toBe(1);
  });

  it('equipping with selection = "shared" changes the other session’s list and notifies it once', async () => {
    const gateway = await startHttp({ config: toolsetsToml(THREE, 'selection = "shared"') });
    const [one, two] = [await gateway.connect(), await gateway.connect()];
    await control(one.client, 'build-toolset', { name: 'dev', tools: refs('git.status') });
    await two.client.listTools();
    await waitFor(() => two.changes('tools') === 1);
    await control(one.client, 'equip-toolset', { name: 'dev' });
    await waitFor(() => two.changes('tools') === 2);
    expect(await equippedNames(two.client)).toEqual(['git_status']);
  });
});

describe('saved toolsets', () => {
  it('a toolset and its equipped state survive a gateway restart', async () => {
    const first = await startStdio({ config });
    await control(first.client, 'build-toolset', {
      name: 'dev',
      description: 'Daily.',
      tools: refs('linear.create_issue'),
      autoEquip: true,
    });
    const saved = JSON.parse(readFileSync(join(first.cwd, '.toolgate/toolsets/dev.json'), 'utf8'));
    expect(saved).toMatchObject({ name: 'dev', description: 'Daily.', tools: refs('linear.create_issue') });
    await first.stop();
    const second = await startStdio({ config, cwd: first.cwd });
    expect(await equippedNames(second.client)).toEqual(['linear_create_issue']);
    expect(await control(second.client, 'get-active-toolset')).toMatchObject({
      equipped: true,
      toolset: { name: 'dev' },
      exposedTools: { linear: ['linear_create_issue'] },
    });
    await control(second.client, 'unequip-toolset');
    await second.stop();
    const third = await startStdio({ config, cwd: first.cwd });
    expect(await equippedNames(third.client)).toEqual([]);
  });

  it('a damaged toolset file is reported and never overwritten', async () => {
    const first = await startStdio({ config });
    const file = join(first.cwd, '.toolgate/toolsets/dev.json');
    await control(first.client, 'build-toolset', { name: 'dev', tools: refs('git.status') });
    writeFileSync(file, '{"name": "dev", "tools": [');
    await expect(control(first.client, 'equip-toolset', { name: 'dev' })).rejects.toThrow(/dev\.json is not a toolset/);
    await expect(control(first.client, 'build-toolset', { name: 'dev', tools: refs('git.log') })).rejects.toThrow();
    // Callers that have it keep what it was.
    expect(await userToolsets(first.client)).toMatchObject({
      toolsets: [{ name: 'dev' }],
      warnings: [expect.stringContaining('dev.json')],
    });
    expect(readFileSync(file, 'utf8')).toBe('{"name": "dev", "tools": [');
  });

  it('toolsets from the configuration are available too, including patterns', async () => {
    const { client } = await startStdio({
      config: toolsetsToml(THREE, '[toolsets.files]\ndescription = "d"\ntools = ["git.*", "docker_p*"]\n'),
    });
    await control(client, 'equip-toolset', { name: 'files' });
    expect(await equippedNames(client)).toEqual(['git_status', 'git_commit', 'git_log', 'docker_ps']);
    await expect(control(client, 'delete-toolset', { name: 'files', confirm: true })).rejects.toThrow(/configuration/);
  });
});

describe('concurrent equips', () => {
  it('a second equip is refused while one is running, and an unequip waits for it', async () => {
    const { client } = await startStdio({ config });
    for (const name of ['one', 'two']) await control(client, 'build-toolset', { name, tools: refs('git.status') });
    const race = () =>
      Promise.allSettled([
        control(client, 'equip-toolset', { name: 'one' }),
        control(client, 'equip-toolset', { name: 'two' }),
        control(client, 'unequip-toolset'),
      ]);
    // On a busy machine the first may be over before the second arrives.
    let [first, second, third] = await race();
    for (let n = 0; n < 20 && second.status === 'fulfilled'; n++) [first, second, third] = await race();
    expect(first.status).toBe('fulfilled');
    expect(second).toMatchObject({
      reason: new Error('source_busy: Another toolset operation is in progress. Wait for it and try again.'),
    });
    expect(third).toMatchObject({ value: { message: 'Unequipped "one".' } });
  });
});
