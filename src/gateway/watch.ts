/** Watches the files that a gateway was created from: each edit requests a change. */
import { join } from 'node:path';
import { GatewayError } from '../base/errors.ts';
import { type FileWatcher, stampOf, watchFile, watchFilesIn } from '../base/watch-file.ts';
import { writerOf } from '../base/writer.ts';
import type { Config } from '../config/config.ts';
import { findConfig, type LoadOptions } from '../config/find.ts';
import { loadConfig } from '../config/load.ts';
import type { Gateway } from './gateway.ts';

/** Follows the configuration file until it is closed. */
export interface Following {
  close(): void;
}

/**
 * Applies every edit of the configuration file, unless `watch` says otherwise, and reads it again at every SIGHUP. A file with mistakes changes
 * nothing; an event says why.
 */
export function followConfig(gateway: Gateway, options: LoadOptions): Following {
  return followConfigAndSignal(gateway, options, process);
}

/** Where SIGHUP arrives. */
export interface HangUps {
  on(signal: 'SIGHUP', listener: () => void): unknown;
  off(signal: 'SIGHUP', listener: () => void): unknown;
}

/** Leaves out of a configuration what nobody has trusted yet. */
export interface ConfigHolder {
  hold(config: Config): Promise<Config>;
  /** More may be trusted when this file changes; null if nothing has to be trusted. */
  readonly file: string | null;
}

const HOLDS_NOTHING: ConfigHolder = { hold: async (config) => config, file: null };

export function followConfigAndSignal(
  gateway: Gateway,
  options: LoadOptions,
  signals: HangUps,
  holder: ConfigHolder = HOLDS_NOTHING,
): Following {
  const reload = () => void gateway.change({ config: 'file' });
  const edited = () => void gateway.change({ config: 'file', isEdit: true });
  const files = createFileWatch(edited, false, (config) => (config.watch === false ? [] : filesOf(config)));
  const remove = gateway.addApplier({
    name: 'watch of the configuration file',
    load: async () => holder.hold(await loadComplete(options)),
    apply: files.follow,
    settled: () => Promise.all([files.settled(), trusted?.settled()]),
  });
  files.follow(gateway.config);
  signals.on('SIGHUP', reload);
  const trusted = holder.file === null ? null : watchFile(holder.file, edited, true);
  return {
    close() {
      trusted?.close();
      remove();
      files.close();
      signals.off('SIGHUP', reload);
    },
  };
}

/** The configuration file, the rule files that it names, and what was approved. */
function filesOf({ file, tasks, pins }: Config): readonly string[] {
  return file === null ? [] : [file, ...tasks.files, ...(pins.mode === 'off' || pins.file === null ? [] : [pins.file])];
}

/** How often the files are read again because they changed meanwhile. */
const MOST_READS = 5;

/** The configuration in files that nobody writes while they are read. */
async function loadComplete(options: LoadOptions): Promise<Config> {
  for (let reads = 1; ; reads++) {
    const { file } = findConfig(options);
    const before = stampOf(file);
    const writer = await writerOf(file);
    if (writer !== null)
      throw new GatewayError(
        'config_invalid',
        `${file} may be incomplete: process ${writer} has it open for writing. Close it there, and reload again.`,
      );
    const config = await loadConfig(options);
    if (stampOf(file) === before || reads === MOST_READS) return config;
  }
}

/** Follows the secret store until it is closed. */
export interface FollowingSecrets {
  close(): void;
}

/** Passes changed secrets to servers when the secret store changes. */
export function followSecrets(gateway: Gateway): FollowingSecrets {
  const reload = () => void gateway.change({ secrets: true });
  const files = createFileWatch(reload, true, ({ dataDir, vault }) => [
    join(dataDir, 'secrets.enc'),
    ...(vault.keyFile === null ? [] : [vault.keyFile]),
  ]);
  const remove = gateway.addApplier({
    name: 'watch of the secrets',
    apply(config) {
      // The files may have changed before they were watched.
      if (files.follow(config)) reload();
    },
    settled: files.settled,
  });
  files.follow(gateway.config);
  reload();
  return {
    close() {
      remove();
      files.close();
    },
  };
}

/** Follows the saved toolsets until it is closed. */
export interface FollowingToolsets {
  close(): void;
}

/** Applies every edit of a saved toolset, by hand or by another Toolgate, to the callers that have it. */
export function followToolsets(gateway: Gateway): FollowingToolsets {
  const reread = () => void gateway.change({ toolsets: true });
  const watchers = gateway.toolsetFolders.map((folder) => watchFilesIn(folder, reread));
  const remove = gateway.addApplier({
    name: 'watch of the saved toolsets',
    settled: () => Promise.all(watchers.map((watcher) => watcher.settled())),
  });
  // The files may have changed before they were watched.
  reread();
  return {
    close() {
      remove();
      for (const watcher of watchers) watcher.close();
    },
  };
}

interface FileWatch {
  /** Watches exactly the files of this configuration. Returns whether any of them is newly watched. */
  follow(config: Config): boolean;
  settled(): Promise<unknown>;
  close(): void;
}

function createFileWatch(
  changed: () => void,
  tellsMissing: boolean,
  filesOf: (config: Config) => readonly string[],
): FileWatch {
  const watchers = new Map<string, FileWatcher>();
  return {
    follow(config) {
      const files = new Set(filesOf(config));
      for (const [file, watcher] of watchers) if (!files.has(file) && watchers.delete(file)) watcher.close();
      const added = [...files].filter((file) => !watchers.has(file));
      for (const file of added) watchers.set(file, watchFile(file, changed, tellsMissing));
      return added.length > 0;
    },
    settled: () => Promise.all([...watchers.values()].map((watcher) => watcher.settled())),
    close() {
      for (const watcher of watchers.values()) watcher.close();
      watchers.clear();
    },
  };
}
