/** Servers that are down while a toolset is equipped and come back later. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHttp, startStdio } from '../support/gateway.ts';
import { waitFor } from '../support/processes.ts';
import { tempFolder } from '../support/temp.ts';
import { control, DOCKER, equippedNames, GIT, LINEAR, refs, toolsetsToml } from '../support/toolsets.ts';

/** A server that starts only while the file exists. */
function gated(command: string): { command: string; open(): void; shut(): void } {
  const file = join(tempFolder(), 'open');
  return {
    command: `test -f ${file} && exec ${command}`,
    open: () => writeFileSync(file, ''),
    shut: () => rmSync(file, { force: true }),
  };
}

describe('a server that is down while a toolset with its tools is equipped', () => {
  it('is named in a warning, its tools are skipped, and they appear automatically when it comes back', async () => {
    const git = gated(GIT);
    const sets = '[toolsets.dev-tools]\ntools = ["git.status", "docker.ps", "linear.create_issue"]\n';
    const config = toolsetsToml({ git: git.command, docker: DOCKER, linear: LINEAR }, sets);
    const gateway = await startStdio({ config });
    const { client } = gateway;
    await client.listTools();
    const said = await control(client, 'equip-toolset', { name: 'dev-tools' });
    expect(said.exposedTools).toEqual(['docker_ps', 'linear_create_issue']);
    expect(said.unavailableServers).toEqual(['git']);
    expect(said.warnings).toEqual([expect.stringMatching(/^Server "git" is not available \(down: .*git\.status/)]);
    expect(await equippedNames(client)).toEqual(['docker_ps', 'linear_create_issue']);
    const before = gateway.changes('tools');
    git.open();
    await waitFor(() => gateway.changes('tools') === before + 1);
    expect(await equippedNames(client)).toEqual(['docker_ps', 'linear_create_issue', 'git_status']);
    expect(await control(client, 'get-active-toolset')).toMatchObject({
      unavailableServers: [],
      warnings: [],
      serverStatus: { git: { available: true, state: 'up' } },
    });
  });
});

describe('equipping a toolset', () => {
  it('with unknown tools equips the known ones and reports the missing ones', async () => {
    const sets = '[toolsets.odd]\ntools = ["git.status", "git.nothing", "nobody.tool"]\n';
    const { client } = await startStdio({ config: toolsetsToml({ git: GIT }, sets) });
    expect(await control(client, 'equip-toolset', { name: 'odd' })).toMatchObject({
      exposedTools: ['git_status'],
      warnings: ['Server "git" does not offer "git.nothing".', 'No server of the configuration has "nobody.tool".'],
    });
  });

  it('that does not exist leaves the equipped toolset unchanged', async () => {
    const { client } = await startStdio({ config: toolsetsToml({ git: GIT }) });
    await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status'), autoEquip: true });
    await expect(control(client, 'equip-toolset', { name: 'dve' })).rejects.toThrow(/Did you mean "dev"/);
    expect(await equippedNames(client)).toEqual(['git_status']);
  });
});

it('repeated equipping and unequipping sends exactly one list-changed notification per change', {
  timeout: 60_000,
}, async () => {
  const gateway = await startHttp({ config: toolsetsToml({ git: GIT }) });
  const { client, changes } = await gateway.connect();
  await client.listTools();
  await control(client, 'build-toolset', { name: 'dev', tools: refs('git.status') });
  const rounds = 200;
  // The new toolset is named in the description of equip-toolset.
  await waitFor(() => changes('tools') === 1);
  for (let round = 0; round < rounds; round++) {
    await control(client, 'equip-toolset', { name: 'dev' });
    await control(client, 'unequip-toolset');
  }
  await waitFor(() => changes('tools') === 1 + rounds * 2);
});
