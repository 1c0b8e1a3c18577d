/** A ticket for what can only be begun when something else is done. */
import { type GatewayError, toGatewayError } from '../base/errors.ts';
import type { Ticket } from '../protocol/contract.ts';

export function deferRequest<T>(
  ready: Promise<T>,
  begin: (value: T) => Ticket | null,
  fail: (error: GatewayError) => void,
): Ticket {
  let cancelled = false;
  let ticket: Ticket | null = null;
  ready.then(
    (value) => {
      if (cancelled) return;
      try {
        ticket = begin(value);
      } catch (error) {
        // Nobody else is here to catch it.
        fail(toGatewayError(error));
      }
    },
    (error: GatewayError) => {
      if (!cancelled) fail(error);
    },
  );
  return {
    cancel(reason) {
      cancelled = true;
      ticket?.cancel(reason);
    },
  };
}
