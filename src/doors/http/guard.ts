/**
 * Refuses requests from web pages that are not allowed. A page in a browser can reach loopback under any host name (DNS
 * rebinding), so both the `Host` and the `Origin` of a request must be known.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import type { HttpConfig } from '../../config/http.ts';

export interface Guard {
  /** Throws unless host and origin are known. Returns the headers that let an allowed foreign origin read the reply. */
  admit(request: IncomingMessage): readonly string[];
}

const SAME_ORIGIN: readonly string[] = [];

/**
 * `config` is read for each request, because it may be replaced. `boundHost` is the host our own server listens on;
 * null for the embedding program's server. `own` lists the host names that the program declares. `isOpen`: whether
 * clients are admitted without a credential; then only listed names and origins are accepted, not any.
 */
export function createGuard(
  config: () => HttpConfig,
  boundHost: string | null,
  own: readonly string[] | 'any' = [],
  isOpen: () => boolean = () => false,
): Guard {
  // On addresses other than loopback, any name is accepted unless names are listed: a credential is required there.
  const anyHost = own === 'any' || (own.length === 0 && boundHost !== null && !isLoopback(boundHost));
  const ownHosts = own === 'any' ? [] : own.map((host) => host.toLowerCase());

  // Clients send the same host every time, so the last allowed one is cached until the list is replaced.
  let last = { host: '', allowedHosts: [] as readonly string[], isOpen: false };

  function hostAllowed(host: string): boolean {
    const { allowedHosts } = config();
    if (host === last.host && allowedHosts === last.allowedHosts && isOpen() === last.isOpen) return true;
    if (!isKnown(host)) return false;
    last = { host, allowedHosts, isOpen: isOpen() };
    return true;
  }

  function isKnown(host: string): boolean {
    const name = hostName(host);
    if (name === null) return false;
    if (isLoopback(name) || name === boundHost || ownHosts.includes(name)) return true;
    const { allowedHosts, publicUrl } = config();
    if (publicUrl !== null && new URL(publicUrl).hostname === name) return true;
    if (allowedHosts.length > 0) return allowedHosts.some((one) => one.toLowerCase() === name);
    return anyHost && (own === 'any' || !isOpen());
  }

  return {
    admit(request) {
      const { host, origin } = request.headers;
      // Our own server joins duplicate Host headers into one value, which is then not a valid host.
      if (boundHost === null) refuseSecond(request);
      if (host === undefined || !hostAllowed(host)) {
        throw new GatewayError(
          'forbidden',
          boundHost === null
            ? 'The Host header does not name this gateway. If it should, add the host to http.allowed_hosts, or to allowedHosts of the door.'
            : 'The Host header does not name this gateway. If it should, add the host to http.allowed_hosts.',
          { rule: 'http.allowed_hosts' },
        );
      }
      if (origin === undefined) refuseForeignPage(request);
      if (origin === undefined || origin === `http://${host}` || origin === `https://${host}`) return SAME_ORIGIN;
      const { allowedOrigins } = config();
      if (!allowedOrigins.includes(origin) && (isOpen() || !allowedOrigins.includes('*'))) {
        throw new GatewayError(
          'forbidden',
          'The Origin is not allowed; add it to http.allowed_origins if it should be.',
          { rule: 'http.allowed_origins' },
        );
      }
      return [
        'access-control-allow-origin',
        origin,
        'access-control-expose-headers',
        'mcp-session-id, www-authenticate, x-request-id, retry-after',
        'vary',
        'origin',
      ];
    },
  };
}

/**
 * A page of another site can fetch without an Origin, such as an image. It cannot read the answer, but could open
 * sessions. A link that a person follows is fine.
 */
function refuseForeignPage({ headers }: IncomingMessage): void {
  if (headers['sec-fetch-site'] !== 'cross-site' || headers['sec-fetch-dest'] === 'document') return;
  throw new GatewayError(
    'forbidden',
    'A page of another site sent this request. If it may, it has to send its Origin (CORS), and that has to be in http.allowed_origins.',
    { rule: 'http.allowed_origins' },
  );
}

/** With two Host headers, we would use the first, and a proxy in front of us might use the second. */
function refuseSecond({ rawHeaders }: IncomingMessage): void {
  let hosts = 0;
  let credentials = 0;
  let origins = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
    else if (name.length === 13 && name.toLowerCase() === 'authorization') credentials++;
    else if (name.length === 6 && name.toLowerCase() === 'origin') origins++;
  }
  if (hosts > 1 || credentials > 1 || origins > 1)
    throw new GatewayError('forbidden', 'Send each of the headers Host, Origin and Authorization only once.');
}

/** The host without its port, in lower case and without a final dot; null if it is malformed. */
function hostName(host: string): string | null {
  const port = host.startsWith('[') ? host.indexOf(']:') + 1 : host.indexOf(':');
  const name = (port > 0 ? host.slice(0, port) : host).toLowerCase();
  if (port > 0 && !/^\d{1,5}$/.test(host.slice(port + 1))) return null;
  if (!/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)$/.test(name)) return null;
  return name.endsWith('.') ? name.slice(0, -1) : name;
}
