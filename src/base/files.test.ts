import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { createFile, removeTemporaries, replaceFile, replaceFileDurably, writeFailure } from './files.ts';

describe.each([
  ['replaceFile', replaceFile],
  ['replaceFileDurably', replaceFileDurably],
])('%s', (_, replace) => {
  it('writes text and bytes readable by the owner only, and leaves no other files behind', async () => {
    const folder = join(tempFolder(), 'new');
    const file = join(folder, 'a.txt');
    await replace(file, 'old');
    await replace(file, Buffer.from('new'));
    expect(readFileSync(file, 'utf8')).toBe('new');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['a.txt']);
  });

  it('leaves no other files behind if it fails', async () => {
    const folder = tempFolder({ 'taken/inside.txt': '' });
    await expect(replace(join(folder, 'taken'), 'text')).rejects.toThrow();
    expect(readdirSync(folder)).toEqual(['taken']);
  });
});

describe('createFile', () => {
  it('creates a file once, even if several try at the same time', async () => {
    const file = join(tempFolder(), 'a.txt');
    const made = await Promise.all(['a', 'b', 'c'].map((text) => createFile(file, text)));
    expect(made.filter((one) => one)).toHaveLength(1);
    expect(readdirSync(join(file, '..'))).toEqual(['a.txt']);
  });

  it('reports why it fails', async () => {
    const file = join(tempFolder(), 'folder');
    mkdirSync(file);
    expect(await createFile(file, 'text')).toBe(false);
    await expect(createFile(join(file, '\0'), 'text')).rejects.toThrow();
  });
});

describe('a file that cannot be written', () => {
  it.each([
    ['EACCES', 'permission denied (EACCES). Make its folder writable for this user.'],
    ['EROFS', 'the file system is read-only (EROFS). Choose a folder that can be written.'],
    ['ENOSPC', 'there is no space left on the disk (ENOSPC). Make room there.'],
    ['EIO', 'EIO: i/o error. Check its folder.'],
  ])('is told with its cause and what to do: %s', (code, text) => {
    const cause = Object.assign(new Error(`${code}: i/o error`), { code });
    const failure = writeFailure('/data/usage.json', cause);
    expect(failure).toMatchObject({ code: 'storage_failed', cause });
    expect(failure.message).toBe(`/data/usage.json cannot be written: ${text}`);
  });

  it('is told by those who write it', async () => {
    const folder = tempFolder({ taken: 'a file' });
    await expect(replaceFile(join(folder, 'taken/inside.json'), '')).rejects.toMatchObject({ code: 'storage_failed' });
  });
});

it('removes temporary files that killed processes left behind, and nothing else', async () => {
  const folder = tempFolder();
  const old = new Date(Date.now() - 2 * 3_600_000);
  const names = ['a.json.4242.17.tmp', 'a.json.4242.0f3c.tmp', 'a.json', 'notes.tmp'];
  for (const name of names) {
    writeFileSync(join(folder, name), '');
    utimesSync(join(folder, name), old, old);
  }
  writeFileSync(join(folder, 'b.json.4242.18.tmp'), 'being written');
  await removeTemporaries([folder, join(folder, 'missing')]);
  expect(readdirSync(folder).sort()).toEqual(['a.json', 'b.json.4242.18.tmp', 'notes.tmp']);
});
