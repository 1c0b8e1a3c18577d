/** Opens the sockets of the HTTP client: how long that may take, and which certificates are accepted and shown. */
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { stampOf } from '../base/watch-file.ts';
import type { ClientTls } from '../config/launch.ts';
import { CONNECT, readClientTls } from './pool-options.ts';

/** Opens a socket. One of `opened` and `failed` is called, later, unless the returned function gives it up before. */
export type Connector = (
  reads: OnReadOpts,
  opened: (socket: Socket, isSecure: boolean) => void,
  failed: (error: Error) => void,
) => () => void;

/** It took too long to connect. */
class ConnectTimeout extends Error {
  readonly code = 'CONNECT_TIMEOUT';
}

/** How often TCP asks whether the other side is still there. */
const PROBE = 60_000;

/** `host`: the header `Host`, if it names another one than the address. The certificate has to be valid for that one. */
export async function createConnector(url: URL, tls: ClientTls | undefined, host: string | null): Promise<Connector> {
  const isSecure = url.protocol === 'https:';
  const hostname = withoutBrackets(url.hostname);
  const port = Number(url.port || (isSecure ? 443 : 80));
  // A file that cannot be used is told now, and not at the first call.
  if (tls !== undefined) readClientTls(tls);
  const secure = isSecure ? await secureConnect(hostname, port, tls, host) : null;
  return (reads, opened, failed) => {
    let socket: Socket;
    try {
      // `onread` gives us the bytes without a stream around them, which is the larger part of what a call costs here.
      socket = secure === null ? connect({ host: hostname, port, noDelay: true, onread: reads }) : secure();
    } catch (error) {
      // A certificate that was replaced by something that is none.
      queueMicrotask(() => failed(error as Error));
      return () => {};
    }
    socket.setKeepAlive(true, PROBE);
    const done = () => {
      clearTimeout(timer);
      socket.off('error', onError).off('close', onClose);
    };
    const onError = (error: Error) => {
      done();
      socket.on('error', ignore);
      failed(error);
    };
    const onClose = () => onError(new Error('the socket was closed'));
    const timer = setTimeout(
      () => socket.destroy(new ConnectTimeout(`no connection within ${CONNECT.timeout / 1000} s`)),
      CONNECT.timeout,
    );
    socket.once('error', onError).once('close', onClose);
    socket.once(isSecure ? 'secureConnect' : 'connect', () => {
      done();
      opened(socket, isSecure);
    });
    return () => {
      done();
      socket.on('error', ignore).destroy();
    };
  };
}

async function secureConnect(
  hostname: string,
  port: number,
  tls: ClientTls | undefined,
  host: string | null,
): Promise<() => Socket> {
  // Loaded here: a server on this machine needs no certificates.
  const { connect: connectSecurely } = await import('node:tls');
  const named = withoutBrackets(host === null ? hostname : new URL(`https://${host}`).hostname);
  const servername = isIP(named) === 0 ? named : '';
  const files = tls === undefined ? [] : [tls.ca, tls.pair?.cert, tls.pair?.key].filter((file) => file != null);
  let stamp = '';
  let certificates = {};
  let session: Buffer | undefined;
  return () => {
    // Renewed certificates count for the next connection. A session of TLS belongs to those that it was opened with.
    const now = files.map(stampOf).join();
    if (tls !== undefined && now !== stamp) {
      certificates = readClientTls(tls);
      session = undefined;
      stamp = now;
    }
    const socket = connectSecurely({
      ...certificates,
      host: hostname,
      port,
      ...(servername !== '' && { servername }),
      ...(session !== undefined && { session }),
      ALPNProtocols: ['http/1.1'],
    });
    socket.setNoDelay(true);
    socket.on('session', (next) => {
      session = next;
    });
    return socket;
  };
}

function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function ignore(): void {}
