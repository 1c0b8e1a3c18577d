/**
 * Reports when the bytes of a file change, by any means: an edit in place, an editor's rename over it, delete and
 * create, or a changed symlink on its path (Kubernetes swaps a whole folder that way). File system notifications make
 * it fast; polling makes it reliable. A file that is still being written is reported when it is complete.
 */
import { type FSWatcher, readdirSync, readFileSync, readlinkSync, realpathSync, statSync, watch } from 'node:fs';
import { basename, join, parse, resolve, sep } from 'node:path';
import { sha256 } from './hash.ts';
import { writerOf } from './writer.ts';

const DEBOUNCE_MS = 100;
const POLL_MS = 2000;
/** How long a file that is written in place must stay the same before it counts as complete. */
const REST_MS = 200;
/** The same for one that became shorter: a save in place begins with an empty file and lets it grow. */
const SHORTER_REST_MS = 2000;
/** How often a file is looked at while another process has it open for writing. */
const WRITER_POLL_MS = 500;
/** The number of symlinks that Linux follows. */
const MAX_LINKS = 40;
/** For larger files only size and times are compared. */
const MAX_HASHED_BYTES = 1024 * 1024;

export interface FileWatcher {
  /** Resolves when the change that is on the disk now, if there is one, has been reported. */
  settled(): Promise<void>;
  close(): void;
}

/**
 * Calls `changed` after each change of `file`. A missing file counts as unchanged until it is back, unless
 * `reportsMissing`. Start it before reading the file, so that no change in between is missed. It does not keep the
 * process alive.
 */
export function watchFile(file: string, changed: () => void, reportsMissing = false): FileWatcher {
  return watchPath(file, changed, { reportsMissing, stampOf, contentOf, restOf, isInside: false });
}

/**
 * Calls `changed` after files of a folder were written, added or removed. The folder may be missing, and may come later.
 * It does not keep the process alive.
 */
export function watchFilesIn(folder: string, changed: () => void): FileWatcher {
  return watchPath(folder, changed, {
    reportsMissing: true,
    stampOf: stampInside,
    contentOf: stampInside,
    restOf: () => 0,
    isInside: true,
  });
}

interface Watched {
  readonly reportsMissing: boolean;
  stampOf(path: string): string;
  contentOf(path: string): string | null;
  /** How many milliseconds a changed path must rest before it is reported. */
  restOf(before: FileMark, now: FileMark): number;
  /** Whether every change inside of the path counts, which is a folder. */
  readonly isInside: boolean;
}

function watchPath(file: string, changed: () => void, watched: Watched): FileWatcher {
  const { reportsMissing, stampOf, contentOf, restOf, isInside } = watched;
  const path = resolve(file);
  let closed = false;
  let watchers: FSWatcher[] = [];
  let debounce: NodeJS.Timeout | undefined;
  let lastStamp = stampOf(path);
  let lastContent = contentOf(path);
  let lastMark = markOf(path);
  /** The stamp of a change that is not reported yet, and since when it is the same. */
  let resting: { readonly stamp: string; readonly since: number } | null = null;
  /** Called when nothing is unreported. */
  let waiting: (() => void)[] = [];

  const unwatch = () => {
    for (const watcher of watchers) watcher.close();
    watchers = [];
  };
  const rewatch = () => {
    unwatch();
    for (const [folder, names] of namesOnTheWay(path)) {
      const watcher = watchFolder(folder, (name) => {
        // An event with the folder's own name says that the folder itself was moved or deleted.
        if (name === null || names.has(name) || name === basename(folder)) schedule();
      });
      if (watcher !== null) watchers.push(watcher);
    }
    const inside = isInside ? watchFolder(path, () => schedule()) : null;
    if (inside !== null) watchers.push(inside);
  };
  const settle = () => {
    const all = waiting;
    waiting = [];
    for (const done of all) done();
  };
  const check = () => {
    clearTimeout(debounce);
    // The watchers start before the bytes are read, so that they notice a change in between.
    rewatch();
    lastStamp = stampOf(path);
    const mark = markOf(path);
    const content = contentOf(path);
    if ((content === null && !reportsMissing) || content === lastContent) {
      resting = null;
      if (content !== null) lastMark = mark;
      settle();
      return;
    }
    const now = performance.now();
    if (resting?.stamp !== lastStamp) resting = { stamp: lastStamp, since: now };
    const rest = content === null ? 0 : restOf(lastMark, mark);
    const left = rest - (now - resting.since);
    if (left > 0) {
      schedule(left);
    } else if (rest === 0) {
      report(content, mark);
    } else {
      const { stamp } = resting;
      void writerOf(path).then((writer) => {
        if (closed || resting?.stamp !== stamp) return;
        if (writer !== null) schedule(WRITER_POLL_MS);
        else if (stampOf(path) !== stamp) check();
        else report(content, mark);
      });
    }
  };
  const report = (content: string | null, mark: FileMark) => {
    resting = null;
    lastContent = content;
    lastMark = mark;
    changed();
    settle();
  };
  // Waits for a pause in the writes. If there is none, the poll reports the change.
  const schedule = (delay = DEBOUNCE_MS) => {
    clearTimeout(debounce);
    if (!closed) debounce = setTimeout(check, delay).unref();
  };
  const poll = setInterval(() => {
    if (stampOf(path) !== lastStamp) check();
  }, POLL_MS).unref();

  rewatch();
  return {
    settled() {
      if (closed || (resting === null && stampOf(path) === lastStamp)) return Promise.resolve();
      return new Promise((done) => {
        waiting.push(done);
        if (resting === null) check();
      });
    },
    close() {
      closed = true;
      clearInterval(poll);
      clearTimeout(debounce);
      unwatch();
      settle();
    },
  };
}

