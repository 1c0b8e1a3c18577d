/**
 * Reports when the bytes of a file change, by any means: an edit in place, an editor's rename over it, delete and
 * create, or a changed symlink on its path (Kubernetes swaps a whole folder that way). File system notifications make
 * it fast; polling makes it reliable.
 */

import { type FSWatcher, readdirSync, readFileSync, readlinkSync, statSync, watch } from 'node:fs';
import { basename, join, parse, resolve, sep } from 'node:path';
import { sha256 } from './hash.ts';

const DEBOUNCE_MS = 100;
const POLL_MS = 2000;
/** The number of symlinks that Linux follows. */
const MAX_LINKS = 40;
/** For larger files only size and times are compared. */
const MAX_HASHED_BYTES = 1024 * 1024;

export interface FileWatcher {
  close(): void;
}

/**
 * Calls `changed` after each change of `file`. A missing file counts as unchanged until it is back, unless
 * `reportsMissing`. Start it before reading the file, so that no change in between is missed. It does not keep the
 * process alive.
 */
export function watchFile(file: string, changed: () => void, reportsMissing = false): FileWatcher {
  return watchPath(file, changed, { reportsMissing, stampOf, contentOf, isInside: false });
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
    isInside: true,
  });
}

interface Watched {
  readonly reportsMissing: boolean;
  stampOf(path: string): string;
  contentOf(path: string): string | null;
  /** Whether every change inside of the path counts, which is a folder. */
  readonly isInside: boolean;
}

function watchPath(file: string, changed: () => void, watched: Watched): FileWatcher {
  const { reportsMissing, stampOf, contentOf, isInside } = watched;
  const path = resolve(file);
  let closed = false;
  let watchers: FSWatcher[] = [];
  let debounce: NodeJS.Timeout | undefined;
  let lastStamp = stampOf(path);
  let lastContent = contentOf(path);

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
    const inside = isInside ? watchFolder(path, schedule) : null;
    if (inside !== null) watchers.push(inside);
  };
  const check = () => {
    // The watchers start before the bytes are read, so that they notice a change in between.
    rewatch();
    lastStamp = stampOf(path);
    const content = contentOf(path);
    if ((content === null && !reportsMissing) || content === lastContent) return;
    lastContent = content;
    changed();
  };
  // Waits for a pause in the writes. If there is none, the poll reports the change.
  const schedule = () => {
    clearTimeout(debounce);
    if (!closed) debounce = setTimeout(check, DEBOUNCE_MS).unref();
  };
  const poll = setInterval(() => {
    if (stampOf(path) !== lastStamp) check();
  }, POLL_MS).unref();

  rewatch();
  return {
    close() {
      closed = true;
      clearInterval(poll);
      clearTimeout(debounce);
      unwatch();
    },
  };
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
function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return MISSING;
  }
}

/** The names and stamps of everything in a folder. */
function stampInside(folder: string): string {
  try {
    const names = readdirSync(folder).sort();
    return [stampOf(folder).split(' ')[1], ...names.map((name) => `${name} ${stampOf(join(folder, name))}`)].join('\n');
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
