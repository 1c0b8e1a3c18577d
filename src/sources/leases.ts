/**
 * Further processes of a server that asks its client questions, or further connections to it, so that every question
 * has one addressee. A call whose caller can be asked has a connection to itself, and waits until one is free. Calls
 * whose callers cannot be asked share one and do not wait.
 *
 * Only a few connections are at work at the same time. A call that waits for an answer of its client is not at work, and
 * others may start meanwhile: they would otherwise wait for a person, or for a client that answers only after all of its
 * calls have returned. One agent has at most part of the connections, so the calls of others always get their turn.
 */
import type { GatewayError } from '../base/errors.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { isAskable } from '../protocol/question.ts';
import type { Connection } from './connection.ts';
import { ConnectionKeeper, type KeeperRole, type KeptServer } from './keeper.ts';
import { NoFault } from './tickets.ts';
import { WaitingRequests } from './waiting-requests.ts';

/**
 * How many connections may be at work, and how many there may be in all, including the first. The difference is what one
 * agent may hold. Over HTTP they are only connections, not processes.
 */
const MOST = { stdio: { atWork: 4, all: 12 }, http: { atWork: 16, all: 48 } };
/** What an agent without a session may hold: it may have as many open questions. */
const MOST_PARKED = 8;
const IDLE = 60_000;
/** A client that was asked something has at least this long to return before its call may lose its connection. */
const PATIENCE = 15_000;
/** A call that waits only for clients that are away is refused if none of them has returned for this long. */
const STUCK = 30_000;
/** How often waiting calls look for clients that have been away too long. */
const LOOK = 250;
const SECOND = 1_000;

export class Leases {
  readonly #server: KeptServer;
  readonly #primary: ConnectionKeeper;
  /** How leased connections handle notifications: as the primary one does. */
  readonly #role: Pick<KeeperRole, 'notification' | 'missed'>;
  readonly #extras = new Set<ConnectionKeeper>();
  /** The request that each of them works for, or worked for last. */
  readonly #requests = new WeakMap<ConnectionKeeper, SourceRequest>();
  readonly #waiting = new WaitingRequests();
  /** The connection that is being opened for all calls whose callers cannot be asked. */
  #shared: ConnectionKeeper | null = null;
  #look: NodeJS.Timeout | undefined;
  #isAdmitting = false;

  constructor(server: KeptServer, primary: ConnectionKeeper, role: Pick<KeeperRole, 'notification' | 'missed'>) {
    this.#server = server;
    this.#primary = primary;
    this.#role = role;
  }

  get inFlight(): number {
    let sum = this.#waiting.size;
    for (const { inFlight } of this.#extras) sum += inFlight;
    return sum;
  }

  setLogLevel(level: LogLevel): void {
    for (const { interests } of this.#extras) interests.setLogLevel(level);
  }

  /** Sends the request on a connection on which a question cannot be meant for another call. */
  request(request: SourceRequest): Ticket {
    if (!isAskable(request.sink)) return this.#requestShared(request);
    // A call never overtakes one of its own agent, or one that is next in turn.
    const mayGo = this.#waiting.size === 0 && this.#mayHoldMore(request);
    const keeper = mayGo ? this.#place(request) : null;
    if (keeper !== null) return this.#lease(keeper, request);
    const ticket = this.#waiting.add(request, (waited) => this.#late(request, waited));
    this.#look ??= setInterval(() => this.#admit(), LOOK).unref();
    this.admit();
    return ticket;
  }

  /** A connection may have become free, or may be opened. */
  admit(): void {
    if (this.#waiting.size === 0 || this.#isAdmitting) return;
    this.#isAdmitting = true;
    // Afterwards, because the call that ends is still being answered, or the question still being passed on.
    queueMicrotask(() => {
      this.#isAdmitting = false;
      this.#admit();
    });
  }

  /** The server cannot be used for now, so nothing waits for it. */
  refuse(error: GatewayError): void {
    this.#waiting.fail(() => error);
  }

  #admit(): void {
    const held = (request: SourceRequest) => (this.#mayHoldMore(request) ? this.#heldBy(request).length : null);
    for (let next = this.#waiting.next(held); next !== null; next = this.#waiting.next(held)) {
      if (!next.isAllowed()) continue;
      const keeper = this.#place(next.request);
      if (keeper === null) break;
      next.begin((request) => this.#lease(keeper, request));
    }
    this.#waiting.fail((request) => this.#stuck(request));
    if (this.#waiting.size > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  /** For a call whose caller cannot be asked: uses a connection that has no callers who can be asked. */
  #requestShared(request: SourceRequest): Ticket {
    const calm = this.#find(({ askable }) => askable === 0);
    if (calm !== undefined) return calm.call(request);
    // There is always room for this one. On another one it would be uncertain whom a question is meant for.
    return (this.#shared ?? this.#openShared()).call(request);
  }

  #openShared(): ConnectionKeeper {
    const keeper = this.#add();
    this.#shared = keeper;
    const done = () => {
      this.#shared = null;
    };
    keeper
      .start()
      .then(() => keeper.interests.telling)
      .then(done, done);
    return keeper;
  }

  #lease(keeper: ConnectionKeeper, request: SourceRequest): Ticket {
    this.#requests.set(keeper, request);
    return keeper.call(request);
  }

  /** A connection for the request; null if it has to wait. */
  #place(request: SourceRequest): ConnectionKeeper | null {
    const free = this.#find(({ asking }) => asking === 0);
    if (free !== undefined) return free;
    // The server is about to return. More processes of it would not help.
    if (this.#primary.live === null) return null;
    return this.#hasRoom || this.#makeRoom(request) ? this.#add() : null;
  }

  #add(): ConnectionKeeper {
    const drop = () => {
      this.#extras.delete(keeper);
      this.admit();
    };
    const keeper = new ConnectionKeeper(this.#server, {
      ...this.#role,
      client: null,
      lists: false,
      idleStop: () => IDLE,
      asks: () => true,
      failed: drop,
      lost: drop,
      forgotten: drop,
      idled: drop,
      idle: () => this.admit(),
    });
    const level = this.#primary.interests.logLevel;
    if (level !== null) keeper.interests.setLogLevel(level);
    this.#extras.add(keeper);
    return keeper;
  }

  /** Skips leased connections that a call is already waiting for. */
  #find(matches: (connection: Connection) => boolean): ConnectionKeeper | undefined {
    const isMatch = ({ live }: ConnectionKeeper) => live !== null && matches(live.connection);
    if (isMatch(this.#primary)) return this.#primary;
    return [...this.#extras].find((keeper) => keeper.waiting === 0 && isMatch(keeper));
  }

  get #all(): readonly ConnectionKeeper[] {
    return [this.#primary, ...this.#extras];
  }

  get #most() {
    return MOST[this.#server.config.launch.kind === 'http' ? 'http' : 'stdio'];
  }

  get #hasRoom(): boolean {
    return this.#all.length < this.#most.all && this.#mayWorkMore;
  }

  get #mayWorkMore(): boolean {
    const isAtWork = ({ waiting, live }: ConnectionKeeper) => waiting > 0 || (live?.connection.atWork ?? 0) > 0;
    return this.#all.filter(isAtWork).length < this.#most.atWork;
  }

  /** The requests whose callers can be asked, each with a connection. */
  get #held(): readonly SourceRequest[] {
    return this.#all.flatMap((keeper) => {
      const { waiting, live } = keeper;
      const isHeld = waiting > 0 || (live?.connection.askable ?? 0) > 0;
      return isHeld ? (this.#requests.get(keeper) ?? []) : [];
    });
  }

