/**
 * `/login`: a person logs in to the servers that a shared gateway uses as them. They come with a one-time link, which is
 * made with their own credential (`POST /login/link`) and opens a session in one browser.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError, messageOf } from '../../../base/errors.ts';
import { FULL_SCOPE } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { ServerConfig } from '../../../config/servers.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { clientDocument } from '../../../logins/client-document.ts';
import type { ServerLogin } from '../../../sources/server-login.ts';
import type { AgentHandler, OpenHandler } from '../router.ts';
import { readForm } from '../wire/body.ts';
import { sendJson, sendText } from '../wire/reply.ts';
import {
  invitationPage,
  type LoginLine,
  type LoginUse,
  leavingPage,
  listPage,
  messagePage,
  PAGE_HEADERS,
  strangerPage,
} from './login-html.ts';
import { type PageReply, type PageRequest, relayed } from './login-relay.ts';
import { LINK_LIFE, LOGIN_PATH, type LoginEntrance, type LoginSession } from './login-sessions.ts';

const MOST_FORM = 16 * 1024;

export interface LoginHandlers {
  /** Makes a one-time link for the sender. */
  readonly link: AgentHandler;
  readonly page: OpenHandler;
  readonly callback: OpenHandler;
  /** What authorization servers read about this gateway. */
  readonly document: OpenHandler;
}

export function createLoginHandlers(gateway: Gateway, entrance: LoginEntrance): LoginHandlers {
  const { sessions, address, linkOf } = entrance;
  const here = () => `${address()}${LOGIN_PATH}`;
  const path = () => new URL(here()).pathname;

  const shown = (status: number, text: string, more: readonly string[] = []): PageReply => ({
    status,
    text,
    headers: [...PAGE_HEADERS, ...more],
  });
  const stranger = (status: number, more?: readonly string[]) => shown(status, strangerPage(address()), more);

  /** Back to the list, by GET: reloading the page sends no form again. */
  const goOn = (more: readonly string[] = []): PageReply => shown(303, '', ['location', path(), ...more]);

  /** Another site could send a form or a link, but not this cookie with a form, nor read it. */
  function cookie(value: string, seconds: number): readonly string[] {
    const isSecure = here().startsWith('https:');
    const scope = isSecure ? 'Path=/; Secure' : `Path=${path()}`;
    return ['set-cookie', `${cookieName(isSecure)}=${value}; ${scope}; HttpOnly; SameSite=Lax; Max-Age=${seconds}`];
  }

  async function showList(session: LoginSession): Promise<PageReply> {
    const rows = await Promise.all(
      ownServers(gateway, session).map(async ({ server, use }): Promise<LoginLine> => {
        const login = await loginOf(gateway, server, use, session.identity);
        const { key, description } = server;
        return { server: key, description, login: (await login?.shown()) ?? null, use };
      }),
    );
    const { note } = session;
    session.note = null;
    return shown(200, listPage(path(), session.identity.agent, rows, session.proof, note));
  }

  async function show({ ticket, session: id }: PageRequest): Promise<PageReply> {
    if (ticket !== null) {
      const visitor = sessions.invited(ticket);
      return visitor === null ? stranger(410) : shown(200, invitationPage(path(), visitor.identity.agent, ticket));
    }
    const session = sessions.find(id);
    return session === null ? stranger(401) : showList(session);
  }

  async function act({ ticket, session: id, fields }: PageRequest): Promise<PageReply> {
    if (ticket !== null) {
      const opened = sessions.open(ticket);
      return opened === null ? stranger(410) : goOn(cookie(opened.id, 1_800));
    }
    const session = sessions.find(id);
    if (session === null) return stranger(401);
    if (fields.proof !== session.proof)
      return shown(403, messagePage(path(), 'Nothing was done', 'This form is not from your page. Try it there.'));
    if (fields.act === 'leave') {
      sessions.end(session.id);
      return stranger(200, cookie('', 0));
    }
    return actOn(session, fields.act ?? '', fields.server ?? '', fields.use ?? '');
  }

  async function actOn(session: LoginSession, what: string, key: string, use: string): Promise<PageReply> {
    const found = ownServers(gateway, session).find((one) => one.server.key === key && (use === '' || one.use === use));
    const login = found === undefined ? null : await loginOf(gateway, found.server, found.use, session.identity);
    if (login === null || (what !== 'login' && what !== 'logout')) {
      session.note = { text: 'There is no such server for you.', isFailure: true };
      return goOn();
    }
    try {
      if (what === 'logout') {
        const isEnded = await login.end();
        session.note = {
          text: isEnded ? `You are logged out of ${key}.` : `You were not logged in to ${key}.`,
          isFailure: false,
        };
        if (isEnded) report(gateway, key, `${session.identity.agent} has logged out on the page`);
        return goOn();
      }
      const opened = await login.open(`${here()}/callback`);
      session.pending.set(opened.state, { server: key, login: opened });
      return shown(200, leavingPage(path(), key, opened.address));
    } catch (error) {
      session.note = { text: gateway.redact(messageOf(error)), isFailure: true };
      return goOn();
    }
  }

  async function finish({ session: id, fields }: PageRequest): Promise<PageReply> {
    const session = sessions.find(id);
    const state = fields.state ?? '';
    const pending = session?.pending.get(state);
    // Only the browser that began a login may end it: otherwise somebody could be made to log in for another person.
    if (session === null || pending === undefined) {
      const text = 'This login was not begun in this browser, or took too long. Begin it again.';
      return shown(400, messagePage(path(), 'Not logged in', text));
    }
    session.pending.delete(state);
    try {
      await pending.login.finish(new URLSearchParams(fields));
      session.note = { text: `You are logged in to ${pending.server}.`, isFailure: false };
      report(gateway, pending.server, `${session.identity.agent} has logged in on the page`);
    } catch (error) {
      session.note = { text: gateway.redact(messageOf(error)), isFailure: true };
    }
    return goOn();
  }

  const acts = { show, act, finish };
  const answer = relayed(gateway.replica, (request) => acts[request.what](request));

  async function serve(what: PageRequest['what'], request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URL(request.url ?? '/', 'http://localhost').searchParams;
    const fields = Object.fromEntries(what === 'act' ? await readForm(request, MOST_FORM) : query);
    const session = cookieIn(request, cookieName(here().startsWith('https:')));
    const { status, text, headers } = await answer({ what, ticket: fields.ticket ?? null, session, fields });
    sendText(response, status, 'text/html; charset=utf-8', text, headers);
  }

  return {
    link(_request, response, headers, identity) {
      const url = linkOf({ identity, server: null });
      sendJson(response, 200, { url, expires_in: LINK_LIFE / 1000 }, [...headers, 'cache-control', 'no-store']);
    },
    page(request, response, headers) {
      // Pages of origins that may call tools must not press the buttons of this one: not even that of a link.
      if (request.method === 'POST' && headers.length > 0 && request.headers.origin !== new URL(here()).origin)
        throw new GatewayError('forbidden', 'A page of another site sent this form.', { rule: 'login page' });
      return serve(request.method === 'POST' ? 'act' : 'show', request, response);
    },
    callback: (request, response) => serve('finish', request, response),
    document(_request, response, headers) {
      const document = clientDocument(`${here()}/callback`);
      if (document === null) {
        const text = 'This gateway has no client id metadata document: http.public_url does not begin with https://.';
        throw new GatewayError('path_unknown', text);
      }
      sendJson(response, 200, document, [...headers, 'cache-control', 'max-age=300']);
    },
  };
}

