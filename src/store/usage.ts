/**
 * How many calls there were today, on disk, because a limit per day has to hold across restarts and for all processes
 * that share the data folder.
 */
import { join } from 'node:path';
import { jsonFile } from '../base/json-file.ts';
import { isObject, toObject } from '../base/objects.ts';

/** Calls by the key of their limit. */
export type CallCounts = ReadonlyMap<string, number>;

export interface UsageStore {
  /**
   * What was counted on a day such as `2026-07-28`. Throws if the file cannot be understood. It is synchronous, because
   * calls that came in during the read would not be counted.
   */
  read(day: string): CallCounts;
  /** Adds to the counts of the day and returns the sums. */
  add(day: string, counts: CallCounts): Promise<CallCounts>;
}

interface DayUsage {
  readonly day: string;
  readonly calls: Readonly<Record<string, number>>;
}

export function openUsageStore(dataDir: string): UsageStore {
  const file = jsonFile(join(dataDir, 'usage.json'), 'a count of calls', readUsage);
  return {
    read: (day) => countsOf(file.readSync(), day),
    async add(day, counts) {
      const sums = new Map<string, number>();
      await file.change((usage) => {
        for (const [key, count] of countsOf(usage, day)) sums.set(key, count);
        for (const [key, count] of counts) sums.set(key, (sums.get(key) ?? 0) + count);
        // If another process has already begun the next day, its counts must stay.
        return usage !== null && usage.day > day ? null : { day, calls: Object.fromEntries(sums) };
      });
      return sums;
    },
  };
}

/** Counts of other days are ignored. */
function countsOf(usage: DayUsage | null, day: string): CallCounts {
  return new Map(usage?.day === day ? Object.entries(usage.calls) : []);
}

function readUsage(value: unknown): DayUsage {
  const { day, calls } = toObject(value);
  if (typeof day !== 'string' || !isObject(calls)) throw new Error('expected "day" and "calls"');
  if (!Object.values(calls).every((count) => Number.isSafeInteger(count) && (count as number) >= 0))
    throw new Error('each of "calls" has to be a number');
  return { day, calls: calls as Record<string, number> };
}
