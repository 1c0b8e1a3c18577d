/**
 * A folder of tools that is added, edited or deleted is noticed within a second. An event that changes nothing is not
 * reported.
 */
import { chmodSync, copyFileSync, cpSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { NamespaceScan } from '../../src/workers/namespaces.ts';
import { type WatchOptions, watchNamespaces } from '../../src/workers/watch-folders.ts';
import { atEnd } from '../support/cleanup.ts';
import { asOtherUser } from '../support/other-user.ts';
import { waitFor } from '../support/processes.ts';
import { type Files, tempFolder, writeFiles } from '../support/temp.ts';

async function start(files: Files = {}, more: Partial<WatchOptions> = {}) {
  const dataDir = tempFolder(files);
  const told: NamespaceScan[] = [];
  const watching = await watchNamespaces({ dataDir, ...more, changed: (scan) => told.push(scan) });
  atEnd(() => watching.close());
  const names = (scan: NamespaceScan | undefined) => scan?.namespaces.map(({ name }) => name);
  return {
    dataDir,
    tools: join(dataDir, 'tools'),
    told,
    watching,
    names: () => names(watching.scan),
    /** Makes the change and returns the milliseconds until it was reported. */
    async after(change: () => void): Promise<number> {
      const before = told.length;
      const began = performance.now();
      change();
      await waitFor(() => told.length > before);
      return performance.now() - began;
    },
  };
}

it('the folder watcher notices a folder added to tools/, edited and deleted, each within a second', async () => {
  const { tools, after, told, names } = await start({ 'tools/a/x.py': '1' });
  expect(names()).toEqual(['a']);
  const ready = tempFolder({ 'b/x.ts': '', 'b/lib/y.ts': '' });
  const times = [
    await after(() => cpSync(join(ready, 'b'), join(tools, 'b'), { recursive: true })),
    await after(() => writeFileSync(join(tools, 'a/x.py'), '2')),
    await after(() => writeFileSync(join(tools, 'b/lib/y.ts'), '2')),
    await after(() => writeFileSync(join(tools, 'a/requirements.txt'), 'httpx')),
    await after(() => rmSync(join(tools, 'b'), { recursive: true })),
  ];
  expect(told.map((scan) => scan.namespaces.map(({ name }) => name))).toEqual([
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
    ['a'],
  ]);
  // One of them may fall into a pause of a busy machine.
  expect(times.filter((ms) => ms < 1_000).length).toBeGreaterThanOrEqual(4);
});

it('the folder watcher notices tools/ created later, removed with its parents, and created again', async () => {
  const dataDir = join(tempFolder(), 'not/there/yet');
  const told: NamespaceScan[] = [];
  const watching = await watchNamespaces({ dataDir, changed: (scan) => told.push(scan) });
  atEnd(() => watching.close());
  for (let round = 1; round <= 3; round++) {
    writeFiles(dataDir, { 'tools/a/x.py': `${round}` });
    await waitFor(() => watching.scan.namespaces.length === 1);
    writeFiles(dataDir, { 'tools/a/x.py': `${round} again` });
    const before = told.length;
    await waitFor(() => told.length > before);
    rmSync(join(dataDir, '../..'), { recursive: true });
    await waitFor(() => watching.scan.namespaces.length === 0);
  }
});

it('the folder watcher notices a namespace replaced by another of the same name, and keeps watching it', async () => {
  const { tools, after, watching } = await start({ 'tools/a/x.py': '1' });
  const other = tempFolder({ 'a/x.py': '2' });
  await after(() => {
    rmSync(join(tools, 'a'), { recursive: true });
    cpSync(join(other, 'a'), join(tools, 'a'), { recursive: true });
  });
  const { hash } = watching.scan.namespaces[0]!;
  await after(() => writeFileSync(join(tools, 'a/x.py'), '3'));
  expect(watching.scan.namespaces[0]!.hash).not.toBe(hash);
  // Moved away and back, as deployments do.
  await after(() => {
    renameSync(join(tools, 'a'), join(tools, 'old'));
    mkdirSync(join(tools, 'a'));
    copyFileSync(join(tools, 'old/x.py'), join(tools, 'a/x.py'));
  });
  await after(() => rmSync(join(tools, 'old'), { recursive: true }));
  await after(() => writeFileSync(join(tools, 'a/x.py'), '4'));
});

it('the folder watcher notices how editors save: a new file renamed over the old one', async () => {
  const { tools, after } = await start({ 'tools/a/x.py': '1' });
  for (const content of ['2', '3']) {
    await after(() => {
      writeFileSync(join(tools, 'a/.x.py.swp'), content);
      writeFileSync(join(tools, 'a/4913'), '');
      rmSync(join(tools, 'a/4913'));
      renameSync(join(tools, 'a/.x.py.swp'), join(tools, 'a/x.py'));
    });
  }
});

it('the folder watcher reports nothing if the content is unchanged', async () => {
  const { tools, told, watching } = await start({ 'tools/a/x.py': '1', 'tools/a/lib/y.py': '1' });
  const { hash } = watching.scan.namespaces[0]!;
  writeFileSync(join(tools, 'a/x.py'), '1');
  utimesSync(join(tools, 'a/lib/y.py'), 1, 1);
  writeFiles(tools, {
    'a/__pycache__/x.pyc': 'x',
    'a/.git/index': 'x',
    'a/notes.md': 'x',
    'a/node_modules/p/i.js': '',
  });
  await sleep(1_500);
  expect([told.length, watching.scan.namespaces[0]!.hash]).toEqual([0, hash]);
});

it('the folder watcher merges thousands of events into few reports, even during continuous writes', async () => {
  const { tools, told, after } = await start({ 'tools/a/x.py': '1' });
  await after(() => {
    for (let i = 0; i < 3_000; i++) writeFileSync(join(tools, `a/x${i % 50}.py`), `${i}`);
  });
  await sleep(1_000);
  expect(told.length).toBeLessThan(4);
  const before = told.length;
  let writes = 0;
  // The reports do not wait for the end of the writes.
  await waitFor(() => {
    writeFileSync(join(tools, 'a/x.py'), `${++writes}`);
    return told.length - before >= 3;
  });
  expect(writes).toBeGreaterThan(9);
});

it('the folder watcher watches folders in other locations, and follows a new list of them', async () => {
  const [one, two] = [tempFolder({ 'x.py': '1' }), tempFolder({ 'x.py': '1' })];
  const { after, watching, names, told } = await start({}, { folders: [{ name: 'one', folder: one }] });
  await after(() => writeFileSync(join(one, 'x.py'), '2'));
  await watching.setFolders([{ name: 'two', folder: two }]);
  expect(names()).toEqual(['two']);
  await after(() => writeFileSync(join(two, 'x.py'), '2'));
  const count = told.length;
  writeFileSync(join(one, 'x.py'), '3');
  await sleep(700);
  expect(told.length).toBe(count);
});

it('the folder watcher notices changes in a folder that it may not watch, because it looks there every second', async () => {
  const dataDir = tempFolder();
  await asOtherUser(dataDir, async () => {
    // Enough to use what is in it, but not to read its list, which watching needs.
    chmodSync(dataDir, 0o300);
    const watching = await watchNamespaces({ dataDir, changed: () => {} });
    try {
      writeFiles(dataDir, { 'tools/a/x.py': '1' });
      // A folder that is watched is looked at every ten seconds.
      await waitFor(() => watching.scan.namespaces.length === 1, 8_000);
    } finally {
      watching.close();
      chmodSync(dataDir, 0o700);
    }
  });
});

it('the folder watcher checks only on request if watching is disabled', async () => {
  const { tools, told, watching } = await start({ 'tools/a/x.py': '1' }, { enabled: false });
  writeFileSync(join(tools, 'a/x.py'), '2');
  await sleep(1_200);
  expect(told).toEqual([]);
  await watching.check();
  expect(told).toHaveLength(1);
});

it('the folder watcher reports nothing after it is closed', async () => {
  const { tools, told, watching } = await start({ 'tools/a/x.py': '1' });
  writeFileSync(join(tools, 'a/x.py'), '2');
  watching.close();
  await sleep(600);
  await watching.check();
  expect(told).toEqual([]);
});
