/**
 * How many connections a server takes, in all and from one address. Without a limit, idle connections, for which no
 * credential is needed, could use up all descriptors, and nothing could be started or opened any more.
 */
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  /** Null: as many as the descriptors of this process allow. */
  readonly maxConnections: number | null;
  /** Null: half of them. */
  readonly maxConnectionsPerAddress: number | null;
}

/** Enough for every real use. */
const MOST = 10_000;
/** The share of all descriptors that connections may take. Servers, files and sockets to servers need the others. */
const SHARE = 0.5;
/** How often refused connections are reported. */
const REPORT = 60_000;

const DEFAULTS: ConnectionLimits = { maxConnections: null, maxConnectionsPerAddress: null };

/** `refused` is told why connections are refused, now and then. */
export function limitConnections(
  server: Server,
  limits: ConnectionLimits = DEFAULTS,
  refused: (text: string) => void = () => {},
): void {
  const all = limits.maxConnections ?? Math.min(MOST, Math.floor(descriptors() * SHARE));
  const perAddress = limits.maxConnectionsPerAddress ?? Math.ceil(all / 2);
  const open = new Map<string, number>();
  let reported = Number.NEGATIVE_INFINITY;
  const report = (text: string) => {
    if (performance.now() - reported < REPORT) return;
    reported = performance.now();
    refused(text);
  };
  server.maxConnections = all;
  // A connection that cannot be accepted must not end the gateway.
  server.once('listening', () => server.on('error', ({ message }) => report(`a connection failed: ${message}`)));
  server.on('drop', () => report(`connections are refused: ${all} are open, and http.max_connections allows no more`));
  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const count = open.get(address) ?? 0;
    if (count >= perAddress) {
      socket.destroy();
      report(
        `connections from ${address} are refused: ${count} are open, and http.max_connections_per_address allows no more`,
      );
      return;
    }
    open.set(address, count + 1);
    socket.once('close', () => {
      const left = open.get(address)! - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
}

/** How many descriptors this process may have. */
function descriptors(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === undefined ? MOST : Number(soft);
  } catch {
    // Only Linux has this file. Elsewhere the default is enough for this.
    return MOST;
  }
}
