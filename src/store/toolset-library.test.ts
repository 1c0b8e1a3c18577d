import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { openUserToolsets } from './toolset-library.ts';
import { openToolsetStore } from './toolsets.ts';

const toolset = (name: string) => ({ name, description: '', tools: [], toolNotes: [] });

async function open(...names: string[]) {
  const folder = tempFolder();
  const store = openToolsetStore(folder, tempFolder());
  for (const name of names) await store.create(toolset(name), 'project');
  let changes = 0;
  const made = openUserToolsets({
    configured: () => [],
    store,
    renames: { version: 0, now: (reference) => reference },
    changed: () => changes++,
    noticed() {},
  });
  await made.read();
  const fileOf = (name: string) => join(folder, 'toolsets', `${name}.json`);
  return { store, made, fileOf, names: () => made.known.map(({ name }) => name), changes: () => changes };
}

it('keeps the place of a toolset whose file is damaged, so that nothing changes for clients', async () => {
  const { made, fileOf, names, changes } = await open('dev', 'git', 'ops');
  writeFileSync(fileOf('dev'), '{"tools": [');
  expect((await made.read()).problems).toHaveLength(1);
  expect(names()).toEqual(['dev', 'git', 'ops']);
  expect(changes()).toBe(1);
});

it('reads nothing while a toolset is being written: a rename is one change', async () => {
  const { store, made, names, changes } = await open('dev');
  let read = Promise.resolve();
  await made.write(async () => {
    await store.create(toolset('ops'), 'project');
    // A file watcher sees the first half.
    read = made.load();
    await store.remove((await store.read('dev'))!);
  });
  await read;
  expect(made.adopt()).toBe(false);
  expect(names()).toEqual(['ops']);
  expect(changes()).toBe(2);
});

it('counts what was loaded when it is adopted, and never an older reading', async () => {
  const { made, fileOf, names, changes } = await open('dev', 'ops');
  rmSync(fileOf('ops'));
  await made.load();
  expect(names()).toEqual(['dev', 'ops']);
  await made.write(() => made.store.create(toolset('git'), 'project'));
  expect(made.adopt()).toBe(false);
  expect(names()).toEqual(['dev', 'git']);
  expect(changes()).toBe(2);
});
