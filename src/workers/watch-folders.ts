/**
 * Reports changes of the namespaces: a folder that was added, edited or deleted. File system notifications make it
 * fast, polling makes it reliable, and a hash of the contents shows whether anything really changed.
 */
import type { FSWatcher } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { BoundedMap } from '../base/bounded-map.ts';
import { getOrMake } from '../base/memo.ts';
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
  /** Milliseconds without a further change before a scan starts. */
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
  const watch = new FolderWatch(options);
  await watch.open();
  return watch;
}

class FolderWatch implements NamespaceWatch {
  scan: DetailedScan = { namespaces: [], problems: [], watched: new Map() };
  readonly #options: WatchOptions;
  readonly #isEnabled: boolean;
  readonly #hashes: Hashes = new BoundedMap(MOST_HASHES);
  /** The watchers of the folders that were scanned. */
  readonly #inside: Watchers = new Map();
  /** The watchers of the folders above these: a folder may not exist yet, or may be removed. */
  readonly #above: Watchers = new Map();
  #folders: readonly NamedFolder[];
  /** Whether some folder cannot be watched, and only polling finds its changes. */
  #isBlind = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** When the first change came that no scan has seen yet. */
  #waitingSince: number | null = null;
  /** The last scan that was started. The next one waits for it. */
  #scanning: Promise<void> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#isEnabled = options.enabled ?? true;
    this.#folders = options.folders ?? [];
  }

  open(): Promise<void> {
    return this.#rescan(false);
  }

  check(): Promise<void> {
    clearTimeout(this.#timer);
    this.#waitingSince = null;
    this.#scanning = this.#scanning.catch(() => {}).then(() => this.#rescan(true));
    return this.#scanning;
  }

  setFolders(folders: readonly NamedFolder[]): Promise<void> {
    this.#folders = folders;
    return this.check();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#poll);
    for (const { watcher } of [...this.#inside.values(), ...this.#above.values()]) watcher.close();
  }

  #schedule(): void {
    if (this.#isClosed) return;
    const { debounce = DEBOUNCE } = this.#options;
    const now = Date.now();
    this.#waitingSince ??= now;
    clearTimeout(this.#timer);
    const delay = Math.min(debounce, this.#waitingSince + PATIENCE * debounce - now);
    this.#timer = setTimeout(() => void this.check(), Math.max(0, delay)).unref();
  }

  #schedulePoll(): void {
    clearTimeout(this.#poll);
    if (!this.#isEnabled || this.#isClosed) return;
    this.#poll = setTimeout(() => void this.check(), this.#isBlind ? POLL_BLIND : POLL).unref();
  }

  async #rescan(reports: boolean): Promise<void> {
    if (this.#isClosed) return;
    this.#isBlind = false;
    if (this.#isEnabled) await this.#watchAbove();
    let next = await this.#scanNow();
    // Files may have been added to a new folder before it was watched, so it is scanned again.
    if (this.#isEnabled && this.#watchInside(next)) {
      next = await this.#scanNow();
      this.#watchInside(next);
    }
    if (this.#isClosed) return;
    const hasChanged = keyOf(next) !== keyOf(this.scan);
    this.scan = next;
    this.#schedulePoll();
    if (hasChanged && reports) this.#options.changed(next);
  }

  #scanNow(): Promise<DetailedScan> {
    return scanNamespaces(this.#options.dataDir, this.#folders, this.#hashes);
  }

  /** Watches exactly the folders that were scanned. Returns whether one of them was not watched before. */
  #watchInside({ watched }: DetailedScan): boolean {
    return this.#keep(this.#inside, watched, () => null);
  }

  async #watchAbove(): Promise<void> {
    const names = new Map<string, Set<string>>();
    const marks = new Map<string, string>();
    const places = [toolsFolder(this.#options.dataDir), ...this.#folders.map(({ folder }) => folder)];
    for (const place of places) {
      const { parent, name, mark } = await nearestAbove(place);
      const expected = getOrMake(names, parent, () => new Set<string>()).add(name);
      marks.set(parent, `${mark} ${[...expected].join(' ')}`);
    }
    this.#keep(this.#above, marks, (parent) => names.get(parent)!);
  }

  /** Closes watchers that are no longer wanted and opens missing ones. Returns whether it opened one. */
  #keep(
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
      const watcher = this.#watchNames(watchers, folder, namesIn(folder));
      if (watcher === null) this.#isBlind = true;
      else watchers.set(folder, { mark, watcher });
      hasNew ||= watcher !== null;
    }
    return hasNew;
  }

  /** Schedules a scan when one of these names in the folder changes; null for any name. */
  #watchNames(watchers: Watchers, folder: string, names: ReadonlySet<string> | null): FSWatcher | null {
    const forget = () => {
      watcher?.close();
      if (watchers.get(folder)?.watcher === watcher) watchers.delete(folder);
    };
    const watcher = watchFolder(
      folder,
      (name) => {
        if (names === null || name === null || names.has(name) || name === basename(folder)) this.#schedule();
        // The folder itself was moved or deleted. A new one of the same name needs a new watcher.
        if (name === basename(folder)) forget();
      },
      () => {
        forget();
        this.#schedule();
      },
    );
    return watcher;
  }
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
