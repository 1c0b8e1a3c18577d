/**
 * Tells when the namespaces have really changed: a folder dropped, edited or deleted, however that came about. The system's
 * notifications make it quick, a poll makes it certain, and a hash of what is there says whether anything changed at all.
 */
import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { type DetailedScan, type FolderPlace, type Scan, scanNamespaces, toolsFolder } from './namespaces.ts';
import { type Hashes, markOf } from './scan-folder.ts';

export interface NamespaceWatch {
  /** What there was at the last look. */
  readonly scan: Scan;
  /** Looks now; resolves when whoever listens has been told, if there is news. */
  check(): Promise<void>;
  /** Other folders are named by the configuration from now on. */
  setFolders(folders: readonly FolderPlace[]): Promise<void>;
  close(): void;
}

export interface WatchOptions {
  readonly dataDir: string;
  /** Folders that stand elsewhere. */
  readonly folders?: readonly FolderPlace[];
  /** False: looks only when it is told to. */
  readonly enabled?: boolean;
  /** Milliseconds that have to go by without a change. */
  readonly debounce?: number;
  changed(scan: Scan): void;
}

/** By folder, with what tells it from another of the same name. */
type Watchers = Map<string, { readonly mark: string; readonly watcher: FSWatcher }>;

/** A pause in the writing; and where none comes, the longest wait for one, as so many of them. */
const DEBOUNCE = 300;
const PATIENCE = 3;
/** Where the system tells of every folder, and where it does not. */
const POLL = 10_000;
const POLL_BLIND = 1_000;
const MOST_HASHES = 50_000;

/** Resolves after the first look, of which `changed` is not told. It does not keep the process alive. */
export async function watchNamespaces(options: WatchOptions): Promise<NamespaceWatch> {
  const { dataDir, enabled = true, debounce = DEBOUNCE, changed } = options;
  const root = toolsFolder(dataDir);
  const hashes: Hashes = new Map();
  const inside: Watchers = new Map();
  const above: Watchers = new Map();
  let folders = options.folders ?? [];
  let scan: DetailedScan = { namespaces: [], problems: [], watched: new Map() };
  let isBlind = false;
  let closed = false;
  let timer: NodeJS.Timeout | undefined;
  let poll: NodeJS.Timeout | undefined;
  let waitingSince: number | null = null;
  let looking: Promise<void> = Promise.resolve();

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

  /** One look after the other. */
  function check(): Promise<void> {
    clearTimeout(timer);
    waitingSince = null;
    looking = looking.catch(() => {}).then(() => look(true));
    return looking;
  }

  async function look(tells: boolean): Promise<void> {
    if (closed) return;
    isBlind = false;
    if (enabled) await followAbove();
    let next = await scanNamespaces(dataDir, folders, hashes);
    // What came into a new folder before it was watched is seen by looking once more.
    if (enabled && follow(next.watched)) {
      next = await scanNamespaces(dataDir, folders, hashes);
      follow(next.watched);
    }
    if (hashes.size > MOST_HASHES) hashes.clear();
    if (closed) return;
    const isNews = keyOf(next) !== keyOf(scan);
    scan = next;
    plan();
    if (isNews && tells) changed(scan);
  }

  function plan(): void {
    clearTimeout(poll);
    if (!enabled || closed) return;
    poll = setTimeout(() => void check(), isBlind ? POLL_BLIND : POLL).unref();
  }

  /** Watches these folders and no others. Whether there is one among them that was not watched. */
  function follow(wanted: ReadonlyMap<string, string>): boolean {
    return keep(inside, wanted, () => null);
  }

  /** And those in which a folder that is not there, or is taken away, would have to appear. */
  async function followAbove(): Promise<boolean> {
    const names = new Map<string, Set<string>>();
    const marks = new Map<string, string>();
    for (const folder of [root, ...folders.map((place) => place.folder)]) {
      const { place, name, mark } = await nearest(folder);
      const known = (names.get(place) ?? new Set<string>()).add(name);
      names.set(place, known);
      marks.set(place, `${mark} ${[...known].join(' ')}`);
    }
    return keep(above, marks, (place) => names.get(place)!);
  }

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
      const watcher = watchFolder(watchers, folder, namesIn(folder));
      if (watcher === null) isBlind = true;
      else watchers.set(folder, { mark, watcher });
      hasNew ||= watcher !== null;
    }
    return hasNew;
  }

  /** Null where that cannot be, because the folder is gone or the system has no watches left. */
  function watchFolder(watchers: Watchers, folder: string, names: ReadonlySet<string> | null): FSWatcher | null {
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => {
        if (names === null || name === null || names.has(name) || name === basename(folder)) schedule();
        // The folder itself was moved or deleted: one of the same name is another.
        if (name === basename(folder)) forget(watchers, folder, watcher);
      });
      return watcher.on('error', () => {
        forget(watchers, folder, watcher);
        schedule();
      });
    } catch {
      return null;
    }
  }

  function forget(watchers: Watchers, folder: string, watcher: FSWatcher): void {
    watcher.close();
    if (watchers.get(folder)?.watcher === watcher) watchers.delete(folder);
  }

  await look(false);
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

/** The nearest folder above that is there, and the name in it that leads on to `folder`. */
async function nearest(folder: string): Promise<{ place: string; name: string; mark: string }> {
  let name = basename(folder);
  for (let place = dirname(folder); ; place = dirname(place)) {
    const mark = await stat(place, { bigint: true }).then(
      (found) => (found.isDirectory() ? markOf(found) : null),
      () => null,
    );
    if (mark !== null || dirname(place) === place) return { place, name, mark: mark ?? '' };
    name = basename(place);
  }
}

function keyOf({ namespaces, problems }: Scan): string {
  return JSON.stringify([namespaces.map(({ name, folder, hash }) => [name, folder, hash]), problems]);
}