/** Empty if there is none. */
function cookieIn({ headers }: IncomingMessage, name: string): string {
  for (const pair of (headers.cookie ?? '').split(';')) {
    const [key, value = ''] = pair.trim().split('=');
    if (key === name) return value;
  }
  return '';
}

/** Browsers take a cookie with this prefix only if it is secure and for this host alone. */
function cookieName(isSecure: boolean): string {
  return isSecure ? '__Host-toolgate-login' : 'toolgate-login';
}

/** A login that somebody may make on the page. */
interface WantedLogin {
  readonly server: ServerConfig;
  readonly use: LoginUse;
}

/** The servers that want a login of this person, and that their policy lets them know about; for admins the shared ones, too. */
function ownServers(gateway: Gateway, { identity, server }: LoginSession): WantedLogin[] {
  const caller = gateway.join({ identity, scope: FULL_SCOPE, door: 'http' });
  const { catalog, permission } = caller.view();
  caller.leave();
  const known = gateway.config.servers.filter(({ key, launch, credentials, enabled }) => {
    if (!enabled || launch.kind !== 'http' || launch.oauth === false) return false;
    // Somebody was sent here by a call to this server, so they may know about it.
    if (server !== null) return key === server;
    if (credentials !== 'agent' && !identity.isAdmin) return false;
    return permission === null || catalog.sources.has(key) || catalog.away.some((away) => away.key === key);
  });
  return known.flatMap((one): WantedLogin[] => {
    const { credentials, launch } = one;
    if (credentials !== 'agent') return [{ server: one, use: 'all' }];
    // Where tokens are exchanged, Toolgate gets that for the list by itself.
    const isForPeople =
      launch.kind === 'http' && launch.oauth !== false && (launch.oauth?.grant ?? 'login') === 'login';
    const listsToo = server === null && identity.isAdmin && isForPeople;
    return [{ server: one, use: 'own' }, ...(listsToo ? [{ server: one, use: 'list' } as const] : [])];
  });
}

/** Null if nobody logs in to it. */
async function loginOf(
  gateway: Gateway,
  server: ServerConfig,
  use: LoginUse,
  identity: Identity,
): Promise<ServerLogin | null> {
  const { launch } = await gateway.vault.fill(server);
  if (launch.kind !== 'http') return null;
  const isOwn = use === 'own';
  const { agent, principal } = identity;
  const login = gateway.vault.loginFor(server.key, launch, isOwn ? agent : null, isOwn ? principal : null);
  return login?.isForPeople === true ? login : null;
}

function report({ events }: Gateway, source: string, message: string): void {
  events.emit('note', { source, message });
}
