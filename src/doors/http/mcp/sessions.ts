/** The sessions of the HTTP door: one per connected client, forgotten when unused. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../../base/errors.ts';
import type { Gateway } from '../../../gateway/types.ts';
import { isInvalid as isPassOver, outlives } from '../../credential.ts';
import { Peer } from '../../peer.ts';
import type { Visitor } from '../auth/visitor.ts';
import { requireNamespace, requireSame } from '../scope.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { type Budget, type EventStream, StreamLog } from './stream.ts';

export const KEEPALIVE = 15_000;

/** How long a request may overtake `notifications/initialized`, where a client does not wait for the reply to that. */
const OVERTAKING = 1_000;
/** What may wait for a stream to be opened. */
const MOST_MISSED = 1_000;

export class Session {
  readonly id = randomBytes(18).toString('base64url');
  readonly peer: Peer;
  readonly log: StreamLog;
  lastUse = Date.now();
  /** As it came with the credential that is good for longest. */
  visitor: Visitor;
  /** The only one that it sees, from its beginning; null for all. */
  readonly namespace: string | null;
  /** Streams that the client holds open for what we say unasked; the newest is used. */
  #standing: EventStream[] = [];
  /** Said while no stream was open; each once, because a list that changed twice is still just changed. */
  #missed: Map<string, Buffer> | null = null;
  /** Requests that came before the client said that it is initialized. */
  readonly #early = new Set<() => void>();

  constructor(gateway: Gateway, visitor: Visitor, unread: Backpressure, budget: Budget) {
    const { agent, principal, toolset, namespace, task } = visitor;
    this.visitor = visitor;
    this.namespace = namespace;
    this.peer = new Peer(gateway, {
      agent,
      principal,
      door: 'http',
      selection: 'own',
      toolset,
      namespace,
      task,
      notify: (message) => this.say(message),
      initialized: () => this.#initialized(),
    });
    this.log = new StreamLog(unread, () => gateway.config.limits.replay, budget);
  }

  get idle(): boolean {
    return this.peer.inFlight === 0 && !this.#standing.some(({ isOpen }) => isOpen);
  }

  /** Opens a stream for what is said unasked, or goes on with one after the event that the client saw last. */
  listen(response: ServerResponse, headers: readonly string[], lastEventId: string | undefined): void {
    const resumed = lastEventId === undefined ? null : this.log.resume(lastEventId, response, headers);
    const stream = resumed ?? this.log.open(response, headers, 'standing');
    response.on('close', () => {
      this.lastUse = Date.now();
    });
    if (stream.kind !== 'standing') return;
    this.#standing = [...this.#standing.filter((one) => one.isOpen && one !== stream), stream];
    const missed = this.#missed;
    this.#missed = null;
    for (const message of missed?.values() ?? []) stream.send(message);
  }

  /** Says what belongs to no request, now or when there is a stream again. */
  say(message: Buffer): void {
    const stream = this.#standing.findLast(({ isOpen }) => isOpen);
    if (stream !== undefined) {
      stream.send(message);
      return;
    }
    this.#missed ??= new Map();
    this.#missed.set(message.toString('latin1'), message);
    if (this.#missed.size > MOST_MISSED) this.#missed.delete(this.#missed.keys().next().value!);
  }

  /** Calls `go` when the client has said that it is initialized: at once, nearly always. `late` when it does not. */
  whenInitialized(go: () => void, late: () => void): void {
    if (this.peer.isInitialized) {
      go();
      return;
    }
    const goOn = () => {
      clearTimeout(timer);
      go();
    };
    const timer = setTimeout(() => {
      this.#early.delete(goOn);
      late();
    }, OVERTAKING);
    this.#early.add(goOn);
  }

  #initialized(): void {
    const early = [...this.#early];
    this.#early.clear();
    for (const goOn of early) goOn();
  }

  keepAlive(now: number): void {
    this.peer.keepAlive();
    this.log.sweep(now);
    // What is said unasked needs a credential all the time; who comes back with a new one finds the stream again.
    const isAlone = isPassOver(this.visitor.credential, now);
    for (const stream of this.#standing) {
      if (isAlone) stream.detach();
      else stream.keepAlive();
    }
  }

  close(): void {
    this.peer.close();
    this.log.close();
  }
}

export interface Sessions {
  readonly size: number;
  /** Requests whose clients wait for the answers. */
  readonly awaited: number;
  open(visitor: Visitor): Session;
  /** A session of somebody else is treated as if it were not there. */
  find(id: string, visitor: Visitor): Session;
  end(session: Session): void;
  /** Ends those whose credentials were taken back. */
  turnOut(): void;
  close(): void;
}

export function createSessions(gateway: Gateway, unread: Backpressure): Sessions {
  const sessions = new Map<string, Session>();
  const budget: Budget = { used: 0 };

  const sweep = setInterval(() => {
    const now = Date.now();
    for (const session of sessions.values()) {
      if (isOver(session, now)) end(session);
      else session.keepAlive(now);
    }
  }, KEEPALIVE);
  sweep.unref();

  function isOver(session: Session, now: number): boolean {
    return now - session.lastUse > gateway.config.http.sessionTtl && session.idle;
  }

  function end(session: Session): void {
    sessions.delete(session.id);
    session.close();
  }

  /** Room for one more, at the cost of the session that was used longest ago. */
  function makeRoom(): void {
    if (sessions.size < gateway.config.http.maxSessions) return;
    let oldest: Session | null = null;
    for (const session of sessions.values()) {
      if (session.idle && (oldest === null || session.lastUse < oldest.lastUse)) oldest = session;
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
    open(visitor) {
      requireNamespace(gateway, visitor);
      makeRoom();
      const session = new Session(gateway, visitor, unread, budget);
      sessions.set(session.id, session);
      return session;
    },
    find(id, visitor) {
      const session = sessions.get(id);
      const now = Date.now();
      if (session === undefined || session.peer.principal !== visitor.principal || isOver(session, now)) {
        throw new GatewayError('session_unknown', 'The session is unknown or over. Start a new one with "initialize".');
      }
      requireSame(session.namespace, visitor);
      session.lastUse = now;
      if (visitor !== session.visitor && outlives(visitor.credential, session.visitor.credential))
        session.visitor = visitor;
      return session;
    },
    end,
    turnOut() {
      for (const session of sessions.values()) {
        if (!session.visitor.credential.revocation.isRevoked) continue;
        session.peer.close(true);
        end(session);
      }
    },
    close() {
      clearInterval(sweep);
      for (const session of sessions.values()) session.close();
      sessions.clear();
    },
  };
}