/** What tells a file that was replaced from one that is written in place. */
interface FileMark {
  /** Where the path leads, and to which file. */
  readonly place: string;
  readonly size: bigint;
  /** Whether it got its name, or another attribute, after its last byte. */
  readonly isRenamed: boolean;
}

const NO_FILE: FileMark = { place: '', size: 0n, isRenamed: false };

function markOf(path: string): FileMark {
  try {
    const real = realpathSync(path);
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(real, { bigint: true });
    return { place: `${dev} ${ino} ${real}`, size, isRenamed: mtimeNs < ctimeNs };
  } catch {
    return NO_FILE;
  }
}

/** A file that was renamed over the path, or that a link now leads to, is complete. Anything else may be half written. */
function restOf(before: FileMark, now: FileMark): number {
  const isOther = before.place !== now.place;
  if (isOther && now.isRenamed) return 0;
  return now.size === 0n || (!isOther && now.size < before.size) ? SHORTER_REST_MS : REST_MS;
}

/**
 * Calls `changed` with the name of what changed in a folder, if the system gives one. Returns null if the folder is
 * gone or the system has no watches left. Then, and after `failed`, only polling notices changes.
 */
export function watchFolder(
  folder: string,
  changed: (name: string | null) => void,
  failed: () => void = () => {},
): FSWatcher | null {
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => changed(name));
    return watcher.on('error', () => {
      watcher.close();
      failed();
    });
  } catch {
    return null;
  }
}

/**
 * The folders, and the names in them, in which a change can make `path` resolve to other bytes: every symlink on the
 * way, the file itself, or the first missing part.
 */
function namesOnTheWay(path: string): Map<string, Set<string>> {
  const names = new Map<string, Set<string>>();
  let { root: folder } = parse(path);
  let rest = path.slice(folder.length).split(sep);
  for (let links = 0; links <= MAX_LINKS; ) {
    const [name = '', ...after] = rest;
    const here = join(folder, name);
    const target = linkTarget(here);
    const isEnd = target === undefined && (after.length === 0 || stampOf(here) === MISSING);
    if (target !== undefined || isEnd) names.set(folder, (names.get(folder) ?? new Set()).add(name));
    if (isEnd) break;
    if (target === undefined) {
      folder = here;
      rest = after;
    } else {
      const absolute = resolve(folder, target);
      folder = parse(absolute).root;
      rest = [...absolute.slice(folder.length).split(sep), ...after];
      links++;
    }
  }
  return names;
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

const MISSING = 'missing';

/** A stamp that differs after every change of the file that `path` resolves to. */
export function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return MISSING;
  }
}

/**
 * The stamps of a folder and of everything in it. The folder's own one differs after a file has come and gone: somebody
 * may have read it in between.
 */
function stampInside(folder: string): string {
  try {
    const names = readdirSync(folder).sort();
    return [stampOf(folder), ...names.map((name) => `${name} ${stampOf(join(folder, name))}`)].join('\n');
  } catch {
    return MISSING;
  }
}

/** The hash of the bytes; null if there is no file to read. */
function contentOf(path: string): string | null {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return null;
    return stats.size > MAX_HASHED_BYTES ? stampOf(path) : sha256(readFileSync(path));
  } catch {
    return null;
  }
}
