/**
 * Who is looking at the login page. A person gets a link with their own credential, which opens a session in one browser,
 * once. All of it is in the memory of one process: after a restart they ask for another link.
 */
import { randomBytes } from 'node:crypto';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { type Identity, isInvalid } from '../../../calls/identity.ts';
import type { OpenedLogin } from '../../../sources/server-login.ts';
import type { Replica } from '../../../store/shared/replica.ts';
import { madeHere } from './login-relay.ts';

/** What a link is for. */
export interface PageVisitor {
  readonly identity: Identity;
  /** The only server that it shows; null for all of this person. */
  readonly server: string | null;
}

export interface LoginSession extends PageVisitor {
  readonly id: string;
  /** What forms of its pages bring back, so that no other page can send them. */
  readonly proof: string;
  /** Logins under way, by their state. */
  readonly pending: BoundedMap<string, { readonly server: string; readonly login: OpenedLogin }>;
  /** What happened last, for the next page; null if nothing. */
  note: { readonly text: string; readonly isFailure: boolean } | null;
}

export interface LoginSessions {
  /** Makes a ticket. */
  invite(visitor: PageVisitor): string;
  /** Who the ticket is for; null if it was used, or is too old. */
  invited(ticket: string): PageVisitor | null;
  /** Uses the ticket up. */
  open(ticket: string): LoginSession | null;
  /** Null if it is over, or the credential that it was opened with is. */
  find(id: string): LoginSession | null;
  end(id: string): void;
}

/** How long a link can be used, and a session lasts, in milliseconds. */
export const LINK_LIFE = 5 * 60_000;
const SESSION_LIFE = 30 * 60_000;
/** Beyond this many, the oldest is over. */
const MOST = 1_000;
const MOST_PENDING = 20;
/** Of one principal: somebody who asks for many links must not end those of others. */
const MOST_OWN = 10;

export const LOGIN_PATH = '/login';

/** The way into the pages. They are loaded when somebody opens one. */
export interface LoginEntrance {
  readonly sessions: LoginSessions;
  /** Where the gateway is for its people, without `/mcp`. It is configured, and never taken from a request. */
  address(): string;
  /** Makes a link for this visitor. */
  linkOf(visitor: PageVisitor): string;
}

export function createLoginEntrance(address: () => string, replica: Replica | null): LoginEntrance {
  const sessions = createLoginSessions(replica);
  return {
    sessions,
    address,
    linkOf: (visitor) => `${address()}${LOGIN_PATH}?ticket=${sessions.invite(visitor)}`,
  };
}

interface Timed<Value> {
  readonly value: Value;
  readonly until: number;
}

function createLoginSessions(replica: Replica | null): LoginSessions {
  const tickets = new BoundedMap<string, Timed<PageVisitor>>(MOST);
  const sessions = new BoundedMap<string, Timed<LoginSession>>(MOST);

  /** The value, while it lasts and the credential behind it does. */
  function lasting<Value extends PageVisitor>(all: Map<string, Timed<Value>>, key: string): Value | null {
    const found = all.get(key);
    if (found === undefined) return null;
    const now = Date.now();
    if (now < found.until && !isInvalid(found.value.identity.credential, now)) return found.value;
    all.delete(key);
    return null;
  }

  /** Makes room for one more of this principal. */
  function makeRoom<Value extends PageVisitor>(all: Map<string, Timed<Value>>, { principal }: Identity): void {
    const own = [...all].filter(([, { value }]) => value.identity.principal === principal);
    for (const [key] of own.slice(0, Math.max(0, own.length - MOST_OWN + 1))) all.delete(key);
  }

  return {
    invite(visitor) {
      makeRoom(tickets, visitor.identity);
      const ticket = madeHere(replica, randomBytes(32).toString('base64url'));
      tickets.set(ticket, { value: visitor, until: Date.now() + LINK_LIFE });
      return ticket;
    },
    invited: (ticket) => lasting(tickets, ticket),
    open(ticket) {
      const visitor = lasting(tickets, ticket);
      tickets.delete(ticket);
      if (visitor === null) return null;
      makeRoom(sessions, visitor.identity);
      const id = madeHere(replica, randomBytes(32).toString('base64url'));
      const proof = randomBytes(32).toString('base64url');
      const session: LoginSession = { ...visitor, id, proof, pending: new BoundedMap(MOST_PENDING), note: null };
      sessions.set(id, { value: session, until: Date.now() + SESSION_LIFE });
      return session;
    },
    find: (id) => lasting(sessions, id),
    end(id) {
      sessions.delete(id);
    },
  };
}
