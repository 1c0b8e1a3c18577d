/** From a request to the client that sends it: who it is, in which context, and with which toolsets. */
import { GatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import type { Clients, ToolsetClient } from './clients.ts';
import type { Permissions } from './permissions.ts';
import { contextKey, readSessionContext, sessionContext } from './session-context.ts';
import type { LoaderContext } from './toolsets.ts';
import type { Authenticate, AuthenticatedClient, ClientRequest, SessionContextConfig } from './types.ts';

export const CLIENT_ID = 'mcp-client-id';

export interface AdmittedClient {
  readonly clientId: string;
  /** Whose sessions these are: the same client in another context is another. */
  readonly principal: string;
  /** Null where all have the same. */
  readonly client: ToolsetClient | null;
  readonly expires: number | null;
}

export interface AdmissionOptions {
  /** Null where all have the same. */
  readonly clients: Clients | null;
  /** Null where clients switch for themselves. */
  readonly permissions: Permissions | null;
  readonly authenticate: Authenticate | null;
  readonly sessionContext: SessionContextConfig | null;
  readonly base: LoaderContext;
  readonly events: EventSink;
}

export interface Admissions {
  /** Throws, or rejects, where it is not let in. A promise only where there is something to wait for. */
  admit(request: ClientRequest): AdmittedClient | Promise<AdmittedClient>;
  /** Somebody whom the program itself knows. */
  enter(known: AuthenticatedClient, request?: ClientRequest): Promise<AdmittedClient>;
  /** Who it is, where that is said; null for nobody. Rejects where it is not true. */
  identify(request: ClientRequest): Promise<AuthenticatedClient | null>;
}

/** How long what could not be loaded is left alone. */
const RETRY = 5_000;

const NOWHERE: ClientRequest = { method: 'POST', url: '/mcp', headers: {} };

/** What a client says of itself, and what tells it from the same client that says something else. */
interface QueryContext {
  readonly value: Record<string, unknown> | null;
  readonly key: string;
}

const NOTHING: QueryContext = { value: null, key: '' };
const MOST_ADDRESSES = 1_000;

interface RefreshState {
  /** While its toolsets are being loaded. */
  loading: Promise<void> | null;
  checked: number;
}

export function createAdmissions(options: AdmissionOptions): Admissions {
  const { clients, permissions, authenticate, base, events } = options;
  const states = new WeakMap<ToolsetClient, RefreshState>();
  const addresses = new Map<string, QueryContext>();

  async function identify(request: ClientRequest): Promise<AuthenticatedClient | null> {
    if (authenticate === null) {
      const clientId = claimedId(request);
      return clientId === null ? null : { clientId };
    }
    return authenticated(await ask(authenticate, request));
  }

  async function ask(authenticate: Authenticate, request: ClientRequest): Promise<AuthenticatedClient | null> {
    try {
      return (await authenticate(request)) ?? null;
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      // Whatever went wrong, nobody is let in by it.
      events.emit('failure', { where: 'authenticate', error });
      return null;
    }
  }

  function authenticated(known: AuthenticatedClient | null): AuthenticatedClient {
    if (known === null) throw new GatewayError('unauthorized', 'Nobody is known by the credentials of this request.');
    if (!isClientId(known.clientId))
      throw new GatewayError('internal', '"authenticate" gave a client id that is none.');
    return known;
  }

  function enter(known: AuthenticatedClient, request: ClientRequest): AdmittedClient | Promise<AdmittedClient> {
    const { clientId, expires = null } = known;
    if (clients === null) return { clientId, principal: clientId, client: null, expires };
    const said = read(request.url);
    const allowed = allowedOf(known, request);
    // What comes with the request is part of who it is: what was opened with more is not to be had with less.
    const principal = `${clientId}${said.key}${allowed === null ? '' : ` =${allowed.join(',')}`}`;
    const client = clients.find(principal);
    if (client === undefined) return welcome(principal, known, request, said.value, allowed);
    const admission = { clientId, principal, client, expires };
    const waits = permissions === null ? null : refresh(client, known, request, allowed);
    return waits === null ? admission : waits.then(() => admission);
  }

  /** What an address says, which is the same in every request of a client. */
  function read(url: string): QueryContext {
    const at = url.indexOf('?');
    if (at < 0 || options.sessionContext === null) return NOTHING;
    const query = url.slice(at);
    const known = addresses.get(query);
    if (known !== undefined) return known;
    const value = readSessionContext(options.sessionContext, queryOf(url));
    const said = value === null ? NOTHING : { value, key: ` ?${contextKey(value)}` };
    if (addresses.size >= MOST_ADDRESSES) addresses.delete(addresses.keys().next().value!);
    addresses.set(query, said);
    return said;
  }

  /** What the request itself says that it may use; null where that is looked up. */
  function allowedOf(
    { clientId, toolsets }: AuthenticatedClient,
    { headers }: ClientRequest,
  ): readonly string[] | null {
    if (permissions === null) return null;
    if (toolsets !== undefined) return permissions.among(toolsets);
    return permissions.byHeader ? (permissions.resolve(clientId, headers) as readonly string[]) : null;
  }

  async function welcome(
    principal: string,
    known: AuthenticatedClient,
    request: ClientRequest,
    said: Record<string, unknown> | null,
    allowed: readonly string[] | null,
  ): Promise<AdmittedClient> {
    const { clientId, expires = null } = known;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([key, value]) => [key, String(value)]));
    const asked = { clientId, headers, query: Object.fromEntries(queryOf(request.url)) };
    const context = await sessionContext(options.sessionContext, base, asked, said, events);
    // Another request of the same client may have come first.
    const client = clients!.of(principal, context);
    if (permissions !== null) await refresh(client, known, request, allowed);
    return { clientId, principal, client, expires };
  }

  /** Brings what the client has up to date; null where there is nothing to wait for. */
  function refresh(
    client: ToolsetClient,
    { clientId }: AuthenticatedClient,
    { headers }: ClientRequest,
    allowed: readonly string[] | null,
  ): Promise<void> | null {
    const state = states.get(client) ?? { loading: null, checked: Number.NEGATIVE_INFINITY };
    states.set(client, state);
    if (state.loading !== null) return state.loading;
    const { refreshMs } = permissions!;
    const settled = allowed !== null ? Number.POSITIVE_INFINITY : refreshMs;
    const fresh = client.failed.length > 0 ? Math.min(RETRY, refreshMs) : settled;
    const now = Date.now();
    if (now - state.checked <= fresh && state.checked > 0) return null;
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
        return ask(authenticate, request).then((known) => enter(authenticated(known), request));
      const clientId = claimedId(request);
      if (clientId === null)
        throw new GatewayError(
          'request_invalid',
          `Missing ${CLIENT_ID}: send a stable id of the client in that header.`,
        );
      return enter({ clientId }, request);
    },
    async enter(known, request = NOWHERE) {
      return enter(authenticated(known), request);
    },
  };
}

const ID = /^[\x21-\x7e]{1,200}$/;

function isClientId(value: unknown): value is string {
  return typeof value === 'string' && ID.test(value);
}

/** What the header says; null where it says nothing. */
function claimedId({ headers }: ClientRequest): string | null {
  const said = headers[CLIENT_ID];
  const id = Array.isArray(said) ? said.join(', ') : (said ?? '').trim();
  if (id === '') return null;
  if (!ID.test(id))
    throw new GatewayError('request_invalid', `${CLIENT_ID} must have 1 to 200 characters, and no space among them.`);
  return id;
}

function queryOf(url: string): URLSearchParams {
  const at = url.indexOf('?');
  return at < 0 ? NO_QUERY : new URLSearchParams(url.slice(at + 1));
}

const NO_QUERY = new URLSearchParams();
