/** Maps a path to its route. Dispatch, `Allow` and CORS all use one table of routes. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { BoundedMap } from '../../base/bounded-map.ts';
import { percentDecoded } from '../../base/text.ts';
import { FULL_SCOPE, type Scope } from '../../calls/caller.ts';
import type { Identity } from '../../calls/identity.ts';
import type { HttpConfig } from '../../config/http.ts';

/**
 * Who may use a route: everyone, admitted clients, the admitted clients that `http.admins` names, or holders of the
 * operator's key. If no credential is configured, all clients are admitted, except to routes that need the operator's
 * key.
 */
export type Access = 'open' | 'agent' | 'admin' | 'operator';

/** How errors are written: as JSON-RPC, as plain objects, or as mcpo writes them. */
export type ErrorStyle = 'rpc' | 'rest' | 'mcpo';

interface RouteBase {
  /** `*` matches one non-empty path segment, `:name` any one segment. */
  readonly path: string;
  readonly methods: readonly string[];
  /** The methods for clients of the revision without sessions. Absent: the same. */
  readonly modernMethods?: readonly string[];
  readonly errors: ErrorStyle;
  /** Whether the configuration switches the route on. Absent: always. */
  readonly isEnabled?: (config: HttpConfig) => boolean;
  /** Whether a request with another method goes to the next route that fits its path. */
  readonly sharesPath?: boolean;
}

/** `headers` belong in the reply. If a handler throws or rejects, the error becomes the reply. */
export type OpenHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
) => void | Promise<void>;

export interface OpenRoute extends RouteBase {
  readonly access: 'open';
  /** Whether any Host header is accepted: health probes use IP addresses. */
  readonly anyHost?: boolean;
  readonly handle: OpenHandler;
}

/**
 * `person` is the one whose own key the request has; null for the operator key. `visitor` is whom the dashboard has let in:
 * `operator`, or the name of an admin token; null if it was asked nothing.
 */
export type OperatorHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
  person: string | null,
  visitor: string | null,
) => void | Promise<void>;

export interface OperatorRoute extends RouteBase {
  readonly access: 'operator';
  /** Whether the keys of people who approve calls are accepted too. */
  readonly takesPeople?: boolean;
  /** Whether the credentials of agents are accepted too. The handler asks for more. */
  readonly takesAgents?: boolean;
  /** Whether only the operator key is accepted, and no page session or admin token. */
  readonly keyOnly?: boolean;
  readonly handle: OperatorHandler;
}

export type AgentHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  headers: readonly string[],
  identity: Identity,
  scope: Scope,
) => void | Promise<void>;

export interface AgentRoute extends RouteBase {
  readonly access: 'agent' | 'admin';
  /** The scope of a request that names none. */
  readonly scope: Scope;
  readonly handle: AgentHandler;
}

export type Route = OpenRoute | OperatorRoute | AgentRoute;

/** Everything that a door answers. */
export interface RouteTable {
  /** The first match wins. */
  readonly routes: readonly Route[];
  /** For paths without a route: who gets the error, in which form, and its message. */
  readonly fallback: { readonly access: 'open' | 'agent'; readonly errors: ErrorStyle; readonly message: string };
  /** The path that another path is an alias of; null for none. */
  readonly aliasOf?: (path: string) => string | null;
  /** Whether query strings name scopes and must not contain tokens. Otherwise they belong to the embedding program. */
  readonly readsQuery: boolean;
  /** The headers that a page of another origin may send: by name, and those that the function allows on request. */
  readonly pageHeaders: readonly string[];
  readonly allowsPageHeader: (name: string) => boolean;
}

export interface Router {
  readonly table: RouteTable;
  /** The route for paths that have none. */
  readonly fallback: Route;
  find(path: string, method: string): Route;
  /** The methods allowed at a path. */
  methodsAt(path: string, isModern: boolean): readonly string[];
}

// Clients use the same few paths again and again, so lookups are cached. Long paths are not.
const MOST_KNOWN = 1_000;
const LONGEST_KNOWN = 200;

export function createRouter(table: RouteTable): Router {
  const { routes, aliasOf } = table;
  const { access, errors } = table.fallback;
  const fallback: Route = {
    path: '',
    methods: [],
    access,
    errors,
    scope: FULL_SCOPE,
    isEnabled: () => false,
    handle() {},
  };
  const patterns = routes.map((route) => ({ route, parts: route.path.split('/') }));
  const plain = new Map(routes.filter(({ path }) => isPlain(path)).map(({ path }) => [path, matching(path)]));
  const known = new BoundedMap<string, readonly Route[]>(MOST_KNOWN);

  function matching(path: string): readonly Route[] {
    const asked = path.split('/');
    return patterns.filter(({ parts }) => fits(parts, asked)).map(({ route }) => route);
  }

  function at(path: string): readonly Route[] {
    const found = plain.get(path) ?? known.get(path);
    if (found !== undefined) return found;
    const fitting = matching(path);
    if (path.length <= LONGEST_KNOWN && fitting.length > 0) known.set(path, fitting);
    return fitting;
  }

  return {
    table,
    fallback,
    find(path, method) {
      const fitting = at(path);
      const first = fitting[0];
      if (first === undefined) {
        const alias = aliasOf?.(path) ?? null;
        return (alias === null ? undefined : at(alias)[0]) ?? fallback;
      }
      if (first.sharesPath !== true) return first;
      return fitting.find(({ methods, sharesPath }) => sharesPath !== true || methods.includes(method)) ?? first;
    },
    methodsAt(path, isModern) {
      const [first, ...others] = at(path);
      if (first === undefined) return [];
      const sharing = first.sharesPath === true ? others.filter(({ sharesPath }) => sharesPath === true) : [];
      const all = [first, ...sharing].flatMap(({ methods, modernMethods }) =>
        isModern && modernMethods !== undefined ? modernMethods : methods,
      );
      return [...new Set(all)];
    },
  };
}

const isPlain = (path: string) => !/[*:]/.test(path);

function fits(parts: readonly string[], asked: readonly string[]): boolean {
  // Paths such as `/.well-known` are never a namespace.
  if (parts[1] === '*' && asked[1]?.startsWith('.')) return false;
  return parts.length === asked.length && parts.every((part, i) => fitsPart(part, asked[i]!));
}

function fitsPart(part: string, asked: string): boolean {
  if (part === '*') return asked !== '';
  return part.startsWith(':') ? percentDecoded(asked) !== null : part === asked;
}

/** The headers that tell a page of another origin what it may send, in the reply to its preflight request. */
export function preflight({ table, methodsAt }: Router, path: string, { headers }: IncomingMessage): readonly string[] {
  const asked = (headers['access-control-request-headers'] ?? '').toLowerCase().split(',');
  const more = asked.map((name) => name.trim()).filter(table.allowsPageHeader);
  return [
    'access-control-allow-methods',
    methodsAt(path, false).join(', '),
    'access-control-allow-headers',
    [...table.pageHeaders, ...more].join(', '),
    'access-control-max-age',
    '600',
  ];
}

/** The values at the `:names` of a route's path. */
export function paramsOf(pattern: string, path: string): Record<string, string> {
  const asked = path.split('/');
  return Object.fromEntries(
    pattern
      .split('/')
      .flatMap((part, i) => (part.startsWith(':') ? [[part.slice(1), decodeURIComponent(asked[i]!)]] : [])),
  );
}
