import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { withLock } from './lock.ts';

describe('withLock', () => {
  const place = () => join(tempFolder(), 'count.txt');

  it('lets one after the other read, change and write', async () => {
    const file = place();
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

  it('is free again after a failure', async () => {
    const file = place();
    await expect(withLock(file, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(file, async () => 'yes')).toBe('yes');
  });

  it('is taken from a process that has died', async () => {
    const file = place();
    // More than any process is called.
    writeFileSync(`${file}.lock`, '4194999 x\n');
    const started = Date.now();
    await Promise.all([1, 2, 3].map(() => withLock(file, () => sleep(1))));
    expect(Date.now() - started).toBeLessThan(2_000);
  });

  it('is taken from one that holds it for too long', async () => {
    const file = place();
    writeFileSync(`${file}.lock`, `${process.pid} x\n`);
    const long = new Date(Date.now() - 11_000);
    utimesSync(`${file}.lock`, long, long);
    expect(await withLock(file, async () => 'mine')).toBe('mine');
  });
});
