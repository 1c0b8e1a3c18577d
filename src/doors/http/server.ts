/**
 * The HTTP door with a listening server, or for a program's own server. The door is loaded on first use, because a
 * gateway on stdio starts faster without it.
 */
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import type { HttpConfig, TlsConfig } from '../../config/http.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { limitConnections } from './connection-limits.ts';
import type { HttpDoor, HttpDoorOptions } from './door.ts';

/** Where to listen, and who may use the door. */
export interface ListenOptions extends HttpDoorOptions {
  readonly host: string;
  readonly port: number;
  /**
   * How the user chooses the port, for the error if it is taken.
   * @internal
   */
  readonly portOption?: string;
  /**
   * Why it does not listen without a credential, not even on loopback; absent if it may.
   * @internal
   */
  readonly needsCredential?: string;
}

/** An HTTP door with a listening server. */
export interface ListeningDoor extends HttpDoor {
  /** The URL of the MCP endpoint. */
  readonly url: string;
  readonly port: number;
}

/**
 * Serves a gateway over HTTP: `/mcp`, REST, probes and metrics, as `toolgate serve` does. Rejects if it would listen on
 * an address other than loopback without a credential.
 *
 * @example
 * const http = await openHttpDoor(gateway, { host: '127.0.0.1', port: 8808 });
 * console.log(http.url);
 * await http.close();
 */
export async function openHttpDoor(gateway: Gateway, options: ListenOptions): Promise<ListeningDoor> {
  const { host, port, portOption = 'the option "port"', identify, needsCredential } = options;
  const { makeDoor } = await import('./door.ts');
  let bound = port;
  const { tls } = gateway.config.http;
  const origin = () => originOf(host, bound, tls !== null);
  const door = await makeDoor(gateway, options, {
    host,
    origin,
    refusal(hasCredentials) {
      if (!hasCredentials && needsCredential !== undefined) return needsCredential;
      return identify === undefined ? refusalToListen(host, gateway.config.http, hasCredentials) : null;
    },
  });
  const { handle, serves, basePath, turnOut } = door;
  const refused = (message: string) => gateway.events.emit('note', { source: 'toolgate', message });
  const limit = (server: Server) => limitConnections(server, gateway.config.http, refused);
  const secure = tls === null ? null : { tls, origin, gateway };
  const pause = () => gateway.config.store?.drainPause ?? 0;
  const listening = await listenFor(door, port, host, portOption, limit, secure, pause);
  bound = listening.port;
  return {
    url: `${origin()}${basePath}/mcp`,
    ...{ handle, serves, basePath, turnOut },
    ...listening,
    get isOpen() {
      return door.isOpen;
    },
    get sessions() {
      return door.sessions;
    },
  };
}

/**
 * Creates an HTTP door without a listening server, for a server of your own.
 *
 * @example
 * const door = await createHttpDoor(gateway, { basePath: '/gateway' });
 * const server = createServer((request, response) => {
 *   if (door.serves(request.url!)) door.handle(request, response);
 *   else response.end('the rest of your site');
 * });
 */
export async function createHttpDoor(gateway: Gateway, options: HttpDoorOptions = {}): Promise<HttpDoor> {
  const { makeDoor } = await import('./door.ts');
  return makeDoor(gateway, options, {
    host: null,
    origin: () => 'http://localhost',
    refusal: () => (options.identify === undefined ? refusalToMount(gateway.config.http) : null),
  });
}

interface ListeningServer {
  readonly port: number;
  drain(ms?: number): Promise<void>;
  close(): Promise<void>;
}

/** Opens a server for a door. Closing it closes the door. If it cannot listen, the door is closed. */
export async function listenFor(
  door: Pick<HttpDoor, 'handle' | 'drain' | 'close'>,
  port: number,
  host: string,
  portOption: string,
  limit: (server: Server) => void = limitConnections,
  secure: SecureListening | null = null,
  pause: () => number = () => 0,
): Promise<ListeningServer> {
  const { server, unfollow } = await openServer(door.handle, port, host, portOption, limit, secure).catch(
    async (error: unknown) => {
      await door.close();
      throw error;
    },
  );
  return {
    port: (server.address() as AddressInfo).port,
    async drain(ms) {
      if (pause() > 0) {
        // Tells balancers that it is going, and takes what they send before they have noticed.
        await door.drain(0);
        await sleep(pause());
      }
      server.close();
      await door.drain(ms);
    },
    async close() {
      unfollow();
      const done = new Promise<void>((resolve) => server.close(() => resolve()));
      await door.close();
      server.closeAllConnections();
      await done;
    },
  };
}

