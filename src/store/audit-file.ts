/** The audit file of a day. Other programs may remove, replace or append to it at any time. */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The names of our files in the folder. */
export const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;

/** The day of a time, in UTC, as files are named: `2026-07-28`. */
export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export interface DayFile {
  /** Selects the day that the next appended lines belong to. */
  use(day: string): Promise<void>;
  /** Appends this many lines in one write. Returns how many were written: all, or none if the disk is full. */
  append(bytes: Buffer, lines: number): Promise<number>;
  close(): Promise<void>;
}

const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);
/** How often to check that the file still exists, in milliseconds. */
const CHECK = 50;
/** A file that does not grow for this long is not being written to. */
const SETTLE = 20;
const BREAK = Buffer.from('\n');

export function openDayFile(folder: string): DayFile {
  let handle: FileHandle | null = null;
  let path = '';
  /** Whether the last line of the file is incomplete. The next line must not continue it. */
  let broken = false;
  /** What a full disk took of the last lines, while it cannot be removed. It has no seal, so nothing may follow it. */
  let half: Buffer | null = null;

  let ours: Stats | null = null;
  let checked = 0;

  /** Checked before writing, because a write to a removed file succeeds and is lost. */
  async function stillExists(): Promise<boolean> {
    if (handle === null || ours === null) return false;
    if (performance.now() - checked < CHECK) return true;
    checked = performance.now();
    const found = await stat(path).catch(() => null);
    return found !== null && found.ino === ours.ino && found.dev === ours.dev;
  }

  async function close(): Promise<void> {
    const old = handle;
    handle = null;
    await old?.close().catch(() => {});
  }

  /** Removes what a full disk took. Throws if that fails. */
  async function removeHalf(from: FileHandle): Promise<void> {
    if (half === null) return;
    const isRemoved = await takenBack(from, half);
    half = null;
    // Somebody has written after it, so it stays. `audit verify` names it.
    if (!isRemoved) broken = await endsMidLine(from);
  }

  return {
    async use(day) {
      const wanted = join(folder, `${day}.jsonl`);
      if (wanted === path && (await stillExists())) return;
      if (handle !== null) await removeHalf(handle).catch(() => {});
      await close();
      half = null;
      path = wanted;
      await mkdir(dirname(folder), { recursive: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const opened = await open(path, FLAGS, 0o600);
      const found = await opened.stat();
      if (!found.isFile()) {
        // It must not be used the next time: a pipe takes lines that nobody reads.
        await opened.close();
        throw new Error(`${day}.jsonl is not a regular file`);
      }
      handle = opened;
      ours = found;
      checked = performance.now();
      broken = await endsMidLine(opened);
    },
    async append(bytes, lines) {
      await removeHalf(handle!);
      const all = broken ? Buffer.concat([BREAK, bytes]) : bytes;
      const { bytesWritten } = await handle!.write(all);
      if (bytesWritten === all.length) {
        broken = false;
        return lines;
      }
      // The disk is full. What was written is taken back, so that the seals stay right, and the whole batch is tried
      // again.
      if (bytesWritten === 0) return 0;
      half = Buffer.from(all.subarray(0, bytesWritten));
      await removeHalf(handle!);
      return 0;
    },
    async close() {
      if (handle !== null) await removeHalf(handle).catch(() => {});
      await close();
    },
  };
}

/** Removes the bytes from the end of the file. False if another gateway has written after them. Throws if it cannot. */
async function takenBack(handle: FileHandle, bytes: Buffer): Promise<boolean> {
  const { size } = await handle.stat();
  const start = size - bytes.length;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes.length), 0, bytes.length, Math.max(0, start));
  if (bytesRead !== bytes.length || !buffer.equals(bytes)) return false;
  await handle.truncate(start);
  return true;
}

/** True after a power cut or a full disk, but not while another gateway is writing. */
async function endsMidLine(handle: FileHandle): Promise<boolean> {
  for (let before = -1; ; await sleep(SETTLE)) {
    const { size } = await handle.stat();
    if (size === 0) return false;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    if (bytesRead === 1 && buffer[0] === 0x0a) return false;
    if (size === before) return true;
    before = size;
  }
}

/** In milliseconds. */
export const DAY: number = 24 * 60 * 60 * 1000;

/** The first day whose file is kept. */
export function firstKept(days: number, now: number): string {
  return dayOf(now - (days - 1) * DAY);
}

/** Removes the files of earlier days. Fails silently: the next day tries again. */
export async function removeOld(folder: string, first: string): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  const old = names.filter((name) => (DAY_FILE.exec(name)?.[1] ?? first) < first);
  await Promise.all(old.map((name) => unlink(join(folder, name)).catch(() => {})));
}
