/**
 * TLS of the door's own server. Certificate, key and authorities are read again when their files change, and new
 * connections use them; open ones go on. Only connections that a client certificate let in end when the authorities
 * change, because the new ones may not vouch for them.
 */
import type { Server as HttpServer, RequestListener } from 'node:http';
import type { Server, ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { readAuthorities, readKeyPair } from '../../base/certificates.ts';
import { messageOf } from '../../base/errors.ts';
import { isSameValue } from '../../base/objects.ts';
import { watchFile } from '../../base/watch-file.ts';
import type { TlsConfig } from '../../config/http.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { presentedBy } from './auth/client-certificate.ts';

/** How long a client may take for the handshake, and for its first byte. */
const PATIENCE = 10_000;
/** The first byte of a TLS handshake. */
const HANDSHAKE = 0x16;

/** Throws if one of the files cannot be used. */
export function readTls({ cert, key, clients }: TlsConfig): SecureContextOptions {
  const pair = readKeyPair(cert, key, 'http.tls.cert', 'http.tls.key');
  return {
    cert: pair.cert,
    key: pair.key,
    ...(clients !== null && { ca: readAuthorities(clients.ca, 'http.tls.client_ca') }),
    minVersion: 'TLSv1.2',
  };
}

/** The options of an HTTPS server. Throws if one of the files cannot be used. */
export function tlsOptions(tls: TlsConfig): ServerOptions {
  return {
    ...readTls(tls),
    handshakeTimeout: PATIENCE,
    requestCert: tls.clients !== null,
    // `requireCertificate` refuses instead: it can say why. The client would only see a connection that breaks.
    rejectUnauthorized: false,
  };
}

/** Passes on only requests of clients with an accepted certificate, if one is required. */
export function requireCertificate(handle: RequestListener, gateway: Gateway): RequestListener {
  const accepted = new WeakSet<Socket>();
  return (request, response) => {
    if (accepted.has(request.socket) || gateway.config.http.tls?.clients?.isRequired !== true) {
      handle(request, response);
      return;
    }
    const presented = presentedBy(request);
    if (presented.kind === 'accepted') {
      accepted.add(request.socket);
      handle(request, response);
      return;
    }
    const why = presented.kind === 'refused' ? `the one shown is not accepted (${presented.reason})` : 'none was shown';
    const message = `A client certificate is required here: ${why}.`;
    gateway.events.emit('unauthorized', { reason: message, remote: request.socket.remoteAddress ?? 'unknown' });
    const body = JSON.stringify({ code: 'forbidden', message });
    response.writeHead(403, { 'content-type': 'application/json', connection: 'close' }).end(body);
  };
}

/** Follows the files of the configuration. Returns the function that stops it. */
export function followTls(server: Server, gateway: Gateway, started: TlsConfig): () => void {
  const note = (message: string) => gateway.events.emit('note', { source: 'http.tls', message });
  const certified = certifiedSockets(server);
  let tls = started;
  let inForce = readTls(tls);
  let watchers: { close(): void }[] = [];

  function reread(): void {
    try {
      const next = readTls(tls);
      if (isSameValue(next, inForce)) return;
      server.setSecureContext(next);
      if (next.ca !== inForce.ca) for (const socket of certified) socket.destroy();
      inForce = next;
      note(`the certificate in ${tls.cert} is in force`);
    } catch (error) {
      note(`${messageOf(error)} The certificate before stays in force.`);
    }
  }

  function watch(): void {
    for (const watcher of watchers) watcher.close();
    watchers = [tls.cert, tls.key].map((file) => watchFile(file, reread));
    // Other authorities may have to be trusted before they let anybody in.
    if (tls.clients !== null)
      watchers.push(watchFile(tls.clients.ca, () => void gateway.change({ tokens: true }).then(reread)));
    // The files may have changed before they were watched.
    reread();
  }

  watch();
  const remove = gateway.addApplier({
    name: 'certificate',
    apply({ http }) {
      const next = http.tls;
      // The server decides once whether it speaks TLS and asks for certificates.
      if (next === null || (next.clients === null) !== (tls.clients === null)) {
        if (!isSameValue(next, tls)) note('this change of http.tls is in force after the next start');
      } else if (!isSameValue(next, tls)) {
        tls = next;
        watch();
      }
    },
  });
  return () => {
    remove();
    for (const watcher of watchers) watcher.close();
  };
}

/** The open connections with an accepted client certificate. */
function certifiedSockets(server: Server): ReadonlySet<TLSSocket> {
  const sockets = new Set<TLSSocket>();
  server.on('secureConnection', (socket: TLSSocket) => {
    if (!socket.authorized || socket.getPeerX509Certificate() === undefined) return;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}

/** Tells clients that send plain HTTP what to do. Otherwise they would only see a connection that breaks. */
export function answerPlainText(server: HttpServer, origin: () => string): void {
  const secure = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const giveUp = () => socket.destroy();
    socket.on('error', giveUp);
    socket.setTimeout(PATIENCE, giveUp);
    socket.once('data', (chunk: Buffer) => {
      socket.pause();
      socket.setTimeout(0, giveUp);
      if (chunk[0] === HANDSHAKE) {
        socket.off('error', giveUp);
        socket.unshift(chunk);
        for (const listener of secure) listener.call(server, socket);
      } else {
        const text = `This gateway speaks HTTPS: use ${origin()}\n`;
        socket.end(
          `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`,
        );
        socket.resume();
      }
    });
  });
}
