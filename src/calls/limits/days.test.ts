import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempFolder } from '../../../test/support/temp.ts';
import { openUsageStore } from '../../store/usage.ts';
import { Days } from './days.ts';

const NOON = Date.parse('2026-07-28T12:00:00Z');

function open(folder: string, clock = () => NOON) {
  const problems: string[] = [];
  const days = new Days(openUsageStore(folder), (problem) => problems.push(problem), clock);
  return { days, problems };
}

const saved = (folder: string) => JSON.parse(readFileSync(join(folder, 'usage.json'), 'utf8')) as unknown;

describe('daily call counts', () => {
  it('stop at the limit and survive a restart', async () => {
    const folder = tempFolder();
    const first = open(folder);
    const count = first.days.of('a');
    for (let i = 0; i < 3; i++) {
      expect(count.isUsedUp(3)).toBe(false);
      count.take();
    }
    expect(count.isUsedUp(3)).toBe(true);
    expect(first.days.left).toBe(12 * 3_600_000);
    await first.days.close();
    expect(saved(folder)).toEqual({ day: '2026-07-28', calls: { a: 3 } });
    const { days, problems } = open(folder);
    const again = days.of('a');
    expect([again.isUsedUp(3), again.isUsedUp(4), days.of('b').isUsedUp(1)]).toEqual([true, false, false]);
    expect(problems).toEqual([]);
  });

  it('are added to the counts in the file', async () => {
    const folder = tempFolder({ 'usage.json': '{"day":"2026-07-28","calls":{"a":5}}' });
    const { days } = open(folder);
    const count = days.of('a');
    count.take();
    await days.close();
    expect([count.count, saved(folder)]).toEqual([6, { day: '2026-07-28', calls: { a: 6 } }]);
  });

  it('of several processes are added up', async () => {
    const folder = tempFolder();
    const [one, two] = [open(folder).days, open(folder).days];
    one.of('a').take();
    two.of('a').take();
    two.of('b').take();
    await one.save();
    await two.save();
    expect(saved(folder)).toEqual({ day: '2026-07-28', calls: { a: 2, b: 1 } });
    expect(two.of('a').count).toBe(2);
  });

  it('start at zero on a new day', async () => {
    const folder = tempFolder();
    let now = NOON;
    const { days } = open(folder, () => now);
    const count = days.of('a');
    count.take();
    await days.save();
    now = Date.parse('2026-07-28T23:59:59.999Z');
    expect([count.isUsedUp(1), days.left]).toEqual([true, 1]);
    now++;
    expect([count.isUsedUp(1), days.left]).toEqual([false, 86_400_000]);
    count.take();
    await days.close();
    expect(saved(folder)).toEqual({ day: '2026-07-29', calls: { a: 1 } });
  });

  it.each([
    ['a truncated file', '{"day":"2026-07-28","ca'],
    ['a list', '[]'],
    ['text instead of numbers', '{"day":"2026-07-28","calls":{"a":"many"}}'],
    ['negative numbers', '{"day":"2026-07-28","calls":{"a":-1}}'],
  ])(
    'stay in memory if the file is damaged; that is reported once, and the file is left as it is: %s',
    async (_, text) => {
      const folder = tempFolder({ 'usage.json': text });
      const { days, problems } = open(folder);
      const count = days.of('a');
      days.of('b').take();
      count.take();
      await days.close();
      expect([count.isUsedUp(1), count.isUsedUp(2)]).toEqual([true, false]);
      expect(problems).toEqual([expect.stringMatching(/^calls of this day are counted in memory only: .*usage\.json/)]);
      expect(readFileSync(join(folder, 'usage.json'), 'utf8')).toBe(text);
    },
  );

  it('stay in memory if the file cannot be written', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'x'));
    writeFileSync(join(folder, 'x', 'data'), 'a file where the folder should be');
    const { days, problems } = open(join(folder, 'x', 'data'));
    days.of('a').take();
    await days.close();
    expect([days.of('a').count, problems.length]).toEqual([1, 1]);
  });
});
