/**
 * The sessions of the HTTP door, over Streamable HTTP and HTTP+SSE. A session is found by its id. It ends when it is
 * idle for too long, when a new session needs its place, or when its credential is revoked.
 */
import { randomBytes } from 'node:crypto';
import { GatewayError } from '../../../base/errors.ts';
import type { DoorKind, Scope } from '../../../calls/caller.ts';
import { type Identity, isInvalid, outlives } from '../../../calls/identity.ts';
import type { Task } from '../../../config/task.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { Peer, type SharedState } from '../../peer.ts';
import { mayWorkOn, requireNamespace, requireSame } from '../scope.ts';

/** A client of the legacy era. The transport decides how messages reach it. */
export abstract class Session {
  readonly id: string;
  readonly peer: Peer;
  /** By the clock that nobody sets: a jump of the other must not end sessions. */
  lastUse = performance.now();
  /** Of the identities that have used the session, the one whose credential is valid longest. */
  identity: Identity;
  /** The only namespace that the session sees; null for all. It never changes. */
  readonly namespace: string | null;
  /** The task that it was opened for; null for none. */
  readonly task: Task | null;

  constructor(
    gateway: Gateway,
    identity: Identity,
    scope: Scope,
    door: DoorKind,
    clientId: string | null,
    shared: (SharedState & { readonly id: string }) | null = null,
  ) {
    this.id = shared?.id ?? randomBytes(18).toString('base64url');
    this.identity = identity;
    this.namespace = scope.namespace;
    this.task = scope.task;
    this.peer = new Peer(gateway, {
      identity,
      scope,
      door,
      clientId,
      notify: (message) => this.notify(message),
      hears: () => !this.lacksStream,
      initialized: () => this.initialized(),
      ...(shared !== null && { shared }),
    });
  }

  /** Milliseconds after which it is dropped here if nobody uses it, because it is kept elsewhere too. */
  get copyTtl(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** Whether no stream is open for notifications. */
  abstract readonly lacksStream: boolean;

  /** Sends a message that belongs to no request. */
  abstract notify(message: Buffer): void;

  /** The client has sent `notifications/initialized`. */
  initialized(): void {}

  /** Keeps its connections alive. `isValid` says whether the client may still be sent notifications. */
  keepAlive(_now: number, _isValid: boolean): void {
    this.peer.keepAlive();
  }

  close(): void {
    this.peer.close();
  }
}

/** A class of sessions, and the request that opens one, for error messages. */
export interface SessionKind<S extends Session> {
  new (...args: never[]): S;
  readonly beginning: string;
}

export interface Sessions {
  readonly size: number;
  /** The number of requests whose clients still wait for an answer. */
  readonly awaited: number;
  /** Adds the session that `create` returns, once there is room for it. */
  open<S extends Session>(scope: Scope, create: () => S): S;
  /** Throws if it does not exist, or belongs to another principal or another transport. */
  find<S extends Session>(kind: SessionKind<S>, id: string, identity: Identity, scope: Scope): S;
  end(session: Session): void;
  /** The session of this id on this replica, for any caller. */
  peek(id: string): Session | undefined;
  /** Adds a copy of a session that is kept elsewhere. */
  adopt(session: Session): void;
  readonly all: Iterable<Session>;
  /** Ends the sessions whose credentials were revoked. */
  endRevoked(): void;
  keepAlive(now: number): void;
  close(): void;
}

export function createSessions(gateway: Gateway): Sessions {
  const sessions = new Map<string, Session>();

  const isIdle = (session: Session) => session.lacksStream && session.peer.inFlight === 0;

  function isOver(session: Session, now: number): boolean {
    const { sessionTtl } = gateway.config.http;
    return now - session.lastUse > Math.min(sessionTtl, session.copyTtl) && isIdle(session);
  }

  function end(session: Session): void {
    sessions.delete(session.id);
    session.close();
  }

  /** Ends the least recently used idle session if there is no room for another. */
  function makeRoom(): void {
    if (sessions.size < gateway.config.http.maxSessions) return;
    let oldest: Session | null = null;
    for (const session of sessions.values()) {
      if (isIdle(session) && (oldest === null || session.lastUse < oldest.lastUse)) oldest = session;
    }
    if (oldest === null)
      throw new GatewayError('sessions_full', 'All sessions are in use. Try again later, or raise http.max_sessions.');
    end(oldest);
  }

  return {
    get size() {
      return sessions.size;
    },
    get awaited() {
      let sum = 0;
      for (const { peer } of sessions.values()) sum += peer.awaited;
      return sum;
    },
    open(scope, create) {
      requireNamespace(gateway, scope);
      makeRoom();
      const session = create();
      sessions.set(session.id, session);
      return session;
    },
    find(kind, id, identity, scope) {
      const session = sessions.get(id);
      const now = performance.now();
      const isTheirs = session?.peer.principal === identity.principal && session.identity.agent === identity.agent;
      if (!(session instanceof kind) || !isTheirs || !mayWorkOn(identity, session.task) || isOver(session, now)) {
        throw new GatewayError(
          'session_unknown',
          `The session is unknown or over. Start a new one with ${kind.beginning}.`,
        );
      }
      requireSame(session.namespace, scope);
      session.lastUse = now;
      session.peer.setClaims(identity.claims);
      if (identity !== session.identity && outlives(identity.credential, session.identity.credential))
        session.identity = identity;
      return session;
    },
    end,
    peek: (id) => sessions.get(id),
    adopt(session) {
      makeRoom();
      sessions.set(session.id, session);
    },
    get all() {
      return sessions.values();
    },
    endRevoked() {
      for (const session of sessions.values()) {
        if (!session.identity.credential.revocation.isRevoked) continue;
        session.peer.close(true);
        end(session);
      }
    },
    keepAlive(now) {
      const passed = performance.now();
      for (const session of sessions.values()) {
        if (isOver(session, passed)) end(session);
        else session.keepAlive(now, !isInvalid(session.identity.credential, now));
      }
    },
    close() {
      for (const session of sessions.values()) session.close();
      sessions.clear();
    },
  };
}
