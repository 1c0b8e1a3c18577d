/**
 * Fetches what a server names while it asks who we are: addresses that nobody configured. From a server on the internet,
 * they may not lead into this machine or the networks around it, and must be encrypted. A server that is encrypted itself
 * and known by a name stays so: otherwise those who answer for its name could say that it is around here, and make us ask
 * anything here. Where clouds give credentials to machines is closed to all.
 */
import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import type { Dispatcher } from 'undici';
import { GatewayError } from '../base/errors.ts';
import { isMachineAddress, isPrivateAddress } from '../base/private-address.ts';

/** What the library for OAuth calls in place of `fetch`. */
export type GuardedFetch = (url: string, init?: FetchInit) => Promise<Response>;

interface FetchInit {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

export interface FetchGuard {
  readonly fetch: GuardedFetch;
  /** Whether the server itself is in this machine or a network around it, so that everything it names may be too. */
  readonly isHome: boolean;
  /** Whether what it names need not be encrypted. */
  readonly mayBePlain: boolean;
  close(): Promise<void>;
}

const MOST_BYTES = 1024 * 1024;
const LONGEST = 10_000;

/** `ca`: the authorities that the server's own certificate may be from; undefined for those of the system. */
export async function createGuard(server: string, ca?: readonly string[]): Promise<FetchGuard> {
  const { Agent, fetch } = await import('undici');
  const { protocol, hostname } = new URL(server);
  const place = await placeOf(hostname);
  const isHome = place !== 'internet';
  const mayBePlain = place === 'here' || (isHome && protocol === 'http:');
  const isClosed = isHome ? (isMachineAddress(bare(hostname)) ? () => false : isMachineAddress) : isPrivateAddress;
  const connect = {
    timeout: LONGEST,
    ...(ca !== undefined && { ca: [...ca] }),
    lookup: lookupWithout(isClosed),
  };
  const agent = new Agent({ connect, maxResponseSize: MOST_BYTES, headersTimeout: LONGEST, bodyTimeout: LONGEST });
  return {
    isHome,
    mayBePlain,
    close: () => agent.destroy(),
    async fetch(address, init = {}) {
      requireAllowed(address, mayBePlain, isClosed);
      const { method = 'GET', headers = {}, body } = init;
      const response = await fetch(address, {
        method,
        headers,
        // Each hop would have to be checked, and no answer of these may redirect a secret.
        redirect: 'manual',
        signal: init.signal ?? AbortSignal.timeout(LONGEST),
        dispatcher: agent as Dispatcher,
        ...(body != null && { body: body instanceof URLSearchParams ? body.toString() : String(body) }),
      });
      // A Response of this process, because the library checks for it.
      const bytes = await response.arrayBuffer();
      const isBare = response.status === 204 || response.status === 304;
      return new Response(isBare ? null : bytes, { status: response.status, headers: [...response.headers] });
    },
  };
}

/** Where a server is: `here` if its address says so, `around` if all addresses of its name are private. */
async function placeOf(host: string): Promise<'here' | 'around' | 'internet'> {
  const name = bare(host);
  if (isIP(name) !== 0) return isPrivateAddress(name) ? 'here' : 'internet';
  if (name === 'localhost' || name.endsWith('.localhost')) return 'here';
  return new Promise((resolve) => {
    // A name that is not known leads nowhere. It is treated as one on the internet.
    lookup(name, { all: true }, (error, found) => {
      const isAround = error === null && found.length > 0 && found.every(({ address }) => isPrivateAddress(address));
      resolve(isAround ? 'around' : 'internet');
    });
  });
}

/** Without the brackets of IPv6. */
function bare(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

/** Throws unless the address may be fetched, as far as that can be seen from the address. */
function requireAllowed(address: string, mayBePlain: boolean, isClosed: (address: string) => boolean): void {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw refused(address, 'is not an address on the web');
  if (url.username !== '' || url.password !== '') throw refused(url.origin, 'contains a user name');
  if (!mayBePlain && url.protocol !== 'https:') throw refused(address, 'is not encrypted (https)');
  const host = bare(url.hostname);
  // Names are checked when they are looked up. Numbers are not looked up.
  if (isIP(host) !== 0 && isClosed(host)) throw refused(address, 'leads to a private address');
}

function refused(address: string, why: string): GatewayError {
  return new GatewayError(
    'source_broken',
    `names ${JSON.stringify(address.slice(0, 200))}, which ${why}, and is refused`,
  );
}

type GuardedLookup = (
  host: string,
  options: object,
  done: (error: Error | null, address: string | { address: string; family: number }[], family?: number) => void,
) => void;

/** Looks a name up like Node does, and fails if one of its addresses is closed. */
function lookupWithout(isClosed: (address: string) => boolean): GuardedLookup {
  return (host, options, done) => {
    lookup(host, { ...options, all: true }, (error, found) => {
      const bad = error === null && found.some(({ address }) => isClosed(address));
      if (error !== null || bad || found.length === 0) {
        done(error ?? refused(`https://${host}`, 'leads to a private address'), []);
        return;
      }
      if ('all' in options && options.all === true) done(null, found);
      else done(null, found[0]!.address, found[0]!.family);
    });
  };
}
