/** A tool outside the equipped toolset is closed, not only hidden: by every name it has, at every door. */
import { describe, expect, it } from 'vitest';
import { allDoors, call, callText, enter, ownError } from '../activation/doors.ts';
import { control, THREE, toolsetsToml } from './use.ts';

const config = toolsetsToml(THREE, '[toolsets.dev]\ntools = ["git.status"]\n');
const NAMES = (server: string, tool: string) => [`${server}_${tool}`, `${server}.${tool}`, `${server}:${tool}`, tool];

describe.each(allDoors)('over %s', (door) => {
  it('every name of a tool in the toolset opens it, and none of another', async () => {
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
