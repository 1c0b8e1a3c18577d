/** A ticket for what can only be begun when something else is done. */
import type { GatewayError } from '../errors.ts';
import type { Ticket } from './connection.ts';

export function later<T>(
  ready: Promise<T>,
  begin: (value: T) => Ticket | null,
  fail: (error: GatewayError) => void = () => {},
): Ticket {
  let cancelled = false;
  let ticket: Ticket | null = null;
  ready.then(
    (value) => {
      if (!cancelled) ticket = begin(value);
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
