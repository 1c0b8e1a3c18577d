/**
 * The heads of the audit: the last seal that each run wrote on each day. They are kept in the data folder, apart from
 * the audit files, and show whether the end of a file, a run or a day is missing. With a key, nobody without that key
 * can write them.
 */
import { createHmac } from 'node:crypto';
import { messageOf } from '../base/errors.ts';
import { canonicalJson } from '../base/hash.ts';
import { type JsonFile, jsonFile } from '../base/json-file.ts';
import { isObject } from '../base/objects.ts';
import { dayOf } from './audit-file.ts';
import { FIRST } from './audit-seal.ts';

/** What one run of a gateway wrote. */
export interface HeadRun {
  readonly chain: string;
  /** The seal that its first line refers to: the last one of the run before. */
  readonly prev: string;
  /** The last seal of each day. Days whose file was removed after its retention are not listed. */
  readonly days: Readonly<Record<string, string>>;
  /** Whether days were left out. */
  readonly cut?: boolean;
}

export interface Heads {
  /** The day on which heads were first kept. */
  readonly since: string;
  /** The run that wrote last is the last one. */
  readonly runs: readonly HeadRun[];
  /** A code of the rest, made with the key. Absent without a key. */
  readonly mac?: string;
}

export function headsFile(path: string): JsonFile<Heads> {
  return jsonFile(path, 'a list of heads of the audit', (value) => {
    if (!isObject(value) || typeof value.since !== 'string' || !Array.isArray(value.runs))
      throw new Error('"since" or "runs" is missing');
    for (const run of value.runs as unknown[])
      if (!isObject(run) || typeof run.chain !== 'string' || typeof run.prev !== 'string' || !isObject(run.days))
        throw new Error('a run is incomplete');
    return value as unknown as Heads;
  });
}

/** The code that heads have to have. */
export function macOf({ since, runs }: Heads, key: string): string {
  return createHmac('sha256', key)
    .update(`heads ${canonicalJson({ since, runs })}`)
    .digest('base64url');
}

/** The last seal of a run; empty if none of its days is left. */
export function lastSeal({ days }: HeadRun): string {
  const last = Object.keys(days).sort().at(-1);
  return last === undefined ? '' : days[last]!;
}

/**
 * The seals that stand for everything that was written: the last one of each run, except those that a later run refers
 * to.
 */
export function openEnds({ runs }: Heads): string[] {
  const continued = new Set(runs.map(({ prev }) => prev));
  return runs.map(lastSeal).filter((seal) => seal !== '' && !continued.has(seal));
}

/** Keeps the heads of one run. */
export interface HeadKeeper {
  /** The seal that the first line has to refer to. */
  begin(): Promise<string>;
  /** Lines were written. The file is written at once, or within a second. */
  wrote(day: string, seal: string): void;
  /** Files from before this day were removed. */
  removed(first: string): void;
  close(): Promise<void>;
}

export interface HeadKeeperOptions {
  readonly path: string;
  /** Names the run. */
  readonly boot: string;
  /** Null without a key. */
  readonly key: string | null;
  readonly now: () => number;
  /** Called once if the heads cannot be written. */
  warn(problem: string): void;
}

/**
 * Milliseconds between two writes of the file. Lines are written ten times a second, and a write of the heads takes 0.7 ms of CPU: it
 * needs a lock, five files and thirty turns of the thread pool.
 */
const PAUSE = 1_000;

export function createHeadKeeper({ path, boot, key, now, warn }: HeadKeeperOptions): HeadKeeper {
  const file = headsFile(path);
  let prev: string = FIRST;
  /** What the file does not have yet. */
  let days: Record<string, string> = {};
  let first = '';
  let isWanted = false;
  let isWarned = false;
  let isClosed = false;
  let writing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  /** When the file was last written. */
  let last = Number.NEGATIVE_INFINITY;

  function changed(heads: Heads | null, added: Readonly<Record<string, string>>): Heads {
    const { since, runs } = heads ?? { since: dayOf(now()), runs: [] };
    const own = runs.find(({ chain }) => chain === boot) ?? { chain: boot, prev, days: {} };
    const all = [...runs.filter(({ chain }) => chain !== boot), { ...own, days: { ...own.days, ...added } }];
    const next = { since, runs: all.map((run) => without(run, first)).filter((run) => lastSeal(run) !== '') };
    return key === null ? next : { ...next, mac: macOf(next, key) };
  }

  async function write(): Promise<void> {
    isWanted = false;
    const added = days;
    days = {};
    try {
      await file.change((heads) => changed(heads, added));
    } catch (error) {
      days = { ...added, ...days };
      if (!isWarned) warn(`goes on without new heads: ${messageOf(error)}`);
      isWarned = true;
    }
    last = performance.now();
  }

  function start(): void {
    timer = null;
    writing = write().finally(() => {
      writing = null;
      if (isWanted) hurry();
    });
  }

  function hurry(): void {
    isWanted = true;
    if (writing !== null || timer !== null || isClosed) return;
    const rest = last + PAUSE - performance.now();
    if (rest <= 0) start();
    else timer = setTimeout(start, rest).unref();
  }

  return {
    async begin() {
      // Heads that cannot be read are left as they are: `audit verify` reports them.
      const heads = await file.read().catch(() => null);
      const last = heads?.runs.at(-1);
      prev = (last === undefined ? '' : lastSeal(last)) || FIRST;
      return prev;
    },
    wrote(day, seal) {
      days[day] = seal;
      hurry();
    },
    removed(day) {
      first = day;
    },
    async close() {
      isClosed = true;
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await writing;
      if (isWanted) await write();
    },
  };
}

/** A run without the days before `first`. */
function without(run: HeadRun, first: string): HeadRun {
  const kept = Object.entries(run.days).filter(([day]) => day >= first);
  if (kept.length === Object.keys(run.days).length) return run;
  return { ...run, days: Object.fromEntries(kept), cut: true };
}
