/** The file of a day. It may be removed, replaced or added to by others at any time. */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Other files in the folder are not ours. */
export const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;

export interface DayFile {
  /** What is appended from here on belongs to this day. */
  use(day: string): Promise<void>;
  /** So many lines, in one piece. Gives the number of whole ones that were written; fewer where the disk is full. */
  append(bytes: Buffer, lines: number): Promise<number>;
  close(): Promise<void>;
}

const FLAGS = constants.O_APPEND | constants.O_CREAT | constants.O_RDWR | (constants.O_NOFOLLOW ?? 0);
/** How often it is looked whether the file is still there. */
const LOOK = 50;
/** How long a file stays as it is that nobody is writing to. */
const SETTLE = 20;
const BREAK = Buffer.from('\n');

export function openDayFile(folder: string): DayFile {
  let handle: FileHandle | null = null;
  let path = '';
  /** Whether the file ends within a line, which the next one must not go on. */
  let broken = false;

  let ours: Stats | null = null;
  let looked = 0;

  /** Writing into a file that somebody has removed succeeds, and is for nobody. */
  async function isThere(): Promise<boolean> {
    if (handle === null || ours === null) return false;
    if (performance.now() - looked < LOOK) return true;
    looked = performance.now();
    const found = await stat(path).catch(() => null);
    return found !== null && found.ino === ours.ino && found.dev === ours.dev;
  }

  async function close(): Promise<void> {
    const old = handle;
    handle = null;
    await old?.close().catch(() => {});
  }

  return {
    async use(day) {
      const wanted = join(folder, `${day}.jsonl`);
      if (wanted === path && (await isThere())) return;
      await close();
      path = wanted;
      await mkdir(dirname(folder), { recursive: true });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const opened = await open(path, FLAGS, 0o600);
      handle = opened;
      ours = await opened.stat();
      if (!ours.isFile()) throw new Error(`${day}.jsonl is not a regular file`);
      looked = performance.now();
      broken = await endsWithin(opened);
    },
    async append(bytes, lines) {
      const all = broken ? Buffer.concat([BREAK, bytes]) : bytes;
      const { bytesWritten } = await handle!.write(all);
      if (bytesWritten === all.length) {
        broken = false;
        return lines;
      }
      const there = all.subarray(0, bytesWritten);
      if (bytesWritten > 0) broken = there.at(-1) !== 0x0a;
      return linesIn(there.subarray(all.length - bytes.length));
    },
    close,
  };
}

/** After a power cut, or when another gateway's disk was full; but not while another gateway is just writing. */
async function endsWithin(handle: FileHandle): Promise<boolean> {
  for (let before = -1; ; await sleep(SETTLE)) {
    const { size } = await handle.stat();
    if (size === 0) return false;
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
    if (bytesRead === 1 && buffer[0] === 0x0a) return false;
    if (size === before) return true;
    before = size;
  }
}

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count++;
  return count;
}

const DAY = 24 * 60 * 60 * 1000;

/** Removes the files of days that are longer ago. Fails silently: the next day tries again. */
export async function removeOld(folder: string, days: number, now: number): Promise<void> {
  const first = new Date(now - (days - 1) * DAY).toISOString().slice(0, 10);
  const names = await readdir(folder).catch(() => []);
  const old = names.filter((name) => (DAY_FILE.exec(name)?.[1] ?? first) < first);
  await Promise.all(old.map((name) => unlink(join(folder, name)).catch(() => {})));
}
