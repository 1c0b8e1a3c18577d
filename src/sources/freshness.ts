/** How long the lists of a server hold that does not tell of changes. They are looked after only when somebody looks at them. */
import type { Kind } from '../catalog/item.ts';

export interface Freshness {
  /** These kinds were just listed, and hold so many milliseconds; the server is silent about changes of some. */
  note(silent: readonly Kind[], holds: Readonly<Partial<Record<Kind, number>>>): void;
  /** Asked for; from then on it counts as being listed. */
  isOver(kind: Kind): boolean;
}

/** Many servers say that nothing holds at all; they are still not asked at every look. */
const AT_LEAST = 5_000;

export function createFreshness(): Freshness {
  const until = new Map<Kind, number>();
  return {
    note(silent, holds) {
      for (const [kind, ttl] of Object.entries(holds) as [Kind, number | undefined][]) {
        if (ttl !== undefined && silent.includes(kind)) until.set(kind, Date.now() + Math.max(ttl, AT_LEAST));
        else until.delete(kind);
      }
    },
    isOver(kind) {
      const end = until.get(kind);
      if (end === undefined || Date.now() < end) return false;
      until.set(kind, Date.now() + AT_LEAST);
      return true;
    },
  };
}
