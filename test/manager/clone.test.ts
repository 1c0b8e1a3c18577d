/** Clones of repositories: nothing of them runs, nothing leads out of them, and they stay within their bounds. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RepositoriesConfig } from '../../src/config/repositories.ts';
import { readRepoFile } from '../../src/manager/builder/read-repo-file.ts';
import { fetchRepository, listFiles, type Work } from '../../src/manager/builder/repositories.ts';
import { atEnd } from '../support/cleanup.ts';
import { gitRepository } from '../support/repository.ts';
import { tempFolder } from '../support/temp.ts';

const LOCAL: RepositoriesConfig = {
  from: 'local',
  size: 50 * 1024 * 1024,
  timeout: 60_000,
  quota: 100 * 1024 * 1024,
  keep: 3_600_000,
};

function work(dataDir = tempFolder(), more: Partial<Work> = {}): Work {
  return { dataDir, env: process.env, signal: null, progress: () => {}, ...more };
}

function commit(cwd: string): void {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd, stdio: 'pipe' });
  git('add', '-A');
  git('commit', '--quiet', '-m', 'More');
}

describe('a clone', () => {
  it('lists regular files only, and has none of them checked out', async () => {
    const origin = gitRepository({ 'src/a.ts': 'export {}', 'b.txt': 'b' });
    symlinkSync('/etc/passwd', join(origin, 'link'));
    mkdirSync(join(origin, '.git', 'hooks'), { recursive: true });
    const mark = join(tempFolder(), 'ran');
    for (const hook of ['post-checkout', 'post-merge', 'reference-transaction'])
      writeFileSync(join(origin, '.git', 'hooks', hook), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
    writeFileSync(join(origin, '.gitattributes'), '* filter=evil\n');
    writeFileSync(join(origin, '.gitmodules'), `[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch ${mark}"\n`);
    commit(origin);
    const at = work();
    // The hook of the test's own commit ran; that of the clone must not.
    execFileSync('rm', ['-f', mark]);
    const repository = await fetchRepository(origin, LOCAL, at);
    expect((await listFiles(repository, at)).map(({ path }) => path)).toEqual([
      '.gitattributes',
      '.gitmodules',
      'b.txt',
      'src/a.ts',
    ]);
    expect(existsSync(mark)).toBe(false);
    expect(readdirSync(repository.folder).sort()).toEqual(['git', 'origin.json']);
    expect(readdirSync(join(repository.folder, 'git'))).not.toContain('hooks');
  });

  it('takes the place of an earlier one, and two at once are one', async () => {
    const origin = gitRepository({ 'a.txt': 'one' });
    const at = work();
    const [first, second] = await Promise.all([fetchRepository(origin, LOCAL, at), fetchRepository(origin, LOCAL, at)]);
    expect(first.folder).toBe(second.folder);
    writeFileSync(join(origin, 'a.txt'), 'two');
    commit(origin);
    await fetchRepository(origin, LOCAL, at);
    expect(await readRepoFile(origin, 'a.txt', at)).toEqual({ path: 'a.txt', content: 'two' });
    expect(readdirSync(join(at.dataDir, 'repos'))).toHaveLength(1);
  });

  it('is given up if it is too large, takes too long, or is cancelled, and leaves nothing', async () => {
    const noise = randomBytes(300_000);
    const origin = gitRepository({ 'big.bin': noise });
    const at = work();
    await expect(fetchRepository(origin, { ...LOCAL, size: 10_000 }, at)).rejects.toThrow('Raise repositories.size');
    await expect(fetchRepository(origin, LOCAL, { ...at, signal: AbortSignal.abort() })).rejects.toThrow(
      'it was cancelled',
    );
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    atEnd(() => void silent.close());
    const { port } = silent.address() as { port: number };
    await expect(fetchRepository(`https://127.0.0.1:${port}/a/b`, { ...LOCAL, timeout: 500 }, at)).rejects.toThrow(
      'it took longer than',
    );
    expect(readdirSync(join(at.dataDir, 'repos'))).toEqual([]);
  });

  it('makes room by removing those that were not used for the longest time', async () => {
    const at = work();
    const origins = ['one', 'two', 'three'].map((text) => gitRepository({ 'a.txt': text }));
    const clones = [];
    for (const [index, origin] of origins.entries()) {
      const clone = await fetchRepository(origin, { ...LOCAL, quota: index < 2 ? LOCAL.quota : 1 }, at);
      clones.push(clone.folder);
      utimesSync(clone.folder, index, index);
    }
    expect(clones.map((folder) => existsSync(folder))).toEqual([false, false, true]);
    const old = await fetchRepository(origins[0]!, { ...LOCAL, keep: 1_000 }, at);
    expect([existsSync(old.folder), existsSync(clones[2]!)]).toEqual([true, false]);
  });
});

describe('an address that cannot be cloned', () => {
  const PUBLIC: RepositoriesConfig = { ...LOCAL, from: 'public' };
  it.each([
    ['http://github.com/a/b', 'only https is allowed'],
    ['ssh://git@github.com/a/b', 'only https is allowed'],
    ['git@github.com:a/b', 'it is not an address'],
    ['ext::sh -c touch% /tmp/x', 'contains spaces'],
    ['ext::sh', 'only https is allowed'],
    ['--upload-pack=touch', 'it is not an address'],
    ['-c', 'it is not an address'],
    ['/etc', 'it is a folder of this machine'],
    ['file:///etc', 'it is a folder of this machine'],
    ['https://user:geheim@github.com/a/b', 'it contains a login'],
    ['https://github.com/a/b?x=1', 'it has a "?"'],
    ['https://127.0.0.1/a/b', 'leads to a private address'],
    ['https://localhost/a/b', 'leads to a private address'],
    ['https://[::1]/a/b', 'leads to a private address'],
    ['https://169.254.169.254/latest', 'leads to a private address'],
    ['https://0x7f000001/a', 'leads to a private address'],
    [`https://github.com/${'a'.repeat(3_000)}`, 'it is too long'],
  ])('%s', async (url, why) => {
    const env = { PATH: process.env.PATH };
    const refused = fetchRepository(url, PUBLIC, work(undefined, { env }));
    await expect(refused).rejects.toThrow(why);
    await expect(refused).rejects.not.toThrow('geheim');
  });

  it('is an empty repository, or a folder that is none', async () => {
    const empty = tempFolder();
    execFileSync('git', ['init', '--quiet'], { cwd: empty });
    await expect(fetchRepository(empty, LOCAL, work())).rejects.toThrow('the repository is empty');
    await expect(fetchRepository(tempFolder(), LOCAL, work())).rejects.toThrow('could not be cloned');
  });
});

describe('a file of a repository', () => {
  it('is read as it is in the commit, and nothing else can be read', async () => {
    const origin = gitRepository({
      'src/a.py': 'print(1)\n',
      'b.bin': new Uint8Array([0, 1, 2]),
      'big.txt': 'x'.repeat(1_100_000),
    });
    const at = work();
    await expect(readRepoFile(origin, 'src/a.py', at)).rejects.toThrow('Call analyze_repo first');
    await fetchRepository(origin, LOCAL, at);
    expect(await readRepoFile(origin, './src/a.py', at)).toEqual({ path: 'src/a.py', content: 'print(1)\n' });
    for (const path of [
      '../origin.json',
      '/etc/passwd',
      'src/../src/a.py',
      '.git/config',
      'src',
      '',
      '-h',
      'a\0b',
      ':/b.bin',
    ])
      await expect(readRepoFile(origin, path, at)).rejects.toThrow('The repository has no file');
    await expect(readRepoFile(origin, 'src/a.p', at)).rejects.toThrow('Did you mean "src/a.py"?');
    await expect(readRepoFile(origin, 'b.bin', at)).rejects.toThrow('b.bin is not a text');
    await expect(readRepoFile(origin, 'big.txt', at)).rejects.toThrow('more than the 1 MiB');
  });
});
