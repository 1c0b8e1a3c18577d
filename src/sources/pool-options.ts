/** How connections over HTTP are opened: how long that may take, and which certificates are accepted and shown. */
import type { SecureContextOptions } from 'node:tls';
import type { Pool } from 'undici';
import { fingerprintIn, readAuthorities, readKeyPair } from '../base/certificates.ts';
import { stampOf } from '../base/watch-file.ts';
import type { ClientTls } from '../config/launch.ts';

export const CONNECT = { timeout: 10_000 };

/** Without timeouts here, because each request has its own. */
export async function poolOptions({ tls }: { readonly tls?: ClientTls }): Promise<Pool.Options> {
  const none = { headersTimeout: 0, bodyTimeout: 0 };
  if (tls === undefined) return { ...none, connect: CONNECT };
  // A file that cannot be used is told now, and not at the first call.
  readClientTls(tls);
  const { buildConnector } = await import('undici');
  const files = [tls.ca, tls.pair?.cert, tls.pair?.key].filter((file) => file != null);
  // Renewed certificates count for the next connection. The connector is kept as long as they are the same, because it
  // remembers TLS sessions.
  let stamp = '';
  let connector = buildConnector(CONNECT);
  return {
    ...none,
    connect(options, callback) {
      const now = files.map(stampOf).join();
      try {
        if (now !== stamp) connector = buildConnector({ ...CONNECT, ...readClientTls(tls) });
        stamp = now;
      } catch (error) {
        callback(error as Error, null);
        return;
      }
      connector(options, callback);
    },
  };
}

/**
 * For our own server at an address inside. The names in its certificate are those that clients use, so it is also recognized
 * by the certificate itself.
 */
export async function ownServerOptions(cert: string, pair: ClientTls['pair']): Promise<Pool.Options> {
  const [{ buildConnector }, { TLSSocket }] = await Promise.all([import('undici'), import('node:tls')]);
  const shown = pair === null ? {} : readClientTls({ ca: null, pair });
  // A resumed session would show no certificate.
  const connector = buildConnector({ ...CONNECT, ...shown, rejectUnauthorized: false, maxCachedSessions: 0 });
  return {
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(options, callback) {
      connector(options, (error, socket) => {
        if (error !== null) return callback(error, null);
        try {
          if (!(socket instanceof TLSSocket) || socket.authorized) return callback(null, socket);
          const shows = socket.getPeerX509Certificate()?.fingerprint256;
          if (shows === fingerprintIn(cert, 'http.tls.cert')) return callback(null, socket);
          throw new Error(`its certificate is neither that of http.tls.cert nor valid (${socket.authorizationError})`);
        } catch (problem) {
          socket.destroy();
          callback(problem as Error, null);
        }
      });
    },
  };
}

export function readClientTls({ ca, pair }: ClientTls): Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> {
  const own = pair === null ? null : readKeyPair(pair.cert, pair.key, 'tls.cert', 'tls.key');
  return {
    ...(ca !== null && { ca: readAuthorities(ca, 'tls.ca') }),
    ...(own !== null && { cert: own.cert, key: own.key }),
  };
}
