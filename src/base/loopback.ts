/** What counts as loopback: an address or name that only this machine answers to. Security decisions depend on it. */
import { BlockList, isIP } from 'node:net';

/** The usual spellings, so that most checks cost one set lookup. */
const USUAL = new Set(['localhost', '127.0.0.1', '::1', '[::1]', '::ffff:127.0.0.1']);

// BlockList handles every spelling of an IPv6 address, and IPv4 addresses embedded in one.
const addresses = new BlockList();
addresses.addSubnet('127.0.0.0', 8, 'ipv4');
addresses.addAddress('::1', 'ipv6');

/**
 * Whether a host is loopback, as written in a configuration, a URL, a Host header or on a socket, without a port. Any
 * name except `localhost` may be resolved by someone else's DNS, even one that starts with `localhost` or `127.`.
 */
export function isLoopback(host: string): boolean {
  if (USUAL.has(host)) return true;
  const name = host
    .toLowerCase()
    .replace(/\.$/, '')
    .replace(/^\[(.*)\]$/, '$1');
  if (name === 'localhost') return true;
  const version = isIP(name);
  return version !== 0 && addresses.check(name, version === 6 ? 'ipv6' : 'ipv4');
}

/** Where a server that listens on this host can be reached on its own machine. */
export function localOrigin(host: string, port: number, isSecure: boolean): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http${isSecure ? 's' : ''}://${local.includes(':') ? `[${local}]` : local}:${port}`;
}
