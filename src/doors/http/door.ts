/** The HTTP door without a port of its own: the way of a request to its route. Whoever has a server mounts it there. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError, toGatewayError } from '../../base/errors.ts';
import { isLoopback } from '../../base/loopback.ts';
import { FULL_SCOPE, type Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import type { Gateway } from '../../gateway/types.ts';
import { gauge } from '../../observe/families.ts';
import { requireProfile } from '../../plans/plan.ts';
import { modernErrorObject } from '../../protocol/bridge.ts';
import { errorObject, errorReply } from '../../protocol/rpc.ts';
import { isOperatorKey, operatorKey } from '../../store/operator.ts';
import { type Authenticator, type Identify, openAuthenticator, programAuthenticator } from './auth/authenticator.ts';
import { METADATA_PATH, metadataUrl, Refusal } from './auth/challenge.ts';
import { createGuard } from './guard.ts';
import { createMcpHandler } from './mcp/mcp.ts';
import { createSessions } from './mcp/sessions.ts';
import { createSseHandlers } from './mcp/sse.ts';
import { createStateless, isModernHeader } from './mcp/stateless.ts';
import { ownFailure, sendFailure } from './rest/failure.ts';
import { requestId, withOwnId } from './rest/request-id.ts';
import { createRest, REST_SCOPE } from './rest/rest.ts';
import { allowed, findRoute, type Parts, preflight, type Route } from './routes.ts';
import { type Address, findNamespace, pathOf, readAddress } from './scope.ts';
import type { Memory } from './sessionless.ts';
import { createBackpressure } from './wire/backpressure.ts';
import { sendReply } from './wire/reply.ts';

/** Where the door is, and for whom. */
export interface HttpDoorOptions {
  /** Where the door is mounted, as clients see it: below "/gateway", MCP is at "/gateway/mcp". Absent: at the root. */
  readonly basePath?: string;
  /** Says who sends a request, instead of the credentials of the configuration. Throws a GatewayError "unauthorized" for nobody. */
  readonly identify?: Identify;
  /** Names by which the door may be called, beside loopback and those of the configuration; "any" where the server looks at that. */
  readonly allowedHosts?: readonly string[] | 'any';
  /** The credential of the agent `default`, beside those of the configuration and of `toolgate agents`; null for none. */
  readonly token?: string | null;
  /** How long clients without sessions are remembered; for ever, unless it is said. */
  readonly forget?: Memory;
}

/** A gateway over HTTP, without a server of its own. */
export interface HttpDoor {
  /** Answers a request, whatever it asks for. */
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Whether this address, with the path as clients see it, is one of the door's. */
  serves(url: string): boolean;
  readonly basePath: string;
  readonly sessions: number;
  /** Whether anybody is let in, because no credential is configured. */
  readonly isOpen: boolean;
  /** Revokes an identity that `identify` returned: ends its sessions and what is under way for it. It is not let in again. */
  turnOut(identity: Identity): void;
  /** Says to everybody that the door is about to close and waits for what is under way, at most so many milliseconds (`http.drain`). */
  drain(ms?: number): Promise<void>;
  /** Ends what is under way, and every stream. */
  close(): Promise<void>;
}

/** What is known of the server that leads to a door. */
export interface Place {
  /** What it listens on; null where that is somebody else's matter. */
  readonly host: string | null;
  /** How it is called where `http.public_url` does not say it. */
  origin(): string;
  /** Why there is to be no door; null where there may be one. */
  refusal(hasCredentials: boolean): string | null;
}

