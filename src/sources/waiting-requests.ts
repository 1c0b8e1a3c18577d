/**
 * Requests that wait for a connection. The agent that holds the fewest connections is next, and each agent's requests
 * are sent in the order in which they came.
 */
import { type GatewayError, toGatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';

export class WaitingRequests {
  /** In the order in which they came. */
  readonly #all = new Set<WaitingRequest>();

  get size(): number {
    return this.#all.size;
  }

  /** `late` is the error for a request that has waited as long as its timeout allows. */
  add(request: SourceRequest, late: (waited: number) => GatewayError): Ticket {
    const waiting = new WaitingRequest(request, this.#all);
    this.#all.add(waiting);
    const longest = Math.min(request.timeout, request.totalTimeout);
    waiting.timer = setTimeout(() => waiting.fail(late(longest)), longest);
    waiting.timer.unref();
    return waiting;
  }

  /** `held` is how many connections the agent of a request has; null if it may not have another one. */
  next(held: (request: SourceRequest) => number | null): WaitingRequest | null {
    let next: WaitingRequest | null = null;
    let least = Number.POSITIVE_INFINITY;
    for (const waiting of this.#all) {
      const count = held(waiting.request) ?? Number.POSITIVE_INFINITY;
      if (count >= least) continue;
      next = waiting;
      least = count;
    }
    return next;
  }

  /** Fails the requests for which this returns an error. */
  fail(errorFor: (request: SourceRequest) => GatewayError | null): void {
    for (const waiting of [...this.#all]) {
      const error = errorFor(waiting.request);
      if (error !== null) waiting.fail(error);
    }
  }
}

export class WaitingRequest implements Ticket {
  readonly request: SourceRequest;
  timer: NodeJS.Timeout | undefined;
  readonly #all: Set<WaitingRequest>;
  #ticket: Ticket | null = null;

  constructor(request: SourceRequest, all: Set<WaitingRequest>) {
    this.request = request;
    this.#all = all;
  }

  /** Whether it may still be sent. If not, it fails. */
  isAllowed(): boolean {
    try {
      this.request.recheck?.();
      return true;
    } catch (error) {
      this.fail(toGatewayError(error));
      return false;
    }
  }

  begin(send: (request: SourceRequest) => Ticket): void {
    this.#leave();
    try {
      this.#ticket = send(this.request);
    } catch (error) {
      this.request.sink.fail(toGatewayError(error));
    }
  }

  fail(error: GatewayError): void {
    if (this.#leave()) this.request.sink.fail(error);
  }

  cancel(reason: string): void {
    this.#leave();
    this.#ticket?.cancel(reason);
  }

  #leave(): boolean {
    clearTimeout(this.timer);
    return this.#all.delete(this);
  }
}
