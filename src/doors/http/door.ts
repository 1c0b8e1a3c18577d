/** The HTTP door: connects its parts, drains them and closes them. A server passes requests to it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import { type Identity, programIdentity } from '../../calls/identity.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { gauge } from '../../observe/families.ts';
import { type Authenticator, type Identify, openAuthenticator, programAuthenticator } from './auth/authenticator.ts';
import type { DashboardPort } from './dashboard-port.ts';
import { createFail } from './error-reply.ts';
import { HttpFront } from './front.ts';
import { createGuard } from './guard.ts';
import { createLoginEntrance, LOGIN_PATH } from './login/login-sessions.ts';
import { createMcpHandler } from './mcp/mcp.ts';
import { createSessions } from './mcp/sessions.ts';
import { createSseHandlers } from './mcp/sse.ts';
import { createStateless } from './mcp/stateless.ts';
import { readBasePath } from './path.ts';
import { createRestApi } from './rest/rest.ts';
import { createRouter, type RouteTable } from './router.ts';
import { type DoorHandlers, doorRoutes } from './routes.ts';
import type { Memory } from './sessionless.ts';
import { createBackpressure } from './wire/backpressure.ts';

/** Where the door is mounted, and who may use it. */
export interface HttpDoorOptions {
  /**
   * The path that the door is mounted at, as clients see it: with "/gateway", MCP is at "/gateway/mcp". Default: the
   * root.
   */
  readonly basePath?: string;
  /**
   * Identifies the sender of a request, in place of the configured credentials. To refuse the request it throws a
   * GatewayError "unauthorized".
   */
  readonly identify?: Identify;
  /**
   * Host names that requests may use, in addition to loopback and the configured ones; "any" if the server checks them
   * itself.
   */
  readonly allowedHosts?: readonly string[] | 'any';
  /**
   * A token for the agent `default`, in addition to those of the configuration and of `toolgate agents`; null for none.
   */
  readonly token?: string | null;
  /** How many clients without a session are remembered, and for how long. Default: all of them, forever. */
  readonly forget?: Memory;
  /**
   * The dashboard. Absent: it has none.
   * @internal
   */
  readonly dashboard?: DashboardPort;
}

/** A gateway over HTTP, for any server. */
export interface HttpDoor {
  /** Answers a request. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Whether the door answers at this URL, base path included. */
  serves(url: string): boolean;
  readonly basePath: string;
  readonly sessions: number;
  /** Whether all clients are admitted because no credential is configured. */
  readonly isOpen: boolean;
  /**
   * Revokes an identity that `identify` returned: ends its sessions and its running requests. It is not admitted again.
   */
  turnOut(identity: Identity): void;
  /**
   * Waits for running requests, for at most this many milliseconds. Default: `http.drain`. From now on connections are
   * not kept alive.
   */
  drain(ms?: number): Promise<void>;
  /** Ends all running requests and every stream. */
  close(): Promise<void>;
}

/** The server that passes requests to a door. */
export interface DoorServer {
  /** The host it listens on; null for the embedding program's server. */
  readonly host: string | null;
  /** Its origin as clients see it, if `http.public_url` is not set. */
  origin(): string;
  /** Why the door must not open; null if it may. */
  refusal(hasCredentials: boolean): string | null;
  /** Whether its streams are in the metrics. Default: true. */
  readonly isCounted?: boolean;
}

/** Milliseconds between keep-alives of streams and checks for idle sessions. */
const KEEPALIVE = 15_000;
const DRAIN_POLL = 20;

