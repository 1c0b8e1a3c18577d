/** A tool outside the equipped toolset cannot be called, not just not listed: under any of its names, at any door. */
import { describe, expect, it } from 'vitest';
import { allDoors, call, callText, enter, ownError } from '../support/doors.ts';
import { control, THREE, toolsetsToml } from '../support/toolsets.ts';

const config = toolsetsToml(THREE, '[toolsets.dev]\ntools = ["git.status"]\n');
const NAMES = (server: string, tool: string) => [`${server}_${tool}`, `${server}.${tool}`, `${server}:${tool}`, tool];

describe.each(allDoors)('equipped toolset over %s', (door) => {
  it('allows every name of a tool in the toolset and refuses every name of a tool outside it', async () => {
    const { client } = await enter(door, { config });
    for (const name of NAMES('git', 'status')) expect(ownError(await call(client, name)).code).toBe('item_inactive');
    await control(client as never, 'equip-toolset', { name: 'dev' });
    for (const name of NAMES('git', 'status')) expect(await callText(client, name)).toContain('"tool":"status"');
    for (const name of [...NAMES('git', 'commit'), ...NAMES('docker', 'ps')])
      expect(ownError(await call(client, name))).toMatchObject({ code: 'item_inactive' });
    await control(client as never, 'unequip-toolset');
    for (const name of NAMES('git', 'status')) expect(ownError(await call(client, name)).code).toBe('item_inactive');
  });
});
