/** Calls that depend on servers that are still starting, in order; each is tried again with every catalog. */

import type { ErrorCode } from '../base/errors.ts';
import type { Ticket } from '../protocol/contract.ts';

/** Answers that may be others when all servers are there, or when what was asked before has been done. */
export const MAY_CHANGE: ReadonlySet<ErrorCode> = new Set(['item_unknown', 'resource_unknown', 'item_inactive']);

export interface EarlyCalls {
  /** `again` makes the call; it may come back here. */
  add(again: () => Ticket): Ticket;
  retry(): void;
}

export function createEarlyCalls(): EarlyCalls {
  const waiting = new Set<() => void>();
  return {
    add(again) {
      let ticket: Ticket | null = null;
      const retry = () => {
        ticket = again();
      };
      waiting.add(retry);
      return {
        cancel(reason) {
          waiting.delete(retry);
          ticket?.cancel(reason);
        },
      };
    },
    retry() {
      const all = [...waiting];
      waiting.clear();
      for (const retry of all) retry();
    },
  };
}