export async function makeDoor(gateway: Gateway, options: HttpDoorOptions, place: Place): Promise<HttpDoor> {
  const { identify, allowedHosts = [], token = null } = options;
  const base = readBase(options.basePath);
  const resource = () => gateway.config.http.publicUrl ?? `${place.origin()}${base}/mcp`;
  const guard = createGuard(() => gateway.config.http, place.host, allowedHosts);
  const backpressure = createBackpressure(
    () => gateway.config.limits,
    (bytes) => gateway.events.emit('cut', { bytes }),
  );
  const sessions = createSessions(gateway);
  const stateless = createStateless(gateway, backpressure, options.forget);
  const sse = createSseHandlers(gateway, sessions, backpressure, base, fail);
  const mcp = createMcpHandler(gateway, sessions, stateless, backpressure, fail);
  const rest = createRest(gateway, {
    backpressure,
    fail,
    base: () => gateway.config.http.publicUrl?.replace(/\/mcp\/?$|\/$/, '') ?? base,
    needsToken: () => !authenticator.isOpen,
  });
  let isDraining = false;
  const parts: Parts = { gateway, sse, mcp, rest, resource, fail, isDraining: () => isDraining };
  const authenticator = await enter().catch((error: unknown) => {
    closeParts();
    throw error;
  });

  async function enter(): Promise<Authenticator> {
    const reach = place.host === null ? 'unknown' : isLoopback(place.host) ? 'machine' : 'network';
    const opened =
      identify === undefined
        ? await openAuthenticator(gateway, token, resource, reach, turnOut)
        : programAuthenticator(gateway, identify);
    const refusal = place.refusal(opened.hasCredentials);
    if (refusal === null) return opened;
    opened.close();
    throw new GatewayError('listen_refused', refusal);
  }

  /** Some that were let in no longer are. */
  function turnOut(): void {
    sessions.endRevoked();
    stateless.endRevoked();
    rest.endRevoked();
  }

  function fail(response: ServerResponse, error: unknown, admitted: readonly string[]): void {
    const known = toGatewayError(error);
    if (known.code === 'internal') gateway.events.emit('failure', { where: 'http', error });
    gateway.events.emit('sent_away', { code: known.code });
    const headers = [...admitted];
    if (known instanceof Refusal) headers.push('www-authenticate', known.challenge);
    else if (known.code === 'unauthorized') headers.push('www-authenticate', 'Bearer realm="toolgate"');
    const modern = isModernHeader(response.req.headers);
    if (known.code === 'method_not_allowed') headers.push('allow', allowed(response.req, modern));
    // Closing while the client still sends would take the answer away from it; node reads off what is left otherwise.
    const { complete, headers: asked } = response.req;
    if (!complete && !(Number(asked['content-length']) <= READ_OFF)) headers.push('connection', 'close');
    const style = styleOf(response.req);
    if (style !== undefined) {
      const said = withOwnId(headers, requestId(response.req.headers));
      sendFailure(response, ownFailure(known), said, style === 'mcpo');
      return;
    }
    const reply = modern ? errorReply(null, modernErrorObject(known)) : errorReply('null', errorObject(known));
    sendReply(response, known.httpStatus, reply, headers);
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    if (isDraining) response.shouldKeepAlive = false;
    let headers: readonly string[] = [];
    try {
      if (base !== '') request.url = inside(request.url ?? '/');
      const route = routeOf(request);
      const isOpen = route?.access === 'open';
      if (!isOpen || !route.anyHost) headers = guard.admit(request);
      if (request.method === 'OPTIONS' && headers.length > 0 && route !== undefined) {
        response.writeHead(204, [...headers, ...preflight(route, request)]).end();
        return;
      }
      refuseQueryToken(request);
      if (isOpen) {
        requireRoute(route, request);
        route.handle(parts, request, response, headers);
        return;
      }
      if (route?.access === 'operator') {
        serveOperator(route, request, response, headers).catch((error: unknown) => fail(response, error, headers));
        return;
      }
      const identity = authenticator.identify(request);
      if (!(identity instanceof Promise)) serve(route, request, response, identity, headers);
      else
        identity
          .then((known) => serve(route, request, response, known, headers))
          .catch((error: unknown) => fail(response, error, headers));
    } catch (error) {
      fail(response, error, headers);
    }
  }

  function routeOf({ url = '/' }: IncomingMessage): Route | undefined {
    const path = pathOf(url);
    const route = findRoute(path);
    if (route !== undefined) return route;
    return path === metadataPath() ? METADATA_ROUTE : undefined;
  }

  function metadataPath(): string {
    return new URL(metadataUrl(resource())).pathname;
  }

  /** The address as it is without a base. The metadata of a resource stand at the root, wherever it is itself. */
  function inside(url: string): string {
    if (isBelow(base, url))
      return url.charCodeAt(base.length) === SLASH ? url.slice(base.length) : `/${url.slice(base.length)}`;
    if (pathOf(url) === metadataPath()) return METADATA_PATH;
    throw nothingHere();
  }

  function serves(url: string): boolean {
    if (base !== '' && isBelow(base, url)) return true;
    const path = pathOf(url);
    const route = base === '' ? findRoute(path) : undefined;
    if (route !== undefined) return route.isThere?.(gateway.config.http) !== false;
    return gateway.config.http.jwt !== null && path === metadataPath();
  }

  function nothingHere(): GatewayError {
    const text = `There is nothing here; MCP is at ${base}/mcp, tools over REST are at ${base}/tools.`;
    return new GatewayError('path_unknown', text);
  }

  function styleOf({ url = '/' }: IncomingMessage): Route['style'] {
    const route = findRoute(pathOf(url));
    return route?.isThere?.(gateway.config.http) === false ? undefined : route?.style;
  }

  function requireRoute({ methods, isThere }: Route, { method = '' }: IncomingMessage): void {
    if (isThere?.(gateway.config.http) === false) throw nothingHere();
    if (!methods.includes(method))
      throw new GatewayError('method_not_allowed', `Only ${methods.join(', ')} can be used here.`);
  }

  /** An agent, be it an admin, is not the operator: its token may be known to the model. */
  async function serveOperator(
    route: Extract<Route, { access: 'operator' }>,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
  ): Promise<void> {
    const token = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const isOperator = isOperatorKey(token, await operatorKey(process.env));
    if (!isOperator) await authenticator.identify(request);
    requireRoute(route, request);
    if (!isOperator) throw new GatewayError('forbidden', 'This takes the operator key of the gateway as bearer token.');
    await route.handle(gateway, request, response, headers);
  }

  function serve(
    route: Route | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    identity: Identity,
    headers: readonly string[],
  ): void {
    if (route === undefined || route.access === 'open' || route.access === 'operator') throw nothingHere();
    requireRoute(route, request);
    if (route.access === 'admin') authenticator.requireAdmin(identity, request);
    const address = readAddress(request, route.style === 'mcpo');
    const full = route.style === undefined ? FULL_SCOPE : REST_SCOPE;
    if (address.toolset === null && address.namespace === null && address.task === null)
      route.handle(parts, request, response, headers, identity, full);
    else
      narrow(full, address, request, identity)
        .then((scope) => route.handle(parts, request, response, headers, identity, scope))
        .catch((error: unknown) => fail(response, error, headers));
  }

  /** The scope of a request whose address says what its client is to see. */
  async function narrow(
    full: Scope,
    { toolset: name, namespace, task }: Address,
    request: IncomingMessage,
    identity: Identity,
  ): Promise<Scope> {
    // A session knows its own.
    if (namespace !== null && !isInSession(request)) await findNamespace(gateway, identity.agent, namespace);
    const toolset = name === null ? null : await gateway.toolsets.find(name);
    if (name !== null && toolset === null)
      throw new GatewayError('path_unknown', `There is no toolset "${name}". Build it, or use /mcp.`);
    if (task !== null) requireProfile(task, gateway.config.tasks.rules());
    return { ...full, toolset, namespace, task };
  }

  function closeParts(): void {
    sessions.close();
    stateless.close();
    rest.close();
    backpressure.close();
  }

  const ticking = setInterval(() => {
    const now = Date.now();
    sessions.keepAlive(now);
    stateless.keepAlive(now);
  }, KEEPALIVE);
  ticking.unref();

  const forget = gateway.metrics.add(() => [
    gauge('toolgate_http_streams', 'Event streams that clients hold open.', backpressure.streams),
  ]);

  return {
    handle,
    serves,
    basePath: base,
    get isOpen() {
      return authenticator.isOpen;
    },
    get sessions() {
      return sessions.size;
    },
    turnOut(identity) {
      identity.credential.revocation.isRevoked = true;
      turnOut();
    },
    async drain(ms = gateway.config.http.drain) {
      isDraining = true;
      const end = Date.now() + ms;
      while (sessions.awaited + stateless.awaited + rest.awaited > 0 && Date.now() < end) await pause();
    },
    async close() {
      isDraining = true;
      clearInterval(ticking);
      forget();
      authenticator.close();
      closeParts();
    },
  };
}

