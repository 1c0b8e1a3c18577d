import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import type { Toolset } from '../access/toolset.ts';
import { openToolsetStore } from './toolsets.ts';

const empty: Toolset = { name: 'dev', description: '', tools: [], toolNotes: [] };
const withTool = (tool: string) => (toolset: Toolset) => ({
  ...toolset,
  tools: [...toolset.tools, { namespacedName: tool }],
});

it('loses no change when several processes change a saved toolset at the same time', async () => {
  const [project, user] = [tempFolder(), tempFolder()];
  const stores = Array.from({ length: 10 }, () => openToolsetStore(project, user));
  await stores[0]!.create(empty, 'user');
  await Promise.all(stores.map((store, index) => store.change('dev', withTool(`git.${index}`))));
  const saved = await stores[0]!.read('dev');
  expect(saved!.tools.map(({ namespacedName }) => namespacedName).sort()).toEqual(
    stores.map((_, index) => `git.${index}`),
  );
  expect(saved!.place).toBe('user');
});

it('creates no toolset by changing one that does not exist', async () => {
  const folder = tempFolder();
  expect(await openToolsetStore(folder, folder).change('dev', withTool('git.log'))).toBe(null);
  expect(existsSync(join(folder, 'toolsets', 'dev.json'))).toBe(false);
});
