/** Where page sessions and the codes of links are kept: in this process, and with other replicas on all of them. */
import { BoundedMap } from '../base/bounded-map.ts';
import type { Replica } from '../store/shared/replica.ts';

interface Kept {
  /** Milliseconds since 1970. */
  readonly expires: number;
}

export interface PageShelf<Value extends Kept> {
  get(key: string): Value | undefined;
  /** Drops what has expired, and the oldest if there are too many. */
  set(key: string, value: Value): Promise<void>;
  /** Takes it away. False if it is not there, or if another replica was quicker. */
  take(key: string): Promise<boolean>;
  readonly size: number;
}

export function openShelf<Value extends Kept>(replica: Replica | null, name: string, most: number): PageShelf<Value> {
  return replica === null ? ownShelf(most) : sharedShelf(replica, name, most);
}

function ownShelf<Value extends Kept>(most: number): PageShelf<Value> {
  const kept = new BoundedMap<string, Value>(most);
  return {
    get: (key) => kept.get(key),
    async set(key, value) {
      kept.set(key, value);
    },
    take: async (key) => kept.delete(key),
    get size() {
      return kept.size;
    },
  };
}

/** How long it is remembered that one replica took something. */
const TAKEN = 10 * 60_000;

function sharedShelf<Value extends Kept>(replica: Replica, name: string, most: number): PageShelf<Value> {
  const shared = replica.map(name);
  const all = () => [...shared.entries()] as (readonly [string, Value])[];
  return {
    get: (key) => shared.get(key) as Value | undefined,
    async set(key, value) {
      const now = Date.now();
      const others = all().filter(([other]) => other !== key);
      const lasting = others.filter(([, { expires }]) => expires > now).sort(([, a], [, b]) => b.expires - a.expires);
      const fit = new Set(lasting.slice(0, most - 1).map(([other]) => other));
      for (const [other] of others) if (!fit.has(other)) await shared.set(other, null);
      await shared.set(key, value);
    },
    async take(key) {
      if (shared.get(key) === undefined) return false;
      const isFirst = await replica.store.claim(`${name} ${key}`, replica.id, TAKEN);
      await shared.set(key, null);
      return isFirst;
    },
    get size() {
      return all().length;
    },
  };
}