const pause = () => new Promise<void>((resolve) => void setTimeout(resolve, 20));

/** How often streams are kept alive and sessions are looked through. */
const KEEPALIVE = 15_000;

/** How long a refused body may be to be read to its end. */
const READ_OFF = 64 * 1024 * 1024;

/** Whether the request goes on with something that was opened before. */
function isInSession({ headers, url = '/' }: IncomingMessage): boolean {
  return headers['mcp-session-id'] !== undefined || pathOf(url).endsWith('/messages');
}

/** Addresses end up in logs and histories; nothing secret belongs there. */
function refuseQueryToken({ url = '/' }: IncomingMessage): void {
  // Nearly all of them.
  if (url === '/mcp') return;
  const query = url.indexOf('?');
  if (query < 0 || !new URLSearchParams(url.slice(query + 1)).has('access_token')) return;
  throw new GatewayError(
    'request_invalid',
    'A token must not stand in the address: send it in the header Authorization.',
  );
}

const METADATA_ROUTE = findRoute(METADATA_PATH);

const SLASH = 47;

function isBelow(base: string, url: string): boolean {
  if (!url.startsWith(base)) return false;
  const next = url[base.length];
  return next === '/' || next === '?' || next === undefined;
}

/** As addresses begin with it: with a slash before it and none behind. */
function readBase(given = ''): string {
  const base = given.replace(/\/+$/, '');
  if (base === '' || /^(\/[\w.~%!$&'()*+,;=:@-]+)+$/.test(base)) return base;
  throw new GatewayError('usage', `basePath is a path such as "/gateway", not ${JSON.stringify(given)}.`);
}
