/** The sessions of the HTTP door: one per connected client, forgotten when unused. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { Gateway } from '../../gateway.ts';
import { SSE_KEEPALIVE, sseEvent } from '../../protocol/sse.ts';
import { Peer } from '../peer.ts';

export const KEEPALIVE = 15_000;

export class Session {
  readonly id = randomBytes(18).toString('base64url');
  readonly peer: Peer;
  lastUse = Date.now();
  /** Streams that the client holds open for what we say unasked; the newest is used. */
  #streams: ServerResponse[] = [];
  /** Said while no stream was open; each once, because a list that changed twice is still just changed. */
  #missed: Set<Buffer> | null = null;

  constructor(gateway: Gateway, agent: string) {
    this.peer = new Peer(gateway, { agent, selection: 'own', notify: (message) => this.#notify(message) });
  }

  get idle(): boolean {
    return this.#streams.length === 0 && this.peer.inFlight === 0;
  }

  /** Takes over a response whose event-stream headers are out. */
  listen(response: ServerResponse): void {
    this.#streams.push(response);
    response.on('close', () => {
      this.#streams = this.#streams.filter((one) => one !== response);
      this.lastUse = Date.now();
    });
    const missed = this.#missed;
    this.#missed = null;
    for (const message of missed ?? []) this.#notify(message);
  }

  keepAlive(): void {
    this.peer.keepAlive();
    for (const stream of this.#streams) stream.write(SSE_KEEPALIVE);
  }

  close(): void {
    this.peer.close();
    for (const stream of this.#streams) stream.end();
    this.#streams = [];
  }

  #notify(message: Buffer): void {
    const stream = this.#streams.at(-1);
    if (stream === undefined) {
      this.#missed ??= new Set();
      this.#missed.add(message);
    } else {
      stream.write(sseEvent(message));
    }
  }
}

export interface Sessions {
  readonly size: number;
  open(agent: string): Session;
  /** A session of another agent is treated as if it were not there. */
  find(id: string, agent: string): Session;
  end(session: Session): void;
  close(): void;
}

export function createSessions(gateway: Gateway): Sessions {
  const sessions = new Map<string, Session>();

  const sweep = setInterval(() => {
    const now = Date.now();
    for (const session of sessions.values()) {
      if (isOver(session, now)) end(session);
      else session.keepAlive();
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
    open(agent) {
      makeRoom();
      const session = new Session(gateway, agent);
      sessions.set(session.id, session);
      return session;
    },
    find(id, agent) {
      const session = sessions.get(id);
      const now = Date.now();
      if (session === undefined || session.peer.agent !== agent || isOver(session, now)) {
        throw new GatewayError('session_unknown', 'The session is unknown or over. Start a new one with "initialize".');
      }
      session.lastUse = now;
      return session;
    },
    end,
    close() {
      clearInterval(sweep);
      for (const session of sessions.values()) session.close();
      sessions.clear();
    },
  };
}
