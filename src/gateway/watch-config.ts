/** Keeps a gateway on its configuration file: every edit and every SIGHUP is read, checked whole, and only then applied. */

import { GatewayError, messageOf } from '../base/errors.ts';
import type { Config } from '../config/config.ts';
import { type LoadOptions, loadConfig } from '../config/load.ts';
import { watchConfig } from '../config/watch.ts';
import type { Gateway } from './types.ts';

/** Until it is closed, a gateway follows its configuration file. */
export interface Following {
  close(): void;
}

/** Applies every edit of the configuration file. One with mistakes changes nothing, and is told as an event. */
export function followConfig(gateway: Gateway, options: LoadOptions): Following {
  let last = Promise.resolve();
  let closed = false;

  async function reload(): Promise<void> {
    if (closed) return;
    let next: Config;
    try {
      next = await loadConfig(options);
    } catch (error) {
      if (!(error instanceof GatewayError)) gateway.events.emit('failure', { where: 'configuration', error });
      gateway.events.emit('config', {
        ok: false,
        message: `kept the configuration in force, the new one is refused:\n${messageOf(error)}`,
      });
      return;
    }
    if (closed) return;
    gateway.apply(next);
    watchAll();
  }

  // One after the other: the last edit is the one that stays.
  const queue = () => {
    last = last.then(reload);
    return last;
  };
  const stop = gateway.reloading.add(queue);
  const watchers = new Map<string, { close(): void }>();
  /** The file, and those of rules that it names. */
  const watchAll = () => {
    const { file, tasks } = gateway.config;
    const files = new Set(file === null ? [] : [file, ...tasks.files]);
    for (const [name, watcher] of watchers) if (!files.has(name) && watchers.delete(name)) watcher.close();
    for (const name of files) if (!watchers.has(name)) watchers.set(name, watchConfig(name, queue));
  };
  watchAll();
  process.on('SIGHUP', queue);
  return {
    close() {
      closed = true;
      stop();
      for (const watcher of watchers.values()) watcher.close();
      process.off('SIGHUP', queue);
    },
  };
}
