/** Listing again what a server says has changed: a burst makes one listing, and listings of a kind follow one another. */
import type { Kind } from '../catalog/item.ts';

export interface Relisting {
  schedule(kind: Kind): void;
  /** Forgets what is scheduled. */
  clear(): void;
}

const PAUSE = 50;

/** `isEarly`: while the first lists are under way it is too early, but what was announced may have come after its own list. */
export function createRelisting(isEarly: () => boolean, list: (kind: Kind) => Promise<void>): Relisting {
  const timers = new Map<Kind, NodeJS.Timeout>();
  const running = new Set<Kind>();

  function schedule(kind: Kind): void {
    if (!timers.has(kind)) timers.set(kind, setTimeout(look, PAUSE, kind));
  }

  function look(kind: Kind): void {
    timers.delete(kind);
    if (running.has(kind) || isEarly()) {
      schedule(kind);
      return;
    }
    running.add(kind);
    void list(kind).finally(() => running.delete(kind));
  }

  return {
    schedule,
    clear() {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    },
  };
}

/** What a notification says has changed. */
export function changedKinds(method: string): readonly Kind[] {
  switch (method) {
    case 'notifications/tools/list_changed':
      return ['tool'];
    case 'notifications/resources/list_changed':
      return ['resource', 'template'];
    case 'notifications/prompts/list_changed':
      return ['prompt'];
    default:
      return [];
  }
}
