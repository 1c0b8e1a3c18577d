/**
 * What a call over REST is called, in its reply and in the audit: by the client's own word, or else by a number. Whoever
 * gave none is told the number only of what failed: a header for every reply is felt.
 */
import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const USUAL = /^[\w.:+/=@-]{1,64}$/;

// Nine digits, which the audit prints fastest, from a place that hardly comes again at the next start.
const LAST = 1_000_000_000;
let serial = randomInt(100_000_000, 900_000_000);

/** As JSON. */
export function requestId({ 'x-request-id': given }: IncomingHttpHeaders): string {
  if (typeof given === 'string' && USUAL.test(given)) return `"${given}"`;
  serial = serial + 1 >= LAST ? 100_000_000 : serial + 1;
  return String(serial);
}

const HEADER = 'x-request-id';

export function isOwnId(id: string): boolean {
  return id[0] === '"';
}

/** For any reply. */
export function withOwnId(headers: readonly string[], id: string): readonly string[] {
  return isOwnId(id) ? [...headers, HEADER, id.slice(1, -1)] : headers;
}

/** For one that has `withOwnId`. */
export function withNumber(headers: readonly string[], id: string): readonly string[] {
  return isOwnId(id) ? headers : [...headers, HEADER, id];
}
