/**
 * How many calls there were today, on disk, because a limit per day has to hold across restarts and for all processes
 * that share the data folder. A process takes calls from a limit before it makes them: it appends a line to the file of
 * the day, and reads what the others appended before. The order of the lines decides who gets the last calls, so no lock
 * is needed, and what a killed process took stays taken.
 *
 * It is synchronous, because a call that waited here would be overtaken by others. A line is a few bytes for the cache of
 * the system, and most calls need none.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { writeFailure } from '../base/files.ts';
import { toObject } from '../base/objects.ts';

export interface UsageStore {
  /**
   * Takes up to so many calls of a day such as `2026-07-28` from a limit. Returns how many it got: fewer, or none, if the
   * limit is reached. Without a limit they are only counted, and negative ones are given back. Throws if the file cannot
   * be written.
   */
  take(day: string, key: string, calls: number, limit?: number): number;
  /** All calls of that day that were taken. Zero before the first `take` of the day. */
  taken(day: string, key: string): number;
  close(): void;
}

interface Line {
  readonly key: string;
  readonly calls: number;
  readonly limit: number;
  readonly by: string;
}

interface DayFile {
  readonly day: string;
  readonly handle: number;
  readonly sums: Map<string, number>;
  /** How much of it was read. */
  size: number;
  /** The beginning of a line whose end is not there yet. */
  rest: Buffer;
}

const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;
/** Files of earlier days stay for a while, because a clock may be wrong and be set back. */
const KEPT = 7 * 86_400_000;

export function openUsageStore(dataDir: string): UsageStore {
  const folder = join(dataDir, 'usage');
  const self = randomBytes(6).toString('base64url');
  let serial = 0;
  let file: DayFile | null = null;

  function close(): void {
    if (file !== null) closeSync(file.handle);
    file = null;
  }

  function use(day: string): DayFile {
    // A file that was removed takes lines that nobody reads.
    if (file !== null && (file.day !== day || fstatSync(file.handle).nlink === 0)) close();
    if (file !== null) return file;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const handle = openSync(join(folder, `${day}.jsonl`), 'a+', 0o600);
    file = { day, handle, sums: new Map(), size: 0, rest: Buffer.alloc(0) };
    removeOld(folder, day);
    return file;
  }

  return {
    take(day, key, calls, limit = Number.MAX_SAFE_INTEGER) {
      const path = join(folder, `${day}.jsonl`);
      try {
        const used = use(day);
        const by = `${self}.${++serial}`;
        // The line break before it ends a line that a full disk cut off.
        writeSync(used.handle, `\n${JSON.stringify({ key, calls, limit, by } satisfies Line)}\n`);
        const got = readOn(used, by);
        if (got === null) throw Object.assign(new Error('a line was cut off'), { code: 'ENOSPC' });
        return got;
      } catch (error) {
        close();
        throw writeFailure(path, error);
      }
    },
    taken(day, key) {
      if (file?.day !== day) return 0;
      try {
        readOn(file, '');
      } catch {
        // What was read before is the best that is known. Taking from it says what is wrong.
      }
      return file.sums.get(key) ?? 0;
    },
    close,
  };
}

/** Reads what was appended. Returns what the line of this name got; null if it is not there. */
function readOn(file: DayFile, by: string): number | null {
  const { size } = fstatSync(file.handle);
  const bytes = Buffer.alloc(Math.max(0, size - file.size));
  const length = readSync(file.handle, bytes, 0, bytes.length, file.size);
  file.size += length;
  const text = Buffer.concat([file.rest, bytes.subarray(0, length)]);
  const end = text.lastIndexOf(0x0a) + 1;
  file.rest = text.subarray(end);
  let found: number | null = null;
  for (const one of text.toString('utf8', 0, end).split('\n')) {
    const line = parseLine(one);
    if (line === null) continue;
    const before = file.sums.get(line.key) ?? 0;
    const got = Math.min(line.calls, Math.max(0, line.limit - before));
    file.sums.set(line.key, before + got);
    if (line.by === by) found = got;
  }
  return found;
}

/** Null for a line that was cut off, or that is not ours. */
function parseLine(text: string): Line | null {
  if (text === '') return null;
  try {
    const { key, calls, limit, by } = toObject(JSON.parse(text));
    const isLine = typeof key === 'string' && Number.isSafeInteger(calls) && Number.isSafeInteger(limit);
    return isLine ? { key, calls: calls as number, limit: limit as number, by: String(by) } : null;
  } catch {
    return null;
  }
}

function removeOld(folder: string, day: string): void {
  const oldest = new Date(Date.parse(day) - KEPT).toISOString().slice(0, 10);
  try {
    for (const name of readdirSync(folder))
      if ((DAY_FILE.exec(name)?.[1] ?? oldest) < oldest) unlinkSync(join(folder, name));
  } catch {
    // The next day tries again.
  }
}
