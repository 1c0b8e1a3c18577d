import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../test/support/temp.ts';
import { jsonFile } from './json-file.ts';
import { isObject } from './objects.ts';

function countIn(value: unknown): { readonly count: number } {
  if (!isObject(value) || typeof value.count !== 'number') throw new Error('"count" must be a number');
  return { count: value.count };
}

describe('jsonFile', () => {
  const open = (path = join(tempFolder(), 'below', 'count.json')) => jsonFile(path, 'a count', countIn);

  it('reads what was written, and null before the first write', async () => {
    const file = open();
    expect([await file.read(), file.readSync()]).toEqual([null, null]);
    await file.write({ count: 1 });
    expect([await file.read(), file.readSync()]).toEqual([{ count: 1 }, { count: 1 }]);
    expect(readFileSync(file.path, 'utf8')).toBe('{\n  "count": 1\n}\n');
  });

  it.each(['{"count":', '{"count":"1"}', '[]'])('reports %j and does not overwrite it', async (text) => {
    const file = open(join(tempFolder(), 'count.json'));
    writeFileSync(file.path, text);
    const problem = new RegExp(`^${file.path} is not a count \\(.+\\)\\. Correct or remove it\\.$`);
    await expect(file.read()).rejects.toThrow(problem);
    expect(() => file.readSync()).toThrow(problem);
    await expect(file.change(() => ({ count: 2 }))).rejects.toThrow(problem);
    expect(readFileSync(file.path, 'utf8')).toBe(text);
  });

  it('reports a file that cannot be read', async () => {
    const file = open(join(tempFolder(), 'count.json'));
    mkdirSync(file.path);
    await expect(file.read()).rejects.toThrow('EISDIR');
  });

  it('loses no change when several are made concurrently', async () => {
    const path = join(tempFolder(), 'count.json');
    await Promise.all(
      Array.from({ length: 30 }, () => open(path).change((value) => ({ count: (value?.count ?? 0) + 1 }))),
    );
    expect(await open(path).read()).toEqual({ count: 30 });
    expect(readdirSync(join(path, '..'))).toEqual(['count.json']);
  });

  it('does not write the file if nothing changes', async () => {
    const file = open();
    expect(await file.change(() => null)).toBe(null);
    expect(existsSync(file.path)).toBe(false);
    expect(await file.change(() => ({ count: 1 }))).toEqual({ count: 1 });
    expect(await file.change(() => null)).toEqual({ count: 1 });
  });
});
