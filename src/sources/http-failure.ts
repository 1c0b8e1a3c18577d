/** What it means when an HTTP request gets no answer: an error status, or a failed connection. */
import { messageOf } from '../base/errors.ts';

/** The statuses of a server that does not know the path or the session. */
export const NOT_HERE: readonly number[] = [400, 404, 405];

/** The statuses of a server that does not know the path. */
export const NO_SUCH_PATH: readonly number[] = [404, 405];

/** The statuses of a proxy that gets no answer from its server. */
export const NOBODY_THERE: readonly number[] = [502, 503, 504];

/** The error codes that show that the server has read the request. */
const UNDERSTOOD: readonly number[] = [-32_601, -32_602, -32_603, -32_020, -32_021, -32_022];

export function isUnderstood(answer: Buffer): boolean {
  try {
    const { error } = JSON.parse(answer.toString()) as { error?: { code?: unknown } };
    return UNDERSTOOD.includes(Number(error?.code));
  } catch {
    return false;
  }
}

/** A message over the limit. */
export class TooLarge extends Error {
  constructor(limit: number) {
    super(`sent a message of more than ${limit} bytes; raise limits.message to allow it`);
  }
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CONNECT_TIMEOUT',
]);

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code ?? '');
}

export function isUnreachable(error: unknown): boolean {
  return UNREACHABLE.has(codeOf(error));
}

/** What the server did. Completes a sentence that begins with its name. */
export function failureReason(error: unknown): string {
  if (error instanceof TooLarge) return error.message;
  const code = codeOf(error);
  if (code === 'ECONNREFUSED') return 'refused the connection; is it running?';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'has a host name that cannot be found';
  if (/^(?:SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_(?:GET_ISSUER|VERIFY))/.test(code))
    return `has a certificate of an authority that is not trusted here (${code}); name the authority with tls.ca, --ca or NODE_EXTRA_CA_CERTS`;
  if (/^(?:CERT_|ERR_TLS_CERT)/.test(code)) return `has a certificate that is not valid for it now (${code})`;
  if (code === 'HTTP_INVALID') return `sent a response that is not valid HTTP: ${messageOf(error)}`;
  if (code === 'BAD_HEADER') return `cannot be asked: ${messageOf(error)}; check the headers in its configuration`;
  if (/CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE/.test(code)) return `requires a client certificate (${code})`;
  return `broke the connection (${code || messageOf(error)})`;
}

/** The same for an HTTP status. */
export function statusReason(status: number): string {
  return `answered with HTTP status ${status}${statusHint(status)}`;
}

function statusHint(status: number): string {
  if (status === 401 || status === 403) return '; check the headers in its configuration';
  if (NO_SUCH_PATH.includes(status)) return '; check the path of its url';
  if (status < 400) return '; redirects are not followed, use the final url';
  return '';
}
