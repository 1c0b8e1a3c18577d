/**
 * Calls that were given up while the server may still be working on them: not every server stops when it is told to, and
 * what it has said by then is on its way. What comes without an address may be about one of them.
 */
import type { SourceRequest } from '../protocol/contract.ts';

export interface AbandonedRequests {
  add(id: number, request: SourceRequest): void;
  /** The server has answered all the same: nothing more comes of it. */
  answered(id: number): void;
  /** Whether something without an address may be about one, of these methods, that another owner gave up. */
  mayBeAbandoned(owner: object, methods: ReadonlySet<string> | null): boolean;
  /** How many of these methods there are. */
  count(methods: ReadonlySet<string>): number;
}

interface Ghost {
  readonly method: string;
  /** Not held on to: with it go the reply and the socket of a client that may be gone. */
  readonly owner: WeakRef<object>;
  readonly until: number;
}

const MOST = 1_000;
/** How long a server that was told to stop may still have something to say. While it may, others hear less from it. */
const LAST = 30_000;
/** What was asked before the answer may still wait for its addressee: longer than any question does. */
const LINGER = 3_000;

export function createAbandonedRequests(): AbandonedRequests {
  const abandoned = new Map<number, Ghost>();

  function sweep(): void {
    const now = performance.now();
    for (const [id, { until }] of abandoned) if (until < now) abandoned.delete(id);
  }

  return {
    add(id, { method, timeout, sink }) {
      sweep();
      const until = performance.now() + Math.min(timeout, LAST);
      abandoned.set(id, { method, owner: new WeakRef(sink.owner), until });
      if (abandoned.size > MOST) abandoned.delete(abandoned.keys().next().value!);
    },
    answered(id) {
      const ghost = abandoned.get(id);
      if (ghost !== undefined)
        abandoned.set(id, { ...ghost, until: Math.min(ghost.until, performance.now() + LINGER) });
    },
    mayBeAbandoned(owner, methods) {
      if (abandoned.size === 0) return false;
      sweep();
      const isMeant = (ghost: Ghost) => methods?.has(ghost.method) !== false && ghost.owner.deref() !== owner;
      return [...abandoned.values()].some(isMeant);
    },
    count(methods) {
      if (abandoned.size === 0) return 0;
      sweep();
      let sum = 0;
      for (const { method } of abandoned.values()) if (methods.has(method)) sum++;
      return sum;
    },
  };
}
