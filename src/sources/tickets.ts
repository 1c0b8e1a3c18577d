/** Tickets of requests that are not on a connection: they have to wait for something, or fail at once. */
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';

/** An error that says nothing against the server: the call was never sent, or its end was our own decision. */
export class NoFault extends GatewayError {}

/** Begins the request when `ready` resolves. If that rejects, the request fails. */
export function deferRequest<T>(
  { sink }: SourceRequest,
  ready: Promise<T>,
  begin: (value: T) => Ticket | null,
): Ticket {
  let cancelled = false;
  let ticket: Ticket | null = null;
  ready.then(
    (value) => {
      if (cancelled) return;
      try {
        ticket = begin(value);
      } catch (error) {
        // There is no caller on the stack to catch it.
        sink.fail(toGatewayError(error));
      }
    },
    (error: unknown) => {
      if (!cancelled) sink.fail(toGatewayError(error));
    },
  );
  return {
    cancel(reason) {
      cancelled = true;
      ticket?.cancel(reason);
    },
  };
}

/** Fails the request as soon as its caller has the ticket. */
export function failRequest({ sink }: SourceRequest, error: GatewayError): Ticket {
  let cancelled = false;
  queueMicrotask(() => {
    if (!cancelled) sink.fail(error);
  });
  return {
    cancel() {
      cancelled = true;
    },
  };
}

/** A request that came when its connection had broken. It is sent on the next one, if there will be one. */
export function unsentRequest(
  request: SourceRequest,
  source: string,
  ended: Promise<void>,
  events: { unsent(request: SourceRequest): Ticket | null },
): Ticket {
  const error = new NoFault('source_unavailable', `Server "${source}" is not running. Try again in a moment.`);
  return deferRequest(request, ended, () => events.unsent(request) ?? failRequest(request, error));
}
