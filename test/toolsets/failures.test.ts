/** An equip that fails in the middle changes nothing: not the tools, not the equipped toolset, not the files. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, it } from 'vitest';
import { type StdioGateway, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { type Files, writeFiles } from '../support/temp.ts';
import { control, DOCKER, equippedNames, GIT, refs, toolsetsToml } from '../support/toolsets.ts';

const SERVERS = { git: GIT, docker: DOCKER };
/** `one` is equipped before the failure, `two` is what the failing equip asks for. */
const SETS = '[toolsets.one]\ntools = ["git.status"]\n[toolsets.two]\ntools = ["git.log", "docker.ps"]\n';

/** Every file below a folder with its text. Files that record calls and servers are left out. */
function filesIn(folder: string, path = ''): Record<string, string> {
  const entries = readdirSync(join(folder, path)).filter(
    (name) => !['offers', 'verdicts', 'usage', '.gitignore', 'run'].includes(name) && !name.startsWith('names.json'),
  );
  return Object.assign(
    {},
    ...entries.map((name) => {
      const inside = join(path, name);
      if (!statSync(join(folder, inside)).isDirectory())
        return { [inside]: readFileSync(join(folder, inside), 'utf8') };
      return { [`${inside}/`]: '', ...filesIn(folder, inside) };
    }),
  );
}

const equippedIn = (data: string) => JSON.parse(readFileSync(join(data, 'equipped.json'), 'utf8')).equipped as string;

/** What can be seen from outside: the list of tools, the equipped toolset, the saved ones, and the data folder. */
async function stateOf({ client, cwd }: { client: Client; cwd: string }) {
  return {
    // First, because it reads the files, and equip-toolset describes the toolsets that were last read.
    saved: await control(client, 'list-saved-toolsets'),
    tools: (await client.listTools()).tools,
    active: await control(client, 'get-active-toolset'),
    files: filesIn(join(cwd, '.toolgate')),
  };
}

/** A gateway with the toolset `one` equipped, also on disk. */
async function startEquipped(files: Files = {}): Promise<Equipped> {
  const gateway = await startStdio({ config: toolsetsToml(SERVERS, SETS), files });
  const data = join(gateway.cwd, '.toolgate');
  await control(gateway.client, 'equip-toolset', { name: 'one' });
  await waitFor(() => existsSync(join(data, 'equipped.json')));
  expect(equippedIn(data)).toBe('one');
  const { client, cwd, changes, stderr } = gateway;
  return { client, cwd, changes, stderr, data };
}

interface Equipped extends Pick<StdioGateway, 'client' | 'cwd' | 'changes' | 'stderr'> {
  readonly data: string;
}

describe('an equip that fails', () => {
  it.each<[string, string, (data: string) => void, RegExp]>([
    [
      'because the file of the toolset is damaged',
      'equip-toolset',
      (data) => writeFiles(data, { 'toolsets/broken.json': '{"name": "broken", "tools": [' }),
      /^config_invalid: .*broken\.json is not a toolset/,
    ],
    [
      'because the file of the toolset cannot be read',
      'equip-toolset',
      (data) => mkdirSync(join(data, 'toolsets/broken.json'), { recursive: true }),
      /^config_invalid: .*broken\.json is not a toolset/,
    ],
    [
      'because the new toolset cannot be saved',
      'build-toolset',
      (data) => writeFileSync(join(data, 'toolsets'), 'not a folder'),
      /^storage_failed: The toolset "broken" could not be saved/,
    ],
  ])('%s leaves the tools, the equipped toolset and the files as they were', async (_, name, break_, says) => {
    const gateway = await startEquipped();
    break_(gateway.data);
    const before = await stateOf(gateway);
    const notified = gateway.changes('tools');
    const more = name === 'build-toolset' ? { tools: refs('git.log', 'docker.ps'), autoEquip: true } : {};
    await expect(control(gateway.client, name, { name: 'broken', ...more })).rejects.toThrow(says);
    expect(await stateOf(gateway)).toEqual(before);
    expect(gateway.changes('tools')).toBe(notified);
    expect(JSON.stringify(await gateway.client.callTool({ name: 'git_status', arguments: {} }))).toContain('status');
    // The next one works.
    await control(gateway.client, 'equip-toolset', { name: 'two' });
    expect(await equippedNames(gateway.client)).toEqual(['git_log', 'docker_ps']);
  });

  it('because a note on one of its tools cannot be saved leaves the toolset as it was', async () => {
    const saved = JSON.stringify({ name: 'mine', tools: refs('git.status') });
    const gateway = await startEquipped({ '.toolgate/toolsets/mine.json': saved });
    const { client, data } = gateway;
    await control(client, 'equip-toolset', { name: 'mine' });
    await waitFor(() => equippedIn(data) === 'mine');
    rmSync(join(data, 'toolsets/mine.json'));
    mkdirSync(join(data, 'toolsets/mine.json'));
    const before = await stateOf(gateway);
    const args = { toolRef: { namespacedName: 'git.status' }, notes: [{ name: 'when', note: 'Never.' }] };
    await expect(control(client, 'add-tool-annotation', args)).rejects.toThrow(/^config_invalid: /);
    expect(await stateOf(gateway)).toEqual(before);
  });
});

describe('an equip', () => {
  it('works if only the note for the next start cannot be saved, which the answer and the log say, and leaves no other file', async () => {
    const gateway = await startEquipped();
    rmSync(join(gateway.data, 'equipped.json'));
    mkdirSync(join(gateway.data, 'equipped.json/taken'), { recursive: true });
    // `.gitignore` is written in the background.
    await waitFor(() => !Object.keys(filesIn(gateway.data)).some((name) => name.endsWith('.tmp')));
    const before = filesIn(gateway.data);
    expect(await control(gateway.client, 'equip-toolset', { name: 'two' })).toMatchObject({
      success: true,
      warnings: [expect.stringContaining('could not be saved for the next start')],
    });
    expect(await equippedNames(gateway.client)).toEqual(['git_log', 'docker_ps']);
    await waitFor(() => gateway.stderr().includes('could not be saved for the next start'));
    expect(filesIn(gateway.data)).toEqual(before);
  });
});
