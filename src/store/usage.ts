/**
 * How many calls there were today, on disk: a limit for a day has to hold over a restart. Processes that share the folder
 * add to what the others wrote. A file that makes no sense is reported and never overwritten.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { GatewayError, messageOf } from '../base/errors.ts';
import { replaceFile } from '../base/files.ts';

export type Counts = ReadonlyMap<string, number>;

export interface UsageStore {
  /**
   * What was counted on that day, such as `2026-07-28`. Throws where the file makes no sense. At once, because calls that come
   * while it is being read would be let through.
   */
  read(day: string): Counts;
  /** Adds to it, and gives the sums. */
  add(day: string, counts: Counts): Promise<Counts>;
}

export function openUsageStore(dataDir: string): UsageStore {
  const file = join(dataDir, 'usage.json');

  function read(day: string): Map<string, number> {
    try {
      return readCounts(JSON.parse(readFileSync(file, 'utf8')), day);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return new Map();
      throw damaged(file, messageOf(error));
    }
  }

  return {
    read,
    async add(day, counts) {
      const sums = read(day);
      for (const [key, count] of counts) sums.set(key, (sums.get(key) ?? 0) + count);
      await replaceFile(file, `${JSON.stringify({ day, calls: Object.fromEntries(sums) })}\n`);
      return sums;
    },
  };
}

function damaged(file: string, why: string): GatewayError {
  return new GatewayError('config_invalid', `${file} cannot be read (${why}). Correct or remove it.`);
}

/** Yesterday's are of no use any more. */
function readCounts(value: unknown, today: string): Map<string, number> {
  const { day, calls } = (value ?? {}) as { day?: unknown; calls?: unknown };
  const isMap = typeof calls === 'object' && calls !== null && !Array.isArray(calls);
  if (typeof day !== 'string' || !isMap) throw new Error('expected "day" and "calls"');
  const counts = Object.entries(calls);
  if (!counts.every(([, count]) => Number.isSafeInteger(count) && (count as number) >= 0))
    throw new Error('each of "calls" has to be a number');
  return new Map(day === today ? (counts as [string, number][]) : []);
}
