/** The media types that a request must have, and that its client must accept. */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { type Revision, readsStreams } from '../../../protocol/revisions.ts';

const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';

export function requireJson({ 'content-type': type }: IncomingHttpHeaders): void {
  // Fast path: nearly all requests have exactly this type, which needs no parsing.
  if (type === JSON_TYPE) return;
  const [named = '', ...parameters] = (type ?? '').toLowerCase().split(';');
  if (named.trim() !== JSON_TYPE) throw new GatewayError('media_unsupported', 'Send the body as application/json.');
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith('charset='));
  if (charset !== undefined && !/^charset="?(utf-?8|us-ascii)"?$/.test(charset))
    throw new GatewayError('media_unsupported', 'Send the body in UTF-8.');
}

/** A compressed body would be read as it is. Null if there is nothing wrong. */
export function encodingProblem({ 'content-encoding': encoding }: IncomingHttpHeaders): GatewayError | null {
  if (encoding === undefined || encoding.toLowerCase() === 'identity') return null;
  return new GatewayError('media_unsupported', 'Send the body as it is, without Content-Encoding.');
}

export function requireJsonReader({ accept }: IncomingHttpHeaders): void {
  if (!accepts(accept, JSON_TYPE)) throw notAcceptable(JSON_TYPE);
}

/** `isRequired`: the revision wants the header, and a client without it would wait for the end of the stream. */
export function requireStreamReader({ accept }: IncomingHttpHeaders, isRequired = false): void {
  if ((isRequired && accept === undefined) || !accepts(accept, STREAM_TYPE)) throw notAcceptable(STREAM_TYPE);
}

/** Whether the reply to a POST may be a stream. Throws if the client does not accept what its revision requires. */
export function mayStream({ accept }: IncomingHttpHeaders, revision: Revision): boolean {
  const streams = accepts(accept, STREAM_TYPE);
  if (!accepts(accept, JSON_TYPE) || (!streams && readsStreams(revision)))
    throw notAcceptable(readsStreams(revision) ? `${JSON_TYPE} and ${STREAM_TYPE}` : JSON_TYPE);
  return streams;
}

/** Ranges such as "text/*" count. A client without the header accepts everything. */
function accepts(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.includes(type) || accept.includes('*/*')) return true;
  return accept.includes(`${type.slice(0, type.indexOf('/'))}/*`);
}

function notAcceptable(types: string): GatewayError {
  return new GatewayError('not_acceptable', `The Accept header must list ${types}.`);
}
