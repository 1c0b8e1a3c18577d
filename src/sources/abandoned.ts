/**
 * Requests that were given up while their server may still be working on them. Not every server stops when told to, and
 * messages that it has already written still arrive. A message that names no request may belong to one of these.
 */
import { BoundedMap } from '../base/bounded-map.ts';
import type { SourceRequest } from '../protocol/contract.ts';

interface AbandonedRequest {
  readonly method: string;
  /** A weak reference: the owner holds the reply and the socket of a client that may be gone. */
  readonly owner: WeakRef<object>;
  readonly until: number;
}

const MOST = 1_000;
/**
 * How long a server that was told to stop may still write something. In that time messages that name no request are not
 * delivered to other callers.
 */
const AFTER_CANCEL = 30_000;
/** A question that came before the answer may still wait for an addressee. Longer than any question waits. */
const AFTER_ANSWER = 3_000;

/** Servers log nothing about these requests. */
export const UNLOGGED: ReadonlySet<string> = new Set([
  'logging/setLevel',
  'subscriptions/listen',
  'ping',
  'server/discover',
]);

export class AbandonedRequests {
  readonly #requests = new BoundedMap<number, AbandonedRequest>(MOST);

  add(id: number, { method, timeout, sink }: SourceRequest): void {
    if (UNLOGGED.has(method)) return;
    this.#sweep();
    const until = performance.now() + Math.min(timeout, AFTER_CANCEL);
    this.#requests.set(id, { method, owner: new WeakRef(sink.owner), until });
  }

  /** The server answered after all, so it will hardly write anything else about the request. */
  answered(id: number): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    const until = Math.min(request.until, performance.now() + AFTER_ANSWER);
    this.#requests.set(id, { ...request, until });
  }

  /** Whether a message that names no request may belong to one of another owner, with one of these methods. */
  mayConcern(owner: object, methods: ReadonlySet<string> | null): boolean {
    if (this.#requests.size === 0) return false;
    this.#sweep();
    return [...this.#requests.values()].some(
      (request) => methods?.has(request.method) !== false && request.owner.deref() !== owner,
    );
  }

  count(methods: ReadonlySet<string>): number {
    if (this.#requests.size === 0) return 0;
    this.#sweep();
    let sum = 0;
    for (const { method } of this.#requests.values()) if (methods.has(method)) sum++;
    return sum;
  }

  #sweep(): void {
    const now = performance.now();
    for (const [id, { until }] of this.#requests) if (until < now) this.#requests.delete(id);
  }
}
