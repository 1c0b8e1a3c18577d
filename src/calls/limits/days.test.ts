import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { tempFolder } from '../../../test/support/temp.ts';
import { openUsageStore } from '../../store/usage.ts';
import { Days } from './days.ts';

const NOON = Date.parse('2026-07-28T12:00:00Z');

function open(folder: string, clock = () => NOON) {
  const problems: string[] = [];
  const days = new Days(openUsageStore(folder), (problem) => problems.push(problem), clock);
  return { days, problems };
}

/** Calls of a day, as a new process counts them. */
function counted(folder: string, key: string, day = '2026-07-28'): number {
  const store = openUsageStore(folder);
  store.take(day, key, 0);
  const sum = store.taken(day, key);
  store.close();
  return sum;
}

/** How many of so many calls go through. */
function passed(count: ReturnType<Days['of']>, calls: number, limit: number): number {
  let sum = 0;
  for (let i = 0; i < calls; i++) if (count.take(limit)) sum++;
  return sum;
}

describe('daily call counts', () => {
  it('stop at the limit and survive a restart', () => {
    const folder = tempFolder();
    const first = open(folder);
    const count = first.days.of('a');
    expect(passed(count, 5, 3)).toBe(3);
    expect(count.isUsedUp(3)).toBe(true);
    expect(first.days.left).toBe(12 * 3_600_000);
    first.days.close();
    const { days, problems } = open(folder);
    expect([days.of('a').take(3), days.of('a').take(4), days.of('b').take(1)]).toEqual([false, true, true]);
    expect(problems).toEqual([]);
  });

  it('are the same after a process was killed: every call is in the file before it is made', () => {
    const folder = tempFolder();
    expect(passed(open(folder).days.of('a'), 7, 10)).toBe(7);
    expect(passed(open(folder).days.of('a'), 7, 10)).toBe(3);
  });

  it.each([10, 9_999, 25_000])('of several processes never pass a limit of %d together', (limit) => {
    const folder = tempFolder();
    const all = [1, 2, 3].map(() => open(folder).days);
    let sum = 0;
    for (let round = 0; round < limit; round++) for (const days of all) if (days.of('a').take(limit)) sum++;
    expect(sum).toBe(limit);
    for (const days of all) days.close();
    expect(counted(folder, 'a')).toBe(limit);
  });

  it('of a large limit are taken in parts, and what is not used is given back', () => {
    const folder = tempFolder();
    const { days } = open(folder);
    const count = days.of('a');
    expect(passed(count, 150, 1_000_000)).toBe(150);
    expect(counted(folder, 'a')).toBe(200);
    days.close();
    expect(counted(folder, 'a')).toBe(150);
  });

  it('go on when a process that ended gives calls back', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const folder = tempFolder();
    const [one, two] = [open(folder).days, open(folder).days];
    expect(passed(one.of('a'), 1, 20_000)).toBe(1);
    expect(passed(two.of('a'), 20_000, 20_000)).toBe(19_998);
    one.close();
    vi.advanceTimersByTime(1_000);
    expect(passed(two.of('a'), 5, 20_000)).toBe(1);
    vi.useRealTimers();
  });

  it('start at zero on a new day', () => {
    const folder = tempFolder();
    let now = NOON;
    const { days } = open(folder, () => now);
    const count = days.of('a');
    expect(passed(count, 2, 1)).toBe(1);
    now = Date.parse('2026-07-28T23:59:59.999Z');
    expect([count.take(1), days.left]).toEqual([false, 1]);
    now++;
    expect([count.isUsedUp(1), days.left]).toEqual([false, 86_400_000]);
    expect(passed(count, 2, 1)).toBe(1);
    expect([counted(folder, 'a'), counted(folder, 'a', '2026-07-29')]).toEqual([1, 1]);
  });

  it('forget files after a week', () => {
    const folder = tempFolder({ 'usage/2026-07-20.jsonl': '', 'usage/2026-07-22.jsonl': '', 'usage/notes.txt': '' });
    open(folder).days.of('a').take(1);
    expect(readdirSync(join(folder, 'usage')).sort()).toEqual(['2026-07-22.jsonl', '2026-07-28.jsonl', 'notes.txt']);
  });

  it('skip lines that were cut off or are not theirs', () => {
    const folder = tempFolder();
    passed(open(folder).days.of('a'), 2, 10);
    const file = join(folder, 'usage/2026-07-28.jsonl');
    appendFileSync(file, 'x\n[]\n{"key":"a","calls":"many"}\n{"key":"a","calls":5,"li');
    expect(passed(open(folder).days.of('a'), 20, 10)).toBe(8);
    expect(readFileSync(file, 'utf8')).toContain('"calls":5,"li\n');
  });

  it('begin again if the file is removed', () => {
    const folder = tempFolder();
    const count = open(folder).days.of('a');
    passed(count, 2, 10);
    rmSync(join(folder, 'usage'), { recursive: true });
    expect(passed(count, 20, 10)).toBe(10);
  });

  it('stay in memory while the file cannot be written, and are written when it can', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const folder = tempFolder();
    mkdirSync(join(folder, 'x'));
    const data = join(folder, 'x', 'data');
    writeFileSync(data, 'a file where the folder should be');
    const { days, problems } = open(data);
    const count = days.of('a');
    expect(passed(count, 3, 5)).toBe(3);
    expect(problems).toEqual([
      expect.stringMatching(
        /^calls of this day are counted in memory only: .*2026-07-28\.jsonl cannot be written: .*E/,
      ),
    ]);
    rmSync(data);
    vi.advanceTimersByTime(1_000);
    expect(passed(count, 9, 5)).toBe(2);
    expect(problems.slice(1)).toEqual(['calls of this day are counted in the data folder again']);
    expect(counted(data, 'a')).toBe(5);
    vi.useRealTimers();
  });
});
