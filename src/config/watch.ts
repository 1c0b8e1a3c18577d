/**
 * Tells when the bytes of a configuration file have changed, however that came about: an edit in place, an editor's
 * rename over it, delete and create, or a symlink on the way to it that now leads elsewhere (Kubernetes swaps a whole
 * folder that way). The system's notifications make it quick; a slow poll makes it certain.
 */

import { createHash } from 'node:crypto';
import { type FSWatcher, readFileSync, readlinkSync, statSync, watch } from 'node:fs';
import { basename, join, parse, resolve, sep } from 'node:path';
import { MAX_FILE_BYTES } from './parse.ts';

const DEBOUNCE_MS = 100;
const POLL_MS = 2000;
/** As many symlinks as Linux follows. */
const MAX_LINKS = 40;

/**
 * Calls `onChange` after each change of `file`; a file that is missing counts as unchanged until it is back, unless its
 * absence says something too. Start it before reading the file: what changes in between is then not missed. It does not keep the process alive.
 */
export function watchConfig(file: string, onChange: () => void, tellsMissing = false): { close(): void } {
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
    for (const [folder, names] of placesOf(path)) {
      const watcher = watchFolder(folder, (name) => {
        // The folder's own name tells that the folder itself was moved or deleted.
        if (name === null || names.has(name) || name === basename(folder)) schedule();
      });
      if (watcher) watchers.push(watcher);
    }
  };
  const check = () => {
    // First the watchers, then the bytes: a change in between is noticed by the new watchers.
    rewatch();
    lastStamp = stampOf(path);
    const content = contentOf(path);
    if ((content === null && !tellsMissing) || content === lastContent) return;
    lastContent = content;
    onChange();
  };
  // Waits for a pause in the writing. Where none comes, the poll steps in.
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

/** Watches one folder; null where that cannot be, because the folder is gone or the system has no watches left. */
function watchFolder(folder: string, onEvent: (name: string | null) => void): FSWatcher | null {
  try {
    const watcher = watch(folder, { persistent: false }, (_, name) => onEvent(name));
    // The poll goes on without it.
    return watcher.on('error', () => watcher.close());
  } catch {
    return null;
  }
}

/**
 * The folders, with the names in them, where a change can make `path` lead to other bytes: every symlink on the way,
 * the file itself, or the first part that is missing.
 */
function placesOf(path: string): Map<string, Set<string>> {
  const places = new Map<string, Set<string>>();
  let { root: folder } = parse(path);
  let rest = path.slice(folder.length).split(sep);
  for (let links = 0; links <= MAX_LINKS; ) {
    const [name = '', ...after] = rest;
    const place = join(folder, name);
    const target = linkTarget(place);
    const isEnd = target === undefined && (after.length === 0 || stampOf(place) === MISSING);
    if (target !== undefined || isEnd) places.set(folder, (places.get(folder) ?? new Set()).add(name));
    if (isEnd) break;
    if (target === undefined) {
      folder = place;
      rest = after;
    } else {
      const absolute = resolve(folder, target);
      folder = parse(absolute).root;
      rest = [...absolute.slice(folder.length).split(sep), ...after];
      links++;
    }
  }
  return places;
}

function linkTarget(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

const MISSING = 'missing';

/** Differs after every change of the file that `path` leads to. */
function stampOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(' ');
  } catch {
    return MISSING;
  }
}

/** The hash of the bytes; null where there is no file to read. */
function contentOf(path: string): string | null {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return null;
    // Too large to be a configuration: that it changed is all there is to say.
    if (stats.size > MAX_FILE_BYTES) return stampOf(path);
    return createHash('sha256').update(readFileSync(path)).digest('hex');
  } catch {
    return null;
  }
}
