/** An equip that is interrupted: a server dies, or the gateway is killed. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { startStdio } from '../support/gateway.ts';
import { running, waitFor } from '../support/processes.ts';
import { server } from '../support/server.ts';
import { useProcesses } from '../support/switch.ts';
import { control, equippedNames, GIT, toolsetsToml } from '../support/toolsets.ts';
import { some } from '../support/wide.ts';

useProcesses();

const SETS = '[toolsets.one]\ntools = ["git.status"]\n[toolsets.two]\ntools = ["git.log", "docker.ps"]\n';

/** A gateway with the toolset `one` equipped, also on disk. */
async function startEquipped() {
  const name = `docker-${randomUUID()}`;
  const docker = server('basic', '--name', name, '--tools', 'ps,images');
  const config = toolsetsToml({ git: GIT, docker }, SETS);
  const gateway = await startStdio({ config });
  await control(gateway.client, 'equip-toolset', { name: 'one' });
  await waitFor(() => equippedIn(gateway.cwd) === 'one');
  return { gateway, config, docker: name };
}

/** The name of the toolset that the next start equips. */
function equippedIn(cwd: string): string | null {
  try {
    return JSON.parse(readFileSync(join(cwd, '.toolgate/equipped.json'), 'utf8')).equipped as string;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

describe('an equip', () => {
  it('during which a server dies has all tools of the toolset again when the server is back', async () => {
    const { gateway, docker } = await startEquipped();
    const { client, cwd } = gateway;
    const [pid] = running(docker);
    const equipping = control(client, 'equip-toolset', { name: 'two' });
    process.kill(pid!, 'SIGKILL');
    expect(await equipping).toMatchObject({ success: true, toolset: { name: 'two' } });
    await waitFor(() => running(docker).some((one) => one !== pid));
    await waitFor(async () => (await equippedNames(client)).includes('docker_ps'));
    expect(await equippedNames(client)).toEqual(['git_log', 'docker_ps']);
    expect(equippedIn(cwd)).toBe('two');
  });

  it.each(some([0, 1, 2, 4, 8, 16], [0, 3]))(
    'during which the gateway is killed after %i ms has equipped the old or the new toolset at the next start',
    async (ms) => {
      const { gateway, config } = await startEquipped();
      const { client, cwd } = gateway;
      client.callTool({ name: 'equip-toolset', arguments: { name: 'two' } }).catch(() => {});
      await sleep(ms);
      await gateway.stop('SIGKILL');
      const equipped = equippedIn(cwd)!;
      const next = await startStdio({ config, cwd });
      const expected = { one: ['git_status'], two: ['git_log', 'docker_ps'] }[equipped];
      expect(await equippedNames(next.client)).toEqual(expected);
      expect(await control(next.client, 'get-active-toolset')).toMatchObject({ toolset: { name: equipped } });
    },
  );
});