  #heldBy({ agent }: SourceRequest): readonly SourceRequest[] {
    return this.#held.filter((request) => request.agent === agent);
  }

  #mayHoldMore(request: SourceRequest): boolean {
    const { atWork, all } = this.#most;
    const most = request.client?.abilities === null ? MOST_PARKED : all - atWork;
    return this.#heldBy(request).length < most;
  }

  /**
   * Closes a connection that only has abandoned calls. If there is none, and no more connections are allowed, closes the
   * one whose caller was asked something and has been away longest, if its agent holds more than this one.
   */
  #makeRoom(request: SourceRequest): boolean {
    const idle = [...this.#extras].find(({ live, inFlight }) => inFlight === 0 && live?.connection.awaited === false);
    if (idle !== undefined) {
      this.#close(idle);
      return true;
    }
    if (!this.#mayWorkMore) return false;
    const own = this.#heldBy(request).length;
    const awaySince = (keeper: ConnectionKeeper) => {
      const held = this.#requests.get(keeper);
      return held === undefined || this.#heldBy(held).length <= own ? null : held.sink.awaySince;
    };
    const since = (keeper: ConnectionKeeper) => awaySince(keeper) ?? Number.POSITIVE_INFINITY;
    const [longest] = [...this.#extras].sort((a, b) => since(a) - since(b));
    const away = longest === undefined ? Number.NEGATIVE_INFINITY : Date.now() - since(longest);
    if (longest === undefined || away < PATIENCE) return false;
    const text = `Server ${this.#name} needed the connection of this call for another agent: its question was open for ${Math.round(away / SECOND)} s. Call again.`;
    this.#close(longest, new NoFault('source_busy', text));
    return true;
  }

  #close(keeper: ConnectionKeeper, reason?: GatewayError): void {
    this.#extras.delete(keeper);
    void keeper.close(reason);
  }

  get #name(): string {
    return JSON.stringify(this.#server.config.key);
  }

  #late(request: SourceRequest, waited: number): NoFault {
    const held = this.#mayHoldMore(request) ? this.#held : this.#heldBy(request);
    const whose = this.#mayHoldMore(request) ? '' : ' of this agent';
    const text = `Server ${this.#name} is busy: the call has waited ${waited / SECOND} s for a free connection. The server may ask back, so each call has a connection to itself, and ${held.length} calls${whose} are not done yet. Answer what they ask, or try again later.`;
    return new NoFault('source_busy', text, { details: { retryAfter: 1 } });
  }

  /** The error for a request that waits only for clients that are away, and seem not to return; null for any other. */
  #stuck(request: SourceRequest): NoFault | null {
    const held = this.#mayHoldMore(request) ? this.#held : this.#heldBy(request);
    const latest = Math.max(...held.map(({ sink }) => sink.awaySince ?? Number.POSITIVE_INFINITY));
    if (held.length === 0 || Date.now() - latest < STUCK) return null;
    const text = `Server ${this.#name} is busy: ${held.length} calls wait for an answer of their client, and none was answered for ${STUCK / SECOND} s. Answer them first (send each request again with its "inputResponses" and "requestState"), then call again.`;
    return new NoFault('source_busy', text, { details: { retryAfter: 1 } });
  }

  async close(): Promise<void> {
    this.refuse(this.#server.unavailable('it is being stopped'));
    clearInterval(this.#look);
    const all = [...this.#extras];
    this.#extras.clear();
    await Promise.allSettled(all.map((keeper) => keeper.close()));
  }
}
