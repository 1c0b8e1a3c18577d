import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { configFromValue } from '../config/load.ts';
import { scanFolders } from './folders.ts';

const entry = { command: 'true' };

/** The key of the only folder, and the keys of its workers, next to servers with these keys. */
async function keysNextTo(...servers: string[]) {
  const cwd = tempFolder({ '.toolgate/tools/mix/a.ts': 'export {};\n', '.toolgate/tools/mix/b.py': '\n' });
  const value = { servers: Object.fromEntries(servers.map((key) => [key, entry])) };
  const found = await scanFolders(configFromValue(value, { cwd, env: {} }));
  return [found.folders.map(({ key }) => key), found.servers.map(({ key }) => key)];
}

it('a folder has the key of its name, and a second worker that of its language too', async () => {
  expect(await keysNextTo('other')).toEqual([['mix'], ['mix', 'mix-typescript']]);
});

it('a folder whose key a server has gets another one, and so does its second worker', async () => {
  expect(await keysNextTo('mix')).toEqual([['mix-folder'], ['mix-folder', 'mix-folder-typescript']]);
  expect(await keysNextTo('mix', 'mix-folder')).toEqual([['mix-folder2'], ['mix-folder2', 'mix-folder2-typescript']]);
  expect(await keysNextTo('mix', 'mix-folder', 'mix-folder2')).toEqual([
    ['mix-folder3'],
    ['mix-folder3', 'mix-folder3-typescript'],
  ]);
  expect(await keysNextTo('mix-typescript')).toEqual([['mix'], ['mix', 'mix-typescript-folder']]);
});
