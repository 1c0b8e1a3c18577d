/** Admits requests: determines which client sends a request, in which context, and with which toolsets. */
import { BoundedMap } from '../base/bounded-map.ts';
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { memo } from '../base/memo.ts';
import { didYouMean } from '../base/text.ts';
import { isClientId, missingClientId, readClientId } from '../doors/http/client-id.ts';
import type { ToolsetClient, ToolsetClients } from './clients.ts';
import type { Permissions } from './permissions.ts';
import { contextKey, readSessionContext, sessionContext } from './session-context.ts';
import type { LoaderContext } from './toolsets.ts';
import type { Authenticate, AuthenticatedClient, ClientRequest, SessionContextConfig } from './types.ts';

export interface AdmittedClient {
  readonly clientId: string;
  /** The owner of its sessions. The same client in another context has another principal. */
  readonly principal: string;
  /** Null if all clients have the same toolsets. */
  readonly client: ToolsetClient | null;
  readonly expires: number | null;
}

export interface AdmissionOptions {
  /** Null if all clients have the same toolsets. */
  readonly clients: ToolsetClients | null;
  /** Null if clients switch their own toolsets. */
  readonly permissions: Permissions | null;
  readonly authenticate: Authenticate | null;
  readonly sessionContext: SessionContextConfig | null;
  readonly base: LoaderContext;
  readonly events: EventSink;
}

export interface Admissions {
  /** Throws or rejects if the client is not admitted. Returns a promise only if there is something to wait for. */
  admit(request: ClientRequest): AdmittedClient | Promise<AdmittedClient>;
  /** Admits a client that the program itself knows. */
  enter(known: AuthenticatedClient, request?: ClientRequest): Promise<AdmittedClient>;
  /** The client that sends the request; null if the request names none. Rejects if it is not authenticated. */
  identify(request: ClientRequest): Promise<AuthenticatedClient | null>;
}

/** Milliseconds until toolsets that could not be loaded are tried again. */
const RETRY_MS = 5_000;

/** For clients that do not come over HTTP. */
const NO_REQUEST: ClientRequest = { method: 'POST', url: '/mcp', headers: {} };

/** The context that a client sends in the query. Its `key` is part of the principal. */
interface QueryContext {
  readonly value: Record<string, unknown> | null;
  readonly key: string;
}

const NO_CONTEXT: QueryContext = { value: null, key: '' };

/** How current the toolsets of a client are, if permissions decide. */
interface RefreshState {
  loading: Promise<void> | null;
  /** Milliseconds since 1970; -Infinity before the first time. */
  checked: number;
}

