/** Budgets and kept results that all replicas share. While the store is away, each replica allows its part of a budget. */
import { createHmac } from 'node:crypto';
import { GatewayError } from '../../base/errors.ts';
import type { Entry } from '../../catalog/entry.ts';
import type { StoreConfig } from '../../config/store.ts';
import type { Message } from '../../protocol/message.ts';
import { join, type Parts } from '../../protocol/parts.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { Replica } from '../../store/shared/replica.ts';
import type { CallBudget } from '../../store/shared/shared-store.ts';
import { type CachedResult, canonical } from './cache.ts';
import type { DayLimit } from './days.ts';
import type { Rate } from './rate.ts';

/** What became of a call's budgets. `parts` is among how many replicas they are divided while the store is away. */
export type Spent =
  | { readonly state: 'taken'; readonly kept: CachedResult | null }
  | { readonly state: 'used up'; readonly rate: Rate; readonly pause: number }
  | { readonly state: 'day over'; readonly day: DayLimit }
  | { readonly state: 'away'; readonly parts: number };

export interface SharedBudgets {
  /** The key of a call's result, equal on all replicas; null if it cannot be kept. */
  keyOf(entry: Entry, message: Message): string | null;
  /** Takes from all budgets or from none. Rejects if the store is away and the configuration says so. */
  spend(rates: readonly Rate[], days: readonly DayLimit[], key: string | null): Promise<Spent>;
  keep(key: string, result: Parts, era: Era, ms: number): void;
}

const MOST_RESULT = 1024 * 1024;
const MOST_ARGUMENTS = 64 * 1024;
const DAY = 86_400_000;

export function createSharedBudgets(replica: Replica, config: () => StoreConfig | null): SharedBudgets {
  const { store } = replica;
  const placeOf = (key: string) => `result:${key}`;
  /** Who reads the store must not be able to find out by trying which arguments were sent. */
  const [secret] = replica.keysFor('results');

  async function find(key: string): Promise<CachedResult | null> {
    const sealed = await store.findResult(key);
    const plain = sealed === null ? null : replica.open(sealed, placeOf(key));
    if (plain === null) return null;
    return { era: plain[0] === 1 ? 'modern' : 'legacy', result: plain.subarray(1), time: performance.now() };
  }

  function away(): Spent {
    if (config()?.limits === 'refuse')
      throw new GatewayError(
        'store_unavailable',
        'The call has a limit that all replicas share, and the store that counts it cannot be reached. Try again in 1 s.',
        { details: { retryAfter: 1 } },
      );
    return { state: 'away', parts: replica.count };
  }

  return {
    keyOf(entry, { bytes, argumentsStart, argumentsEnd, taskStart, stateStart }) {
      if (taskStart >= 0 || stateStart >= 0 || argumentsEnd - argumentsStart > MOST_ARGUMENTS) return null;
      const args = argumentsStart < 0 ? '{}' : canonical(bytes, argumentsStart, argumentsEnd);
      const named = JSON.stringify([entry.sourceKey, entry.item.name, entry.item.hash, args]);
      return createHmac('sha256', secret!).update(named).digest('base64url');
    },
    async spend(rates, days, key) {
      const today = Math.floor(Date.now() / DAY);
      const budgets: CallBudget[] = [
        ...rates.map(({ key: name, interval, limit }) => ({
          key: `r ${limit.text} ${name}`,
          interval,
          burst: limit.period,
        })),
        ...days.map(({ count, limit }) => ({ key: `d ${today} ${count.key}`, limit })),
      ];
      try {
        const used = budgets.length === 0 ? null : await store.spend(budgets);
        if (used === null) return { state: 'taken', kept: key === null ? null : await find(key) };
        const rate = rates[used.index];
        if (rate !== undefined) return { state: 'used up', rate, pause: used.pause };
        return { state: 'day over', day: days[used.index - rates.length]! };
      } catch {
        return away();
      }
    },
    keep(key, result, era, ms) {
      const bytes = join(result);
      if (bytes.length > MOST_RESULT) return;
      const marked = Buffer.concat([Buffer.from([era === 'modern' ? 1 : 0]), bytes]);
      void store.keepResult(key, replica.seal(marked, placeOf(key)), ms).catch(() => {});
    },
  };
}
