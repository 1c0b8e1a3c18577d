import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { openUsageStore } from './usage.ts';

const DAY = '2026-07-28';
const inFile = (folder: string) => JSON.parse(readFileSync(join(folder, 'usage.json'), 'utf8')) as unknown;

describe('the usage store', () => {
  it('loses no call when several stores add at the same time', async () => {
    const folder = tempFolder();
    const stores = [1, 2, 3].map(() => openUsageStore(folder));
    await Promise.all(stores.flatMap((store) => Array.from({ length: 10 }, () => store.add(DAY, new Map([['a', 1]])))));
    expect(inFile(folder)).toEqual({ day: DAY, calls: { a: 30 } });
  });

  it('returns sums that include the calls of the others', async () => {
    const folder = tempFolder();
    await openUsageStore(folder).add(DAY, new Map([['a', 2]]));
    const sums = await openUsageStore(folder).add(DAY, new Map(Object.entries({ a: 1, b: 1 })));
    expect(Object.fromEntries(sums)).toEqual({ a: 3, b: 1 });
  });

  it('keeps the counts of the next day, if another process has already begun it', async () => {
    const folder = tempFolder();
    const store = openUsageStore(folder);
    await store.add('2026-07-29', new Map([['a', 1]]));
    expect([...(await store.add(DAY, new Map([['a', 5]])))]).toEqual([['a', 5]]);
    expect(inFile(folder)).toEqual({ day: '2026-07-29', calls: { a: 1 } });
  });

  it('counts from zero on a new day', async () => {
    const folder = tempFolder();
    const store = openUsageStore(folder);
    await store.add(DAY, new Map([['a', 5]]));
    expect(store.read('2026-07-29').size).toBe(0);
    expect([...(await store.add('2026-07-29', new Map([['a', 1]])))]).toEqual([['a', 1]]);
  });

  it.each(['{', '{"day":"2026-07-28"}', '{"day":"2026-07-28","calls":{"a":-1}}'])('reports %s', async (text) => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'usage.json'), text);
    const store = openUsageStore(folder);
    expect(() => store.read(DAY)).toThrow('usage.json is not a count of calls');
    await expect(store.add(DAY, new Map([['a', 1]]))).rejects.toThrow('Correct or remove it');
    expect(readFileSync(join(folder, 'usage.json'), 'utf8')).toBe(text);
  });
});
