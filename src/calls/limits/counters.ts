/** The counters of each scope. They survive a change of limits, so that running calls keep their places. */
import type { CallLimits } from '../../config/call-limits.ts';
import type { Days } from './days.ts';
import { Gate } from './gate.ts';
import { Rate } from './rate.ts';

/** A server, one of its tools, an agent, or an agent with a tool. Null means any. */
export interface LimitScope {
  readonly agent: string | null;
  readonly sourceId: number | null;
  readonly tool: string | null;
}

export interface Counters {
  /** Null if the scope has no such limit, or if the gate does not exist and no owner is given to create it. */
  gate(scope: LimitScope, owner?: string): Gate | null;
  /** The gate of an owner; null if none has been requested yet. */
  placesOf(owner: string): Gate | null;
  /** `server` is the key of the scope's server. */
  rate(scope: LimitScope, owner: string, server: string): Rate | null;
  /** A scope's key that stays valid across restarts: it names the server by its key, because source ids change. */
  lastingKey(scope: LimitScope, server: string): string;
  /** Applies changed limits. */
  renew(): void;
}

/** Above this number of counters, unused ones are dropped. Otherwise each former tool and agent would keep its own. */
const MOST = 10_000;

interface Known<T> {
  readonly scope: LimitScope;
  readonly counter: T;
}

export function createCounters(
  days: Days,
  limitsOf: (scope: LimitScope) => CallLimits | null,
  forgotten: () => void,
): Counters {
  const gates = new Map<string, Known<Gate>>();
  const rates = new Map<string, Known<Rate>>();

  function sweep(): void {
    if (gates.size + rates.size + days.counts.size <= MOST) return;
    for (const [key, { counter }] of gates) if (counter.running + counter.waiting === 0) gates.delete(key);
    for (const [key, { counter }] of rates) if (counter.fullAt <= performance.now()) rates.delete(key);
    days.sweep();
    forgotten();
  }

  return {
    gate(scope, owner) {
      const key = keyOf(scope);
      const known = gates.get(key);
      if (known !== undefined) return known.counter;
      const limits = limitsOf(scope);
      if (limits === null || limits.concurrency === null || owner === undefined) return null;
      sweep();
      const gate = new Gate(owner, limits.concurrency, limits.queue);
      gates.set(key, { scope, counter: gate });
      return gate;
    },
    placesOf: (owner) => [...gates.values()].find(({ counter }) => counter.owner === owner)?.counter ?? null,
    rate(scope, owner, server) {
      const key = keyOf(scope);
      const limit = limitsOf(scope)?.rate ?? null;
      if (limit === null) return null;
      const known = rates.get(key)?.counter;
      if (known !== undefined && known.limit.text === limit.text) return known;
      sweep();
      const rate = new Rate(owner, limit, lastingKey(scope, server));
      rates.set(key, { scope, counter: rate });
      return rate;
    },
    lastingKey,
    renew() {
      for (const [key, { scope, counter }] of gates) {
        const limits = limitsOf(scope);
        counter.resize(limits?.concurrency ?? Number.POSITIVE_INFINITY, limits?.queue ?? 0);
        if (limits === null || limits.concurrency === null) gates.delete(key);
      }
    },
  };
}

function lastingKey({ agent, sourceId, tool }: LimitScope, server: string): string {
  return JSON.stringify({
    ...(agent !== null && { agent }),
    ...(sourceId !== null && { server }),
    ...(tool !== null && { tool }),
  });
}

function keyOf({ agent, sourceId, tool }: LimitScope): string {
  return JSON.stringify([agent, sourceId, tool]);
}
