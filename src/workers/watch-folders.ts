/**
 * Reports changes of the namespaces: a folder that was added, edited or deleted. File system notifications make it quick,
 * polling makes it certain, and a hash of the contents tells whether anything really changed.
 */
import type { FSWatcher } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { watchFolder } from '../base/watch-file.ts';
import { type DetailedScan, type NamedFolder, type NamespaceScan, scanNamespaces, toolsFolder } from './namespaces.ts';
import { type Hashes, markOf } from './scan-folder.ts';

export interface NamespaceWatch {
  /** The result of the last scan. */
  readonly scan: NamespaceScan;
  /** Scans now. Resolves after `changed` was called, if anything changed. */
  check(): Promise<void>;
  /** Replaces the folders that the configuration names. */
  setFolders(folders: readonly NamedFolder[]): Promise<void>;
  close(): void;
}

export interface WatchOptions {
  readonly dataDir: string;
  /** Folders outside the data folder. */
  readonly folders?: readonly NamedFolder[];
  /** False: scans only when `check` is called. */
  readonly enabled?: boolean;
  /** How many milliseconds without a change it waits for before a scan. */
  readonly debounce?: number;
  changed(scan: NamespaceScan): void;
}

/** By folder. The mark changes if another folder takes its place. */
type Watchers = Map<string, { readonly mark: string; readonly watcher: FSWatcher }>;

const DEBOUNCE = 300;
/** If files are written without a pause, a scan starts after this many times the debounce. */
const PATIENCE = 3;
/** Milliseconds between two polls, if every folder is watched and if not. */
const POLL = 10_000;
const POLL_BLIND = 1_000;
const MOST_HASHES = 50_000;

/** Resolves after the first scan, for which `changed` is not called. Does not keep the process alive. */
export async function watchNamespaces(options: WatchOptions): Promise<NamespaceWatch> {
  const { dataDir, enabled = true, debounce = DEBOUNCE, changed } = options;
  const root = toolsFolder(dataDir);
  const hashes: Hashes = new Map();
  const inside: Watchers = new Map();
  /** For folders that do not exist yet, or may be removed: the folders in which they would appear. */
  const above: Watchers = new Map();
  let folders = options.folders ?? [];
  let scan: DetailedScan = { namespaces: [], problems: [], watched: new Map() };
  let isBlind = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let poll: NodeJS.Timeout | undefined;
  let waitingSince: number | null = null;
  let scanning: Promise<void> = Promise.resolve();

  function schedule(): void {
    if (closed) return;
    const now = Date.now();
    waitingSince ??= now;
    clearTimeout(timer);
    timer = setTimeout(
      () => void check(),
      Math.max(0, Math.min(debounce, waitingSince + PATIENCE * debounce - now)),
    ).unref();
  }

  /** One scan at a time. */
  function check(): Promise<void> {
    clearTimeout(timer);
    waitingSince = null;
    scanning = scanning.catch(() => {}).then(() => rescan(true));
    return scanning;
  }

  async function rescan(reports: boolean): Promise<void> {
    if (closed) return;
    isBlind = false;
    if (enabled) await watchAbove();
    let next = await scanNamespaces(dataDir, folders, hashes);
    // Files may have been added to a new folder before it was watched, so it is scanned again.
    if (enabled && watchInside(next.watched)) {
      next = await scanNamespaces(dataDir, folders, hashes);
      watchInside(next.watched);
    }
    if (hashes.size > MOST_HASHES) hashes.clear();
    if (closed) return;
    const hasChanged = keyOf(next) !== keyOf(scan);
    scan = next;
    schedulePoll();
    if (hasChanged && reports) changed(scan);
  }

  function schedulePoll(): void {
    clearTimeout(poll);
    if (!enabled || closed) return;
    poll = setTimeout(() => void check(), isBlind ? POLL_BLIND : POLL).unref();
  }

  /** Watches exactly these folders. Returns whether one of them was not watched before. */
  function watchInside(wanted: ReadonlyMap<string, string>): boolean {
    return keep(inside, wanted, () => null);
  }

  async function watchAbove(): Promise<boolean> {
    const names = new Map<string, Set<string>>();
    const marks = new Map<string, string>();
    for (const { folder } of [{ folder: root }, ...folders]) {
      const { parent, name, mark } = await nearestAbove(folder);
      const expected = (names.get(parent) ?? new Set<string>()).add(name);
      names.set(parent, expected);
      marks.set(parent, `${mark} ${[...expected].join(' ')}`);
    }
    return keep(above, marks, (parent) => names.get(parent)!);
  }

  /** Closes watchers that are no longer wanted and opens missing ones. Returns whether it opened one. */
  function keep(
    watchers: Watchers,
    wanted: ReadonlyMap<string, string>,
    namesIn: (folder: string) => ReadonlySet<string> | null,
  ): boolean {
    let hasNew = false;
    for (const [folder, { mark, watcher }] of watchers) {
      if (wanted.get(folder) === mark) continue;
      watcher.close();
      watchers.delete(folder);
    }
    for (const [folder, mark] of wanted) {
      if (watchers.has(folder)) continue;
      const watcher = watchNames(watchers, folder, namesIn(folder));
      if (watcher === null) isBlind = true;
      else watchers.set(folder, { mark, watcher });
      hasNew ||= watcher !== null;
    }
    return hasNew;
  }

  function watchNames(watchers: Watchers, folder: string, names: ReadonlySet<string> | null): FSWatcher | null {
    const forget = () => {
      watcher?.close();
      if (watchers.get(folder)?.watcher === watcher) watchers.delete(folder);
    };
    const watcher = watchFolder(
      folder,
      (name) => {
        if (names === null || name === null || names.has(name) || name === basename(folder)) schedule();
        // The folder itself was moved or deleted. A new one of the same name needs a new watcher.
        if (name === basename(folder)) forget();
      },
      () => {
        forget();
        schedule();
      },
    );
    return watcher;
  }

  await rescan(false);
  return {
    get scan() {
      return scan;
    },
    check,
    setFolders(next) {
      folders = next;
      return check();
    },
    close() {
      closed = true;
      clearTimeout(timer);
      clearTimeout(poll);
      for (const { watcher } of [...inside.values(), ...above.values()]) watcher.close();
    },
  };
}

/** The nearest existing folder above, and the name in it that leads to `folder`. */
async function nearestAbove(folder: string): Promise<{ parent: string; name: string; mark: string }> {
  let name = basename(folder);
  for (let parent = dirname(folder); ; parent = dirname(parent)) {
    const mark = await stat(parent, { bigint: true }).then(
      (found) => (found.isDirectory() ? markOf(found) : null),
      () => null,
    );
    if (mark !== null || dirname(parent) === parent) return { parent, name, mark: mark ?? '' };
    name = basename(parent);
  }
}

function keyOf({ namespaces, problems }: NamespaceScan): string {
  return JSON.stringify([namespaces.map(({ name, folder, hash }) => [name, folder, hash]), problems]);
}
