/** Keeps a gateway on its secrets: whoever sets one need not tell it. Servers that are given other values are started anew. */
import { join } from 'node:path';
import { watchConfig } from '../config/watch.ts';
import type { Gateway } from './types.ts';

/** Until it is closed, a gateway follows the store of secrets. */
export interface FollowingSecrets {
  close(): void;
}

/** Gives servers other secrets when those in the store change. */
export function followSecrets(gateway: Gateway): FollowingSecrets {
  let told: string | null = null;

  async function reload(): Promise<void> {
    const problem = await gateway.vault.reload();
    tell(problem);
  }

  /** The same trouble is told once. */
  function tell(problem: string | null): void {
    if (problem !== null && problem !== told)
      gateway.events.emit('note', { source: 'secrets', message: `${problem} What is in force stays.` });
    told = problem;
  }

  let watchers: { close(): void }[] = [];
  let watched: string | null = null;

  /** The key may be elsewhere with another configuration. */
  function watch(): void {
    const { dataDir, vault } = gateway.config;
    if (watchers.length > 0 && watched === vault.keyFile) return;
    for (const watcher of watchers) watcher.close();
    watched = vault.keyFile;
    const files = [join(dataDir, 'secrets.enc'), ...(watched === null ? [] : [watched])];
    watchers = files.map((file) => watchConfig(file, () => void reload(), true));
    // What was changed between the last look and now.
    void reload();
  }

  watch();
  const stop = gateway.reloading.add(reload);
  const listening = gateway.events.listen((name) => {
    if (name === 'config') watch();
  });
  return {
    close() {
      stop();
      listening();
      for (const watcher of watchers) watcher.close();
    },
  };
}
