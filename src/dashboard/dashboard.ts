/**
 * The dashboard as the doors of a gateway know it: routes, page sessions, the page. Everything behind the routes is loaded
 * with the first request, so that a gateway at which nobody looks does not pay for it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import type { HttpConfig } from '../config/http.ts';
import type { DashboardPort } from '../doors/http/dashboard-port.ts';
import { decodePart, pathOf } from '../doors/http/path.ts';
import type { Route } from '../doors/http/router.ts';
import type { Gateway } from '../gateway/gateway.ts';
import type { Api, ApiHandler } from './api.ts';
import type { DashboardOptions } from './api-context.ts';
import { ENDPOINTS, type Endpoint, type EndpointName } from './endpoints.ts';
import { asRequest, createPassing, type PassedRequest } from './home-replica.ts';
import { byOf, createPageSessions, type PageSession } from './page-sessions.ts';

export interface Dashboard extends DashboardPort {
  /** The gateway listens here now: the URL of its MCP endpoint. */
  listens(url: string): void;
  close(): void;
}

const BASE = '/admin';
const isEnabled = ({ dashboard }: HttpConfig) => dashboard;

export function createDashboard(gateway: Gateway, options: DashboardOptions): Dashboard {
  const sessions = createPageSessions(() => gateway.config, gateway.env, gateway.replica);
  const passing = gateway.replica === null ? null : createPassing(gateway.replica, answer);
  const admitted = new WeakMap<IncomingMessage, PageSession>();
  let url: string | null = null;
  let loading: Promise<Api> | null = null;
  let isClosed = false;

  function api(): Promise<Api> {
    loading ??= import('./api.ts').then(({ createApi }) =>
      createApi({ ...options, gateway, sessions, url: () => url, origin }),
    );
    return loading;
  }

  /** Answers what another replica has let in. */
  async function answer(passed: PassedRequest): Promise<unknown> {
    const { method, url: path, who, expires } = passed;
    const endpoint = (ENDPOINTS as readonly Endpoint[]).find(
      (one) => one.method.toUpperCase() === method && fits(BASE + one.path, path),
    );
    if (endpoint === undefined) throw new GatewayError('path_unknown', 'There is no such address.');
    const { handlers, answer: run } = await api();
    return run(handlers[endpoint.does as EndpointName] as ApiHandler, {
      request: asRequest(passed),
      // Handlers that answer themselves are not passed on.
      response: undefined as unknown as ServerResponse,
      headers: [],
      parts: partsOf(BASE + endpoint.path, path),
      query: new URLSearchParams(path.split('?')[1] ?? ''),
      session: { who, expires: expires ?? Number.POSITIVE_INFINITY },
    });
  }

  /** Where the page is, as browsers reach it; without a slash at its end. */
  function origin(): string | null {
    const { publicUrl } = gateway.config.http;
    const mcp = publicUrl ?? url;
    return mcp === null
      ? null
      : mcp
          .replace(/\/mcp$/, '')
          .replace('://0.0.0.0:', '://127.0.0.1:')
          .replace('://[::]:', '://[::1]:');
  }

  function toRoute(path: string, endpoints: readonly Endpoint[]): Route {
    return {
      path,
      methods: endpoints.map(({ method }) => method.toUpperCase()),
      access: 'operator',
      errors: 'rest',
      isEnabled,
      keyOnly: endpoints.some(({ keyOnly }) => keyOnly === true),
      async handle(request, response, headers) {
        if (isClosed) throw new GatewayError('source_unavailable', 'The gateway is being stopped.');
        const endpoint = endpoints.find(({ method }) => method.toUpperCase() === request.method)!;
        const session = admitted.get(request) ?? (await sessions.keyHolder());
        const home = passing?.homeOf(request, endpoint) ?? null;
        if (passing !== null && home !== null) {
          const [{ readBytes }, { sendValue }] = await Promise.all([
            import('../doors/http/wire/body.ts'),
            import('./api.ts'),
          ]);
          const value = await passing.pass(home, {
            method: request.method ?? 'GET',
            url: request.url ?? '',
            type: request.headers['content-type'] ?? '',
            body: request.method === 'GET' ? '' : (await readBytes(request, gateway.config.limits.body)).toString(),
            who: session.who,
            expires: Number.isFinite(session.expires) ? session.expires : null,
          });
          sendValue({ request, response, headers }, value);
          return;
        }
        const handlers = await api();
        const handler = handlers.handlers[endpoint.does as EndpointName] as ApiHandler;
        await handlers.run(handler, {
          request,
          response,
          headers,
          parts: partsOf(path, request.url ?? ''),
          query: new URLSearchParams((request.url ?? '').split('?')[1] ?? ''),
          session,
        });
      },
    };
  }

  const byPath = new Map<string, Endpoint[]>();
  for (const endpoint of ENDPOINTS)
    byPath.set(endpoint.path, [...(byPath.get(endpoint.path) ?? []), endpoint as Endpoint]);
  const operator = [...byPath].map(([path, endpoints]) => toRoute(BASE + path, endpoints));

  const open: readonly Route[] = [
    {
      path: `${BASE}/enter/*`,
      methods: ['GET'],
      access: 'open',
      errors: 'rest',
      isEnabled,
      async handle(request, response, headers) {
        // A browser that only looks ahead must not use the link up.
        if (/prefetch|preview/.test(String(request.headers['sec-purpose'] ?? request.headers.purpose ?? '')))
          throw new GatewayError('forbidden', 'The link is for a person.');
        const code = decodePart(pathOf(request.url ?? '').slice(`${BASE}/enter/`.length), 'code');
        const cookie = await sessions.enter(code, request);
        gateway.events.emit('admin', { act: 'dashboard_entered', agent: '', detail: 'with a link' });
        sendEntered(response, [...headers, 'set-cookie', cookie], '../../');
      },
    },
    {
      path: `${BASE}/session`,
      methods: ['POST'],
      sharesPath: true,
      access: 'open',
      errors: 'rest',
      isEnabled,
      async handle(request, response, headers) {
        const { readKey } = await import('./read-key.ts');
        const { key, isForm } = await readKey(request);
        const { cookie, who } = await sessions.enterWith(key, request);
        const detail = 'with a key';
        gateway.events.emit('admin', { act: 'dashboard_entered', agent: '', detail, ...byOf({ who }) });
        const all = [...headers, 'set-cookie', cookie];
        if (isForm) sendEntered(response, all, '../');
        else response.writeHead(204, [...all, 'cache-control', 'no-store']).end();
      },
    },
    {
      path: `${BASE}/page/*`,
      methods: ['GET', 'HEAD'],
      access: 'open',
      errors: 'rest',
      isEnabled,
      async handle(request, response, headers) {
        const { sendPageFile } = await import('./page-files.ts');
        const name = decodePart(pathOf(request.url ?? '').slice(`${BASE}/page/`.length), 'file');
        sendPageFile(name, request, response, headers);
      },
    },
  ];

  return {
    routes: [
      ...open,
      ...operator.map((route) => (route.path === `${BASE}/session` ? { ...route, sharesPath: true } : route)),
    ],
    async admit(request) {
      const session = (await sessions.find(request)) ?? (await sessions.tokenHolder(request));
      if (session !== null) admitted.set(request, session);
      return session?.who ?? null;
    },
    async sendPage(request, response, headers) {
      // A client that asks for something else than a page, such as a health check, does not mean the dashboard.
      if (request.headers.accept?.includes('text/html') !== true) return false;
      const session = await sessions.find(request).catch(() => null);
      if (session === null) return false;
      const { sendIndex } = await import('./page-files.ts');
      return sendIndex(request, response, headers);
    },
    listens(at) {
      url = at;
    },
    close() {
      isClosed = true;
      passing?.close();
      void loading?.then((loaded) => loaded.close());
    },
  };
}

/** Whether an address is that of a pattern. */
function fits(pattern: string, url: string): boolean {
  const asked = pathOf(url).split('/');
  const wanted = pattern.split('/');
  return wanted.length === asked.length && wanted.every((part, i) => part === '*' || part === asked[i]);
}

/** The values at the `*` of a path. */
function partsOf(pattern: string, url: string): string[] {
  const asked = pathOf(url).split('/');
  return pattern.split('/').flatMap((part, i) => (part === '*' ? [decodePart(asked[i]!, 'name')] : []));
}

/**
 * Goes on to the page. Not by a redirect: after one, a browser that came from another site would not send the cookie,
 * because it is for this site only.
 */
function sendEntered(response: ServerResponse, headers: readonly string[], to: string): void {
  const page = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Toolgate</title><meta http-equiv="refresh" content="0;url=${to}"><p><a href="${to}">Open the dashboard</a></p></html>\n`;
  response
    .writeHead(200, [
      ...headers,
      ...['content-type', 'text/html; charset=utf-8', 'cache-control', 'no-store', 'referrer-policy', 'no-referrer'],
      ...['content-security-policy', "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"],
      ...['x-content-type-options', 'nosniff', 'content-length', String(Buffer.byteLength(page))],
    ])
    .end(page);
}
