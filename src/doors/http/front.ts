/** The entry point of the HTTP door: takes each request through the guard and the authenticator to its route. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError, toGatewayError } from '../../base/errors.ts';
import { sha256 } from '../../base/hash.ts';
import type { Identity } from '../../calls/identity.ts';
import type { Person } from '../../config/security.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import { isOperatorKey, operatorKey } from '../../store/operator.ts';
import type { Authenticator } from './auth/authenticator.ts';
import type { DashboardPort } from './dashboard-port.ts';
import type { Guard } from './guard.ts';
import { belowBase, pathOf } from './path.ts';
import { type AgentRoute, type OperatorRoute, preflight, type Route, type Router } from './router.ts';
import { boundScope, narrowScope, type RequestedScope, readScope } from './scope.ts';
import type { Fail } from './wire/reply.ts';

export interface FrontOptions {
  readonly gateway: Gateway;
  /** Empty if the door is mounted at the root. */
  readonly base: string;
  readonly guard: Guard;
  readonly authenticator: Authenticator;
  readonly router: Router;
  readonly fail: Fail;
  /** Null if the door has none. */
  readonly dashboard: DashboardPort | null;
}

export class HttpFront {
  readonly options: FrontOptions;
  isDraining = false;
  isClosed = false;

  constructor(options: FrontOptions) {
    this.options = options;
  }

  /** Whether the door answers at this URL, base path included. */
  serves(url: string): boolean {
    const { gateway, base, router } = this.options;
    if (base !== '' && belowBase(base, url) !== null) return true;
    const path = pathOf(url);
    const own = base === '' ? path : router.table.aliasOf?.(path);
    return own != null && router.find(own, 'GET').isEnabled?.(gateway.config.http) !== false;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const { base, guard, router, fail } = this.options;
    if (this.isDraining) response.shouldKeepAlive = false;
    let headers: readonly string[] = [];
    try {
      if (this.isClosed) throw new GatewayError('source_unavailable', 'This server is closed.');
      if (base !== '') request.url = this.#withoutBase(request.url ?? '/');
      const { url = '/', method = '' } = request;
      const path = pathOf(url);
      const route = router.find(path, method);
      if (route.access !== 'open' || route.anyHost !== true) headers = guard.admit(request);
      if (method === 'OPTIONS' && headers.length > 0 && route !== router.fallback) {
        response.writeHead(204, [...headers, ...preflight(router, path, request)]).end();
        return;
      }
      if (router.table.readsQuery) refuseQueryToken(url);
      if (route.access === 'open') {
        this.#require(route, request);
        this.#settle(route.handle(request, response, headers), response, headers);
      } else if (route.access === 'operator')
        this.#settle(this.#serveOperator(route, request, response, headers), response, headers);
      else this.#serveClient(route, request, response, headers);
    } catch (error) {
      fail(response, error, headers);
    }
  }

