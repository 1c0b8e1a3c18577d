import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { patient } from '../../test/support/patience.ts';
import { tempFolder } from '../../test/support/temp.ts';
import { isAlive, tryLock, withLock } from './lock.ts';

const newFile = () => join(tempFolder(), 'count.txt');
/** Larger than any process id that Linux assigns. */
const NO_PROCESS = 4_194_999;

describe('withLock', () => {
  it('serializes concurrent read-modify-write cycles', async () => {
    const file = newFile();
    writeFileSync(file, '0');
    const add = async () => {
      const count = Number(await readFile(file, 'utf8'));
      await sleep(Math.random() * 3);
      await writeFile(file, String(count + 1));
    };
    await Promise.all(Array.from({ length: 40 }, () => withLock(file, add)));
    expect(await readFile(file, 'utf8')).toBe('40');
    expect(existsSync(`${file}.lock`)).toBe(false);
  });

  it('releases the lock after a failure', async () => {
    const file = newFile();
    await expect(withLock(file, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(file, async () => 'yes')).toBe('yes');
  });

  it('takes over the lock of a dead process', async () => {
    const file = newFile();
    writeFileSync(`${file}.lock`, `${NO_PROCESS} ${hostname()} x\n`);
    const started = Date.now();
    await Promise.all([1, 2, 3].map(() => withLock(file, () => sleep(1))));
    expect(Date.now() - started).toBeLessThan(patient(2_000));
  });

  it('takes over the lock of a process that has not refreshed it for too long', async () => {
    const file = newFile();
    writeFileSync(`${file}.lock`, `${process.pid} ${hostname()} x\n`);
    const long = new Date(Date.now() - 11_000);
    utimesSync(`${file}.lock`, long, long);
    expect(await withLock(file, async () => 'mine')).toBe('mine');
  });
});

describe('tryLock', () => {
  it('grants the lock to one holder at a time, until it is released', async () => {
    const path = `${newFile()}.lock`;
    const lock = await tryLock(path);
    expect(await lock!.isHeld()).toBe(true);
    expect(await tryLock(path)).toBe(null);
    await lock!.release();
    expect(await lock!.isHeld()).toBe(false);
    expect(await tryLock(path)).not.toBe(null);
  });

  it('leaves the lock of another machine alone, because its process ids mean nothing here', async () => {
    const path = `${newFile()}.lock`;
    const holder = `${NO_PROCESS} not-${hostname()} x\n`;
    writeFileSync(path, holder);
    expect([await tryLock(path), await tryLock(path)]).toEqual([null, null]);
    expect(readFileSync(path, 'utf8')).toBe(holder);
  });

  it('refreshes the lock while it is held and notices if it was taken over', async () => {
    const path = `${newFile()}.lock`;
    const lock = await tryLock(path, 60);
    const { mtimeMs } = await stat(path);
    await expect.poll(async () => (await stat(path)).mtimeMs).toBeGreaterThan(mtimeMs);
    writeFileSync(path, 'another');
    expect(await lock!.isHeld()).toBe(false);
    await lock!.release();
    expect(readFileSync(path, 'utf8')).toBe('another');
  });
});

it('isAlive is true for running processes, including those of other users', () => {
  expect([process.pid, 1].map(isAlive)).toEqual([true, true]);
});

it('isAlive is false for ids without a process', () => {
  // The first id is larger than any that Linux assigns.
  expect([4_194_999, 0, -1, 1.5, Number.NaN].map(isAlive)).toEqual([false, false, false, false, false]);
});

it('takes over a lock whose time is in the future once nobody has refreshed it for a while', async () => {
  const path = join(tempFolder(), 'x.lock');
  writeFileSync(path, '1 another-machine abc\n');
  const future = new Date(Date.now() + 3_600_000);
  utimesSync(path, future, future);
  const started = performance.now();
  let lock = await tryLock(path, 300);
  expect(lock).toBeNull();
  while (lock === null && performance.now() - started < 10_000) {
    await sleep(50);
    lock = await tryLock(path, 300);
  }
  expect(performance.now() - started).toBeGreaterThan(290);
  expect(await lock?.isHeld()).toBe(true);
  await lock?.release();
});

it('says at once that a folder is in the place of a lock', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'x.lock'));
  await expect(withLock(join(folder, 'x'), async () => {})).rejects.toThrow('is a folder in the place of a lock file');
});