/** `routesOf` builds the route table; the library passes its own. */
export async function makeDoor(
  gateway: Gateway,
  options: HttpDoorOptions,
  server: DoorServer,
  routesOf: (handlers: DoorHandlers) => RouteTable = doorRoutes,
): Promise<HttpDoor> {
  const base = readBasePath(options.basePath);
  const { dashboard = null } = options;
  const resource = () => gateway.config.http.publicUrl ?? `${server.origin()}${base}/mcp`;
  const fail = createFail(gateway, () => router);
  const backpressure = createBackpressure(
    () => gateway.config.limits,
    (bytes) => gateway.events.emit('cut', { bytes }),
  );
  const sessions = createSessions(gateway);
  const { replica } = gateway;
  // Loaded with a store only.
  const shared =
    replica === null
      ? null
      : (await import('./mcp/shared-sessions.ts')).createSharedSessions(gateway, replica, sessions, backpressure);
  const stateless = createStateless(gateway, backpressure, options.forget);
  const rest = createRestApi(gateway, {
    backpressure,
    fail,
    base: () => gateway.config.http.publicUrl?.replace(/\/mcp\/?$|\/$/, '') ?? base,
    needsToken: () => !authenticator.isOpen,
  });
  const parts = [sessions, stateless, rest];
  const entrance = createLoginEntrance(() => resource().replace(/\/mcp\/?$|\/$/, ''), replica);

  function endRevoked(): void {
    for (const part of parts) part.endRevoked();
  }

  const authenticator = await openAccess(gateway, options, server, resource, endRevoked);
  const router = createRouter(
    routesOf({
      gateway,
      base,
      mcp: createMcpHandler(gateway, sessions, shared, stateless, backpressure, fail),
      sse: createSseHandlers(gateway, sessions, backpressure, base, fail),
      rest: rest.handlers,
      ownsRoot: server.host !== null || base !== '',
      needsToken: () => !authenticator.isOpen,
      isDraining: () => front.isDraining,
      resource,
      entrance,
      dashboard,
    }),
  );
  // The operator's own door is for nobody else.
  const hasPage = server.isCounted !== false && router.find(LOGIN_PATH, 'GET') !== router.fallback;
  if (hasPage)
    gateway.vault.offerPage((key, agent, principal) =>
      entrance.linkOf({ identity: programIdentity(agent, principal), server: key }),
    );
  const guard = createGuard(
    () => gateway.config.http,
    server.host,
    options.allowedHosts,
    () => authenticator.isOpen,
  );
  const front = new HttpFront({ gateway, base, guard, authenticator, router, fail, dashboard });

  const timer = setInterval(() => {
    const now = Date.now();
    sessions.keepAlive(now);
    stateless.keepAlive(now);
  }, KEEPALIVE);
  timer.unref();

  const removeGauge =
    server.isCounted === false
      ? () => {}
      : gateway.metrics.add(() => [
          gauge('toolgate_http_streams', 'Event streams that clients hold open.', backpressure.streams),
        ]);

  return {
    handle: (request, response) => front.handle(request, response),
    serves: (url) => front.serves(url),
    basePath: base,
    get isOpen() {
      return authenticator.isOpen;
    },
    get sessions() {
      return sessions.size;
    },
    turnOut(identity) {
      identity.credential.revocation.isRevoked = true;
      endRevoked();
    },
    async drain(ms = gateway.config.http.drain) {
      front.isDraining = true;
      shared?.drain();
      const end = Date.now() + ms;
      const isBusy = () => (shared?.admitting ?? 0) > 0 || parts.some(({ awaited }) => awaited > 0);
      while (isBusy() && Date.now() < end) await sleep(DRAIN_POLL);
    },
    async close() {
      front.isDraining = true;
      front.isClosed = true;
      clearInterval(timer);
      removeGauge();
      if (hasPage) gateway.vault.offerPage(null);
      authenticator.close();
      await shared?.close();
      for (const part of parts) part.close();
      backpressure.close();
    },
  };
}

/** Opens the authenticator. Rejects if the server must not have a door. */
async function openAccess(
  gateway: Gateway,
  { identify, token = null }: HttpDoorOptions,
  server: DoorServer,
  resource: () => string,
  endRevoked: () => void,
): Promise<Authenticator> {
  const reach = server.host === null ? 'unknown' : isLoopback(server.host) ? 'machine' : 'network';
  const authenticator =
    identify === undefined
      ? await openAuthenticator(gateway, { commonToken: token, reach, resource, revoked: endRevoked })
      : programAuthenticator(gateway, identify);
  const refusal = server.refusal(authenticator.hasCredentials);
  if (refusal === null) return authenticator;
  authenticator.close();
  throw new GatewayError('listen_refused', refusal);
}