/** Sets the limits that a server on a network needs. */
async function openServer(
  handle: RequestListener,
  port: number,
  host: string,
  portOption: string,
  limit: (server: Server) => void,
  secure: SecureListening | null,
): Promise<{ readonly server: Server; unfollow(): void }> {
  // Loaded on first use, for the same reason as the door.
  const { LIGHT_MESSAGES } = await import('./wire/light-messages.ts');
  const options = {
    maxHeaderSize: 16_384,
    ...LIGHT_MESSAGES,
    headersTimeout: 10_000,
    requestTimeout: 60_000,
    // Node looks for connections that exceed these times only every 30 s otherwise.
    connectionsCheckingInterval: 2_000,
    // Node would silently drop a second Host or Authorization header. Joined values match nothing and are refused.
    joinDuplicateHeaders: true,
  };
  if (secure === null) {
    const { createServer } = await import('node:http');
    const server = createServer(options);
    server.on('request', handle);
    limit(server);
    await listen(server, port, host, portOption);
    return { server, unfollow() {} };
  }
  const { createServer } = await import('node:https');
  const { answerPlainText, followTls, requireCertificate, tlsOptions } = await import('./tls.ts');
  const server = createServer({ ...options, ...tlsOptions(secure.tls) });
  server.on('request', requireCertificate(handle, secure.gateway));
  answerPlainText(server, secure.origin);
  limit(server);
  await listen(server, port, host, portOption);
  return { server, unfollow: followTls(server, secure.gateway, secure.tls) };
}

/** For a server that speaks TLS. */
interface SecureListening {
  readonly tls: TlsConfig;
  origin(): string;
  readonly gateway: Gateway;
}

export function originOf(host: string, port: number, isSecure = false): string {
  return `http${isSecure ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function listen(server: Server, port: number, host: string, portOption: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const why =
        error.code === 'EADDRINUSE'
          ? `port ${port} on ${host} is in use; choose another with ${portOption}`
          : error.code === 'EACCES'
            ? `port ${port} needs more privileges; choose one above 1023 with ${portOption}`
            : error.message;
      reject(new GatewayError('listen_refused', `Toolgate cannot listen: ${why}.`));
    });
    server.listen(port, host, resolve);
  });
}

/** Why the door must not listen there; null if it may. */
function refusalToListen(
  host: string,
  { trustAgentHeader, jwt, publicUrl, allowedHosts, allowedOrigins }: HttpConfig,
  hasCredentials: boolean,
): string | null {
  if (!hasCredentials && allowedOrigins.includes('*'))
    return 'Toolgate does not let every web page in without a credential: any page that you visit could use your tools. Name the origins in http.allowed_origins (CORS_ORIGINS), or set BEARER_TOKEN.';
  if (isLoopback(host)) return null;
  if (!hasCredentials && !trustAgentHeader)
    return `Toolgate does not listen on ${host} without a credential, because anyone there could use your tools. Set BEARER_TOKEN, or listen on 127.0.0.1. Other credentials are the tokens of toolgate agents add, [agents.NAME], [http.jwt] and http.tls.client_ca; if you trust the network itself, set http.trust_agent_header = true.`;
  if (!hasCredentials && allowedHosts.length === 0 && publicUrl === null)
    return `Toolgate does not listen on ${host} with http.trust_agent_header and without a credential unless http.allowed_hosts lists the names that clients use: any web page could reach it under a name of its own. Set it, such as allowed_hosts = ["tools.internal"], or set BEARER_TOKEN.`;
  if (jwt.length > 0 && publicUrl === null)
    return `Toolgate cannot accept JWTs on ${host} without http.public_url, because tokens are issued for that address. Set it to the address that clients use, such as "https://tools.example.com/mcp".`;
  return null;
}

/**
 * The same check for a program's own server. The authenticator checks there which requests come from this machine.
 */
function refusalToMount({ jwt, publicUrl }: HttpConfig): string | null {
  if (jwt.length === 0 || publicUrl !== null) return null;
  return 'Toolgate cannot accept JWTs in the server of another program without http.public_url, because tokens are issued for that address. Set it to the address that clients use, such as "https://tools.example.com/gateway/mcp".';
}