export function createAdmissions(options: AdmissionOptions): Admissions {
  const { clients, permissions, authenticate, base, events } = options;
  const stateOf = memo((_: ToolsetClient): RefreshState => ({ loading: null, checked: Number.NEGATIVE_INFINITY }));
  const contexts = new BoundedMap<string, QueryContext>(1_000);

  async function identify(request: ClientRequest): Promise<AuthenticatedClient | null> {
    if (authenticate === null) {
      const clientId = readClientId(request.headers);
      return clientId === null ? null : { clientId };
    }
    return requireAuthenticated(await runAuthenticate(authenticate, request));
  }

  async function runAuthenticate(
    authenticate: Authenticate,
    request: ClientRequest,
  ): Promise<AuthenticatedClient | null> {
    try {
      return known((await authenticate(request)) ?? null);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      // If the check fails, the client is not admitted.
      events.emit('failure', { where: 'authenticate', error });
      return null;
    }
  }

  function enter(known: AuthenticatedClient, request: ClientRequest): AdmittedClient | Promise<AdmittedClient> {
    const { clientId, expires = null } = known;
    if (clients === null) return { clientId, principal: clientId, client: null, expires };
    const context = queryContext(request.url);
    const allowed = allowedBy(known, request);
    // The permissions of a request are part of the principal, so that a request with fewer permissions cannot use a
    // session that has more.
    const principal = `${clientId}${context.key}${allowed === null ? '' : ` =${allowed.join(',')}`}`;
    const client = clients.find(principal);
    if (client === undefined) return enterNew(principal, known, request, context.value, allowed);
    const admitted = { clientId, principal, client, expires };
    const refreshing = permissions === null ? null : refresh(client, known, request, allowed);
    return refreshing === null ? admitted : refreshing.then(() => admitted);
  }

  /** Cached, because all requests of a client have the same query. */
  function queryContext(url: string): QueryContext {
    const at = url.indexOf('?');
    if (at < 0 || options.sessionContext === null) return NO_CONTEXT;
    const query = url.slice(at);
    const known = contexts.get(query);
    if (known !== undefined) return known;
    const value = readSessionContext(options.sessionContext, queryOf(url));
    const context = value === null ? NO_CONTEXT : { value, key: ` ?${contextKey(value)}` };
    contexts.set(query, context);
    return context;
  }

  /** The toolsets that the request itself allows; null if they have to be looked up for the client. */
  function allowedBy(
    { clientId, toolsets }: AuthenticatedClient,
    { headers }: ClientRequest,
  ): readonly string[] | null {
    if (permissions === null) return null;
    if (toolsets !== undefined) return permissions.among(toolsets);
    return permissions.byHeader ? (permissions.resolve(clientId, headers) as readonly string[]) : null;
  }

  async function enterNew(
    principal: string,
    known: AuthenticatedClient,
    request: ClientRequest,
    queryValue: Record<string, unknown> | null,
    allowed: readonly string[] | null,
  ): Promise<AdmittedClient> {
    const { clientId, expires = null } = known;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([key, value]) => [key, String(value)]));
    const query = Object.fromEntries(queryOf(request.url));
    const context = await sessionContext(
      options.sessionContext,
      base,
      { clientId, headers, query },
      queryValue,
      events,
    );
    // Another request of the same client may have created it meanwhile.
    const client = clients!.of(principal, context);
    if (permissions !== null) await refresh(client, known, request, allowed);
    return { clientId, principal, client, expires };
  }

  /** Brings the client's toolsets up to date; null if there is nothing to wait for. */
  function refresh(
    client: ToolsetClient,
    { clientId }: AuthenticatedClient,
    { headers }: ClientRequest,
    allowed: readonly string[] | null,
  ): Promise<void> | null {
    const state = stateOf(client);
    if (state.loading !== null) return state.loading;
    const { refreshMs } = permissions!;
    // If requests bring their own permissions, those are part of the principal and never change.
    const lasts = allowed !== null ? Number.POSITIVE_INFINITY : refreshMs;
    const fresh = client.failed.length > 0 ? Math.min(RETRY_MS, refreshMs) : lasts;
    if (state.checked > 0 && Date.now() - state.checked <= fresh) return null;
    const load = async () => {
      await client.setAll(allowed ?? (await permissions!.resolve(clientId, headers)));
    };
    state.loading = load().finally(() => {
      state.loading = null;
      state.checked = Date.now();
    });
    return state.loading;
  }

  return {
    identify,
    admit(request) {
      if (authenticate !== null)
        return runAuthenticate(authenticate, request).then((known) => enter(requireAuthenticated(known), request));
      const clientId = readClientId(request.headers);
      if (clientId === null) throw missingClientId();
      return enter({ clientId }, request);
    },
    async enter(known, request = NO_REQUEST) {
      return enter(requireAuthenticated(known), request);
    },
  };
}

const MEMBERS = ['clientId', 'toolsets', 'expires'] satisfies (keyof AuthenticatedClient)[];

/**
 * A program may return its whole user, so other members are ignored. But one that was probably meant as ours must not
 * be: without `expires` a client would never leave.
 */
function known(client: AuthenticatedClient | null): AuthenticatedClient | null {
  for (const name in client) {
    if ((MEMBERS as string[]).includes(name) || !MEMBERS.some((member) => isSlip(name, member))) continue;
    throw new TypeError(`It returned "${name}", which is unknown.${didYouMean(name, MEMBERS)}`);
  }
  return client;
}

/** The same letters in another spelling, as singular or plural. */
function isSlip(name: string, member: string): boolean {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[_-]|s$/g, '');
  return plain(name) === plain(member);
}

function requireAuthenticated(known: AuthenticatedClient | null): AuthenticatedClient {
  if (known === null)
    throw new GatewayError('unauthorized', 'The credentials of this request belong to no known client.');
  if (!isClientId(known.clientId)) throw new GatewayError('internal', '"authenticate" returned an invalid client id.');
  return known;
}

function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?');
  return at < 0 ? NO_QUERY : new URLSearchParams(url.slice(at + 1));
}

const NO_QUERY = new URLSearchParams();
