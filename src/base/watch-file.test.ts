import { spawnSync } from 'node:child_process';
// Synchronous, so that a busy machine cannot pause between two steps of one change.
import {
  appendFileSync as append,
  closeSync as closeFile,
  linkSync as link,
  mkdirSync as mkdir,
  mkdtempSync as mkdtemp,
  openSync as openFile,
  readFileSync as read,
  renameSync as rename,
  rmSync as rm,
  symlinkSync as symlink,
  unlinkSync as unlink,
  writeFileSync as write,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { rolldown } from 'rolldown';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { watchFile, watchFilesIn } from './watch-file.ts';

let folder: string;
let file: string;
let changes: number;
let watcher: { close(): void } | undefined;

beforeEach(() => {
  folder = mkdtemp(join(tmpdir(), 'toolgate-watch-'));
  file = join(folder, 'tools.toml');
  changes = 0;
  // Polls happen only when a test wants one. Everything else must be noticed by events.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
  watcher?.close();
  rm(folder, { recursive: true, force: true });
});

function start(path = file): void {
  watcher = watchFile(path, () => changes++);
}

/** Waits until a notification reports the next change. */
async function nextChange(): Promise<void> {
  const before = changes;
  for (const end = Date.now() + 10_000; changes === before; await sleep(10)) {
    if (Date.now() > end) throw new Error('no change was noticed within 10 s');
  }
}

/** The next poll, at once: no notification can come before it. */
const poll = () => vi.advanceTimersByTime(2000);

/** Long enough for a notification and the pause after it. */
const settle = () => sleep(300);

describe('a watched folder', () => {
  it('reports a file that came and went, because somebody may have read it in between', async () => {
    watcher = watchFilesIn(folder, () => changes++);
    write(file, 'a');
    unlink(file);
    await nextChange();
  });
});

describe('a watched file', () => {
  beforeEach(() => {
    write(file, 'a');
    start();
  });

  it('is reported each time it is written in place', async () => {
    write(file, 'b');
    await nextChange();
    append(file, 'c');
    await nextChange();
    await settle();
    expect(changes).toBe(2);
  });

  it('is reported each time another file is renamed over it, as editors do', async () => {
    for (const text of ['b', 'c', 'd']) {
      write(`${file}.tmp`, text);
      rename(`${file}.tmp`, file);
      await nextChange();
    }
    await settle();
    expect(changes).toBe(3);
  });

  it('is not reported while it is deleted, but when it is back with other content', async () => {
    unlink(file);
    await settle();
    expect(changes).toBe(0);
    write(file, 'b');
    await nextChange();
  });

  it('is not reported if it comes back unchanged', async () => {
    unlink(file);
    await settle();
    write(file, 'a');
    await settle();
    expect(changes).toBe(0);
  });

  it('is not reported when other files in its folder change', async () => {
    write(join(folder, 'other'), 'b');
    write(file, 'a');
    await settle();
    expect(changes).toBe(0);
  });

  it('is reported once for a burst of writes', async () => {
    for (let i = 0; i < 20; i++) write(file, `b${i}`);
    await nextChange();
    await settle();
    expect(changes).toBe(1);
  });

  it('is reported by polling if the system sends no events', async () => {
    mkdir(join(folder, 'other'));
    link(file, join(folder, 'other/same'));
    write(join(folder, 'other/same'), 'b');
    poll();
    await nextChange();
  });

  it('is reported by polling if it is replaced without a long enough pause', async () => {
    for (const text of ['b', 'c']) {
      write(`${file}.tmp`, text);
      // The system counts time in steps of some milliseconds, and a name given in a later step tells a finished file.
      await sleep(20);
      rename(`${file}.tmp`, file);
      poll();
    }
    expect(changes).toBe(2);
  });

  it('is reported within half a second if it is replaced by a shorter file', async () => {
    write(file, 'a longer text');
    await nextChange();
    const started = performance.now();
    write(`${file}.tmp`, 'b');
    rename(`${file}.tmp`, file);
    await nextChange();
    expect(performance.now() - started).toBeLessThan(patient(500));
  });

  it('is no longer watched after closing, even if closed twice', async () => {
    write(file, 'b');
    watcher?.close();
    watcher?.close();
    await settle();
    expect(changes).toBe(0);
  });

  it('is found again after its whole folder was replaced', async () => {
    const copy = `${folder}.new`;
    mkdir(copy);
    write(join(copy, 'tools.toml'), 'b');
    rm(folder, { recursive: true });
    await settle();
    rename(copy, folder);
    poll();
    await nextChange();
    write(file, 'c');
    await nextChange();
  });
});

describe('a watched file that does not exist yet', () => {
  it('is reported when it appears', async () => {
    start();
    write(file, 'a');
    await nextChange();
  });

  it('is reported when it appears together with its folder', async () => {
    start(join(folder, 'x/y/tools.toml'));
    mkdir(join(folder, 'x/y'), { recursive: true });
    write(join(folder, 'x/y/tools.toml'), 'a');
    poll();
    await nextChange();
  });
});

describe('a watched file that is saved in place, with a pause', () => {
  const before = `[denied_tools]\nfiles = ["write_file"]\n\n${'# a comment\n'.repeat(8)}`;
  const after = `# edited\n${before}[agents.ci]\n`;
  const prefixes = Array.from({ length: after.length }, (_, length) => after.slice(0, length));

  /** Watches a file for each prefix. Returns what was read at each report. */
  function watchEach(texts: readonly string[]): { files: string[]; seen: string[][]; close(): void } {
    const files = texts.map((_, i) => join(folder, `${i}.toml`));
    const seen = texts.map((): string[] => []);
    for (const one of files) write(one, before);
    const watchers = files.map((one, i) => watchFile(one, () => seen[i]!.push(read(one, 'utf8'))));
    const close = () => {
      for (const one of watchers) one.close();
    };
    return { files, seen, close };
  }

  async function allSeen(seen: readonly string[][]): Promise<void> {
    for (const end = Date.now() + patient(15_000); seen.some((texts) => texts.length === 0); await sleep(50))
      if (Date.now() > end) throw new Error('a change was not noticed in time');
    expect(new Set(seen.flat())).toEqual(new Set([after]));
  }

  it('is not reported while the file is open for writing, at any prefix', async () => {
    const some = prefixes.filter((_, length) => length % 12 === 0);
    const { files, seen, close } = watchEach(some);
    const open = files.map((one) => openFile(one, 'w'));
    for (const [i, fd] of open.entries()) write(fd, some[i]!);
    // Longer than a shorter file has to rest.
    await sleep(3000);
    expect(seen.flat()).toEqual([]);
    for (const [i, fd] of open.entries()) {
      write(fd, after.slice(some[i]!.length));
      closeFile(fd);
    }
    await allSeen(seen);
    close();
  });

  it('is not reported between two writes a second apart that each open the file, at any shorter prefix', async () => {
    const shorter = prefixes.filter(({ length }) => length < before.length);
    // On a busy machine the pause becomes longer than a file has to rest. Such a try says nothing.
    for (let tries = 0; ; tries += 1) {
      const { files, seen, close } = watchEach(shorter);
      const began = performance.now();
      for (const [i, one] of files.entries()) write(one, shorter[i]!);
      await sleep(1000);
      const early = seen.flat();
      for (const [i, one] of files.entries()) append(one, after.slice(shorter[i]!.length));
      const pause = performance.now() - began;
      if (pause > 1_500 && tries < 20) {
        close();
        continue;
      }
      expect(early).toEqual([]);
      await allSeen(seen);
      close();
      return;
    }
  });
});

describe('a watched symlink', () => {
  it('is followed to a file in another folder', async () => {
    mkdir(join(folder, 'other'));
    const target = join(folder, 'other/real.toml');
    write(target, 'a');
    symlink('other/real.toml', file);
    start();
    write(target, 'b');
    await nextChange();
    write(`${target}.tmp`, 'c');
    rename(`${target}.tmp`, target);
    await nextChange();
  });

  it('is reported when its target changes, and the new target is watched', async () => {
    for (const name of ['one', 'two']) {
      mkdir(join(folder, name));
      write(join(folder, name, 'real.toml'), name);
    }
    symlink('one/real.toml', file);
    start();
    symlink('two/real.toml', `${file}.tmp`);
    rename(`${file}.tmp`, file);
    await nextChange();
    write(join(folder, 'two/real.toml'), 'three');
    await nextChange();
  });

  it('is watched at every hop of a chain through other folders', async () => {
    for (const name of ['a', 'b', 'c', 'd']) mkdir(join(folder, name));
    write(join(folder, 'c/real.toml'), 'c');
    write(join(folder, 'd/real.toml'), 'd');
    symlink(join(folder, 'c'), join(folder, 'b/current'));
    symlink('../b/current/real.toml', join(folder, 'a/link.toml'));
    symlink('a/link.toml', file);
    start();
    symlink(join(folder, 'd'), join(folder, 'b/next'));
    rename(join(folder, 'b/next'), join(folder, 'b/current'));
    await nextChange();
  });

  it('may point to itself without harm', async () => {
    symlink('tools.toml', file);
    start();
    unlink(file);
    write(file, 'a');
    await nextChange();
  });
});

describe('a watched file in a mounted ConfigMap', () => {
  /** As the kubelet does: a new folder, a new link to it renamed over `..data`, the old folder deleted. */
  function* publish(version: number) {
    const name = `..2026_${version}`;
    mkdir(join(folder, name));
    yield write(join(folder, name, 'tools.toml'), `version ${version}`);
    yield symlink(name, join(folder, '..data_tmp'));
    yield rename(join(folder, '..data_tmp'), join(folder, '..data'));
    rm(join(folder, `..2026_${version - 1}`), { recursive: true, force: true });
  }

  beforeEach(() => {
    for (const _ of publish(1));
    symlink('..data/tools.toml', file);
  });

  it('is reported at each update', async () => {
    start();
    for (const version of [2, 3, 4]) {
      for (const _ of publish(version));
      await nextChange();
    }
    await settle();
    expect(changes).toBe(3);
  });

  it('is read in its final state, however its updates are timed', async () => {
    let seen = '';
    watcher = watchFile(file, () => {
      seen = read(file, 'utf8');
    });
    for (let version = 2; version <= 30; version++) {
      for (const _ of publish(version)) await sleep(Math.random() * 50);
    }
    poll();
    for (const end = Date.now() + 10_000; seen !== 'version 30' && Date.now() < end; ) await sleep(10);
    expect(seen).toBe('version 30');
  });
});

it('watchFile does not keep the process alive', async () => {
  write(file, 'a');
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'watch-file.ts'),
    platform: 'node',
    logLevel: 'silent',
  });
  const program = join(folder, 'watch.mjs');
  await bundle.write({ file: program });
  const script = `
    const { watchFile } = await import(${JSON.stringify(program)});
    watchFile(${JSON.stringify(file)}, () => {});
  `;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 10_000 });
  expect(stderr.toString()).toBe('');
  expect(status).toBe(0);
});
