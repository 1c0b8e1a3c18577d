/** What the headers of a request must say in the revisions with sessions. */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import { isRevision, type Revision, readsStreams } from '../../../protocol/revisions.ts';

const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';

export function requireJson({ 'content-type': type }: IncomingHttpHeaders): void {
  // Nearly always just that, and then nothing is taken apart.
  if (type === JSON_TYPE) return;
  const [named = ''] = (type ?? '').split(';', 1);
  if (named.trim().toLowerCase() === JSON_TYPE) return;
  throw new GatewayError('media_unsupported', 'Send the message as application/json.');
}

/** Without a header the revision is the session's; another one than the session's is refused. */
export function requireVersion(
  { 'mcp-protocol-version': version }: IncomingHttpHeaders,
  agreed: Revision | null,
  spoken: readonly string[],
): void {
  if (version === undefined || version === agreed) return;
  if (!isRevision(version) || !spoken.includes(version)) {
    throw new GatewayError(
      'version_unsupported',
      `This MCP-Protocol-Version is not supported; Toolgate speaks ${spoken.join(', ')}.`,
    );
  }
  if (agreed !== null) {
    throw new GatewayError(
      'version_unsupported',
      `The session has agreed on revision ${agreed}: send that in MCP-Protocol-Version, or open a new session.`,
    );
  }
}

export function requireJsonReader({ accept }: IncomingHttpHeaders): void {
  if (!takes(accept, JSON_TYPE)) throw notAcceptable(JSON_TYPE);
}

export function requireStreamReader({ accept }: IncomingHttpHeaders): void {
  if (!takes(accept, STREAM_TYPE)) throw notAcceptable(STREAM_TYPE);
}

/** Whether the reply to a POST may be a stream. Throws where the client would not understand what it gets. */
export function mayStream({ accept }: IncomingHttpHeaders, revision: Revision): boolean {
  const streams = takes(accept, STREAM_TYPE);
  if (!takes(accept, JSON_TYPE) || (!streams && readsStreams(revision)))
    throw notAcceptable(readsStreams(revision) ? `${JSON_TYPE} and ${STREAM_TYPE}` : JSON_TYPE);
  return streams;
}

/** Ranges such as "text/*" count; a header that is not there takes anything. */
function takes(accept: string | undefined, type: string): boolean {
  if (accept === undefined || accept.includes(type) || accept.includes('*/*')) return true;
  return accept.includes(`${type.slice(0, type.indexOf('/'))}/*`);
}

function notAcceptable(types: string): GatewayError {
  return new GatewayError('not_acceptable', `The Accept header must list ${types}.`);
}
