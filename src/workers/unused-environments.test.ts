import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sweepEnvironments } from './unused-environments.ts';

let data: string;
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'toolgate-'));
});
afterEach(() => rmSync(data, { recursive: true }));

const make = (...folders: string[]) => {
  for (const folder of folders) mkdirSync(join(data, folder), { recursive: true });
};
const left = (place: string) => readdirSync(join(data, place)).sort();

describe('the environments of folders that are gone', () => {
  it('are removed when they are found for the second time, and all others stay', async () => {
    make('tools/here', 'venvs/here/k', 'venvs/here.node/k', 'workers/here');
    make('venvs/gone/k', 'venvs/gone.node/k', 'workers/gone', 'venvs/_base/k', 'venvs/named.0123abcd.node/k');
    symlinkSync(join(data, 'tools'), join(data, 'venvs/link'));
    const first = await sweepEnvironments(data, new Set(['here']), new Set());
    expect([...first]).toEqual(['gone']);
    expect(left('venvs')).toContain('gone');
    expect([...(await sweepEnvironments(data, new Set(['here']), first))]).toEqual([]);
    expect(left('venvs')).toEqual(['_base', 'here', 'here.node', 'link', 'named.0123abcd.node']);
    expect(left('workers')).toEqual(['here']);
  });

  it('stay if the folder is back in time', async () => {
    make('tools', 'venvs/moved/k');
    const first = await sweepEnvironments(data, new Set(), new Set());
    make('tools/moved');
    expect([...(await sweepEnvironments(data, new Set(), first))]).toEqual([]);
    expect(left('venvs')).toEqual(['moved']);
  });

  it('stay if there is no folder of namespaces at all, as without its volume', async () => {
    make('venvs/a/k');
    for (let i = 0; i < 2; i++) expect([...(await sweepEnvironments(data, new Set(), new Set(['a'])))]).toEqual([]);
    expect(left('venvs')).toEqual(['a']);
  });

  it('of folders elsewhere are removed if nobody has used them for a month', async () => {
    make('tools', 'venvs/x.0123abcd.node/k', 'venvs/y.0123abcd.node/k');
    const old = new Date(Date.now() - 40 * 24 * 60 * 60 * 1000);
    for (const name of ['x', 'y']) utimesSync(join(data, `venvs/${name}.0123abcd.node`), old, old);
    writeFileSync(join(data, 'venvs/y.0123abcd.node/k/ready.json'), '{}');
    const first = await sweepEnvironments(data, new Set(), new Set());
    await sweepEnvironments(data, new Set(), first);
    expect(left('venvs')).toEqual(['y.0123abcd.node']);
  });
});
