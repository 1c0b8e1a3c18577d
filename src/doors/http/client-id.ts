/** The id by which a client says that it is the same one as before. It is a claim, so it counts only within its principal. */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../base/errors.ts';
import type { Identity } from '../../calls/identity.ts';
import type { Gateway } from '../../gateway/gateway.ts';

export const CLIENT_ID = 'mcp-client-id';

const ID = /^[\x21-\x7e]{1,200}$/;

export function isClientId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}

/** The id in the headers; null if there is none. Throws if it is not valid. */
export function readClientId(headers: Readonly<Record<string, string | string[] | undefined>>): string | null {
  const header = headers[CLIENT_ID];
  if (header === undefined) return null;
  const id = Array.isArray(header) ? header.join(', ') : header.trim();
  if (id === '') return null;
  if (!ID.test(id))
    throw new GatewayError('request_invalid', `${CLIENT_ID} must have 1 to 200 characters without spaces.`);
  return id;
}

/** The id of a client with this identity. A program has made it part of the principal. */
export function clientIdOf({ via }: Identity, headers: IncomingHttpHeaders): string | null {
  return via === 'program' ? null : readClientId(headers);
}

export function missingClientId(): GatewayError {
  return new GatewayError('request_invalid', `Missing ${CLIENT_ID}: send a stable id of the client in that header.`);
}

/** Throws if the operator requires an id and the request has none. */
export function requireClientId({ config }: Gateway, headers: IncomingHttpHeaders): void {
  if (config.http.requireClientId && readClientId(headers) === null) throw missingClientId();
}