  #serveClient(
    route: AgentRoute,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
  ): void {
    const identity = this.options.authenticator.identify(request);
    if (!(identity instanceof Promise)) this.#serveIdentified(route, request, response, headers, identity);
    else {
      const served = identity.then((known) => this.#serveIdentified(route, request, response, headers, known));
      this.#settle(served, response, headers);
    }
  }

  #serveIdentified(
    route: AgentRoute,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
    identity: Identity,
  ): void {
    const { gateway, router, authenticator } = this.options;
    this.#require(route, request);
    if (route.access === 'admin') authenticator.requireAdmin(identity, request);
    const asked = readScope(request, route.errors === 'mcpo', router.table.readsQuery);
    const requested = identity.tasks === null ? asked : this.#bound(route, request, identity, asked);
    if (requested === null)
      this.#settle(route.handle(request, response, headers, identity, route.scope), response, headers);
    else {
      const { agent, claims } = identity;
      const subject = { agent, claims, task: requested.task };
      const narrowed = narrowScope(gateway, route.scope, requested, request, subject);
      const served = narrowed.then(
        (scope) => route.handle(request, response, headers, identity, scope),
        (error: unknown) => {
          this.#reportDenied(route, request, identity, requested.namespace, error);
          throw error;
        },
      );
      this.#settle(served, response, headers);
    }
  }

  #bound(
    route: AgentRoute,
    request: IncomingMessage,
    identity: Identity,
    asked: RequestedScope | null,
  ): RequestedScope {
    try {
      return boundScope(asked, identity.tasks ?? []);
    } catch (error) {
      this.#reportDenied(route, request, identity, asked?.namespace ?? null, error);
      throw error;
    }
  }

  /** An address that the agent may not use, or that does not exist, or a task that its token is not bound to. */
  #reportDenied(
    { errors }: AgentRoute,
    { method = '', url = '/' }: IncomingMessage,
    { agent, principal }: Identity,
    namespace: string | null,
    error: unknown,
  ): void {
    const { code } = toGatewayError(error);
    if (code !== 'path_unknown' && code !== 'forbidden') return;
    const path = pathOf(url);
    const door = errors !== 'rpc' ? 'rest' : /\/(sse|messages)$/.test(path) ? 'sse' : 'http';
    const asked = { agent, principal, door, method: '', namespace, name: null };
    this.options.gateway.events.emit('denied', { ...asked, code, detail: `${method} ${path}` });
  }

  /** Mostly only the operator's key is accepted. An agent's token is not, not even an admin's: the model may know it. */
  async #serveOperator(
    route: OperatorRoute,
    request: IncomingMessage,
    response: ServerResponse,
    headers: readonly string[],
  ): Promise<void> {
    const { gateway, authenticator } = this.options;
    const isKey = await hasOperatorKey(request, gateway.env);
    const visitor = isKey ? null : await this.#visitor(route, request);
    const isOperator = isKey || visitor !== null;
    const person = isOperator || route.takesPeople !== true ? null : personOf(request, gateway.config.security.people);
    const isAdmitted = isOperator || person !== null;
    if (!isAdmitted) await authenticator.identify(request);
    this.#require(route, request);
    if (!isAdmitted && route.takesAgents !== true)
      throw new GatewayError('forbidden', "Send the gateway's operator key as the bearer token.", {
        rule: 'operator key',
      });
    await route.handle(request, response, headers, person, visitor);
  }

  /** Whom the dashboard has let in; null if nobody. */
  async #visitor({ keyOnly }: OperatorRoute, request: IncomingMessage): Promise<string | null> {
    const { dashboard, gateway } = this.options;
    if (dashboard === null || keyOnly === true || !gateway.config.http.dashboard) return null;
    return dashboard.admit(request);
  }

  #require({ methods, isEnabled }: Route, { method = '', url = '/' }: IncomingMessage): void {
    const { gateway, router } = this.options;
    if (isEnabled?.(gateway.config.http) === false) throw this.#nothingHere();
    if (methods.includes(method)) return;
    const possible = router.methodsAt(pathOf(url), false).join(', ');
    throw new GatewayError('method_not_allowed', `Only ${possible} can be used here.`);
  }

  #settle(done: void | Promise<void>, response: ServerResponse, headers: readonly string[]): void {
    if (done instanceof Promise) done.catch((error: unknown) => this.options.fail(response, error, headers));
  }

  /** Resource metadata is served at the root, even if the resource itself is below a base path. */
  #withoutBase(url: string): string {
    const { base, router } = this.options;
    const below = belowBase(base, url) ?? router.table.aliasOf?.(pathOf(url));
    if (below == null) throw this.#nothingHere();
    return below;
  }

  #nothingHere(): GatewayError {
    return new GatewayError('path_unknown', this.options.router.table.fallback.message);
  }
}

/** Whether the bearer token of a request is the operator's key. */
export async function hasOperatorKey(request: IncomingMessage, env: Gateway['env']): Promise<boolean> {
  return isOperatorKey(bearerOf(request), await operatorKey(env));
}

/** The person whose key the bearer token of a request is; null if it is nobody's. */
function personOf(request: IncomingMessage, people: readonly Person[]): string | null {
  const hash = sha256(bearerOf(request));
  return people.find(({ keys }) => keys.includes(hash))?.name ?? null;
}

function bearerOf({ headers }: IncomingMessage): string {
  return /^bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}

/** URLs end up in logs and histories, so they must not contain secrets. */
function refuseQueryToken(url: string): void {
  // Fast path for nearly all requests.
  if (url === '/mcp') return;
  const query = url.indexOf('?');
  if (query < 0 || !new URLSearchParams(url.slice(query + 1)).has('access_token')) return;
  throw new GatewayError('request_invalid', 'Do not put a token in the URL: send it in the Authorization header.');
}
