/**
 * The id of a call over REST, in its reply and in the audit: the one that the client sends, or else a number. The
 * number is sent back only with failures, because another header on every reply costs measurable time.
 */
import { randomInt } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const ACCEPTED = /^[\w.:+/=@-]{1,64}$/;

// Numbers have nine digits, which the audit prints fastest. The first one is random, so that two runs rarely share ids.
const END = 1_000_000_000;
let serial = randomInt(100_000_000, 900_000_000);

/** As JSON: a string for the client's own id. */
export function requestId({ 'x-request-id': given }: IncomingHttpHeaders): string {
  if (typeof given === 'string' && ACCEPTED.test(given)) return `"${given}"`;
  serial = serial + 1 >= END ? 100_000_000 : serial + 1;
  return String(serial);
}

const HEADER = 'x-request-id';

export function isOwnId(id: string): boolean {
  return id[0] === '"';
}

/** Adds the client's own id to the headers of a reply. */
export function withOwnId(headers: readonly string[], id: string): readonly string[] {
  return isOwnId(id) ? [...headers, HEADER, id.slice(1, -1)] : headers;
}

/** Adds the number if the client sent no id. */
export function withNumber(headers: readonly string[], id: string): readonly string[] {
  return isOwnId(id) ? headers : [...headers, HEADER, id];
}
