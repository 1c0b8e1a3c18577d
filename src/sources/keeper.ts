/**
 * Keeps one connection to a server: opens it, watches its health, stops it when it is idle, waits before it opens it
 * again, and drains it when it is replaced. Each new connection is told the log level and the subscriptions again. A
 * server has a shared connection, private ones of its clients, and leased ones of calls. All are kept this way.
 */
import type { GatewayError } from '../base/errors.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { Message } from '../protocol/message.ts';
import { type ConnectionOwner, hasEnded, type OpenedConnection } from './connect.ts';
import type { Connection } from './connection.ts';
import type { Draining } from './draining.ts';
import type { LiveConnection } from './handshake.ts';
import { type Checks, Health, HUNG, RESTARTED } from './health.ts';
import { Interests } from './interests.ts';
import type { CloseReason } from './pending.ts';
import type { UpstreamRefusal } from './refusals.ts';
import { RestartTimer } from './restart-timer.ts';
import { deferRequest } from './tickets.ts';

/** What all connections of one server share. */
export interface KeptServer {
  readonly config: ServerConfig;
  /** Connections that finish their calls before they are closed. */
  readonly draining: Draining;
  /** Opens a connection that reports to the keeper. */
  open(keeper: ConnectionKeeper): Promise<OpenedConnection>;
  /** The error for calls that cannot be sent. */
  unavailable(reason: unknown): GatewayError;
  refused(
    request: SourceRequest,
    refusal: UpstreamRefusal,
    reconnect: (request: SourceRequest) => Ticket | null,
  ): Ticket | null;
  /** Sends a request again that the server did not process; null if it was already sent again once. */
  again(request: SourceRequest): Ticket | null;
  /** Whether it has ever asked something outside the replies to requests, on any of its connections. */
  readonly asksAnywhere: boolean;
  /** The server has asked its client something. `isStray`: on a channel that does not say which request it is about. */
  asked(isStray: boolean): void;
  note(text: string): void;
  stderr(chunk: Buffer): void;
}

/** What one connection is for. */
export interface KeeperRole {
  /** The client that it belongs to; null for one that is shared. */
  readonly client: ClientChannel | null;
  /** The agent of that client; absent for a connection that is shared. Null before its first call. */
  agent?(): string | null;
  /** The owner of the sessions of that client, as the agent is. */
  principal?(): string | null;
  /** Whether the server's offer is listed. Further connections to the same server have the same offer. */
  readonly lists: boolean;
  /** Milliseconds without use until it is stopped; null to keep it. */
  idleStop(): number | null;
  /** Whether the server may be waiting for a client's answer, during which a call's timeout is paused. */
  asks(): boolean;
  /** Running calls whose connections need this one to stay open. */
  dependentCalls?(): number;
  /** Running calls that may keep the server from answering; by default those on this connection. */
  competingCalls?(): number;
  /** A notification that belongs to no request. */
  notification(message: Message): void;
  /** Changes may have gone unnoticed. */
  missed?(): void;
  /** Why it cannot be started yet; null when it can. */
  preparing?(text: string | null): void;
  opened?(opened: OpenedConnection): void;
  /** The connection could not be opened. */
  failed?(error: unknown): void;
  /** The connection broke. */
  lost?(reason: string): void;
  /** The server has forgotten its session. */
  forgotten?(): void;
  /** The connection was stopped because it was idle. */
  idled?(): void;
  /** No request is pending on it any more. */
  idle?(): void;
}

/** Node's timers fire at once if they are longer than this. */
const LONGEST_TIMER = 2 ** 31 - 1;

export class ConnectionKeeper implements ConnectionOwner {
  readonly interests: Interests;
  readonly restart: RestartTimer;
  /** The connection that takes calls; null while there is none. */
  live: LiveConnection | null = null;
  /** Calls that wait until they can be sent. */
  waiting = 0;
  readonly #server: KeptServer;
  readonly #role: KeeperRole;
  readonly #health: Health;
  #starting: Promise<Connection> | null = null;
  /** The connection that `#starting` is opening. */
  #opening: Connection | null = null;
  /** Resolves when a hung connection is closed. The next one is opened after that. */
  #ending: Promise<void> | null = null;
  #closed = false;
  /** Resolve with the next attempt to start. */
  #awaiting: ((attempt: Promise<Connection>) => void)[] = [];
  #idleTimer: NodeJS.Timeout | undefined;
  #lastUse = Date.now();

  constructor(server: KeptServer, role: KeeperRole) {
    this.#server = server;
    this.#role = role;
    const { launch } = server.config;
    this.interests = new Interests(this, () => server.config.timeout);
    this.restart = new RestartTimer(() => this.start().catch(() => {}), role.lists && launch.kind === 'folder');
    this.#health = new Health({
      live: () => this.live,
      config: () => server.config,
      calls: () => role.competingCalls?.() ?? this.inFlight,
      asks: role.asks,
      hung: (connection) => {
        this.#ending = connection.close(RESTARTED);
        this.lost(connection, HUNG);
      },
    });
  }

  get client(): ClientChannel | null {
    return this.#role.client;
  }

  get agent(): string | null {
    return this.#role.agent?.() ?? null;
  }

  get principal(): string | null {
    return this.#role.principal?.() ?? null;
  }

  get lists(): boolean {
    return this.#role.lists;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  get isStarting(): boolean {
    return this.#starting !== null;
  }

  get inFlight(): number {
    return (this.live?.connection.inFlight ?? 0) + this.waiting;
  }

  get checks(): Checks {
    return this.#health.checks;
  }

  get isBusy(): boolean {
    return (
      this.#starting !== null ||
      this.inFlight + (this.#role.dependentCalls?.() ?? 0) > Number(this.#health.isAsking) ||
      this.live?.connection.awaited === true ||
      this.interests.subscriptions.uris.length > 0
    );
  }

  /** Resolves with the connection, once there is one. */
  start(): Promise<Connection> {
    this.restart.clear();
    if (this.live !== null) return Promise.resolve(this.live.connection);
    this.#starting ??= this.#open().finally(() => {
      this.#starting = null;
    });
    const awaiting = this.#awaiting;
    this.#awaiting = [];
    for (const resolve of awaiting) resolve(this.#starting);
    return this.#starting;
  }

  /** The attempt to start that is scheduled. Unlike `start`, this does not shorten the delay before it. */
  nextStart(): Promise<Connection> {
    return new Promise((resolve) => {
      this.#awaiting.push(resolve);
    });
  }

  async #open(): Promise<Connection> {
    try {
      await this.#ending;
      return (await this.#server.open(this)).connection;
    } catch (error) {
      this.restart.failed(hasEnded(error));
      if (!this.#closed) this.#role.failed?.(error);
      throw this.#server.unavailable(error);
    } finally {
      this.#opening = null;
    }
  }

  /** Sends a call now, or as soon as there is a connection. */
  call(request: SourceRequest): Ticket {
    this.used();
    if (this.live !== null) return this.#send(this.live.connection, request);
    return this.callAfter(this.start(), request, (connection) => this.#send(connection, request));
  }

  /** Sends a call after this start. `send` throws if it must not be sent any more. */
  callAfter<T>(start: Promise<T>, request: SourceRequest, send: (started: T) => Ticket): Ticket {
    return this.#defer(request, this.#within(start, this.#longestWait(request)), (started) => {
      request.recheck?.();
      return send(started);
    });
  }

  /** A start that installs dependencies first may take longer than `start_timeout`, which is no sign of a failure. */
  #longestWait({ timeout, totalTimeout }: SourceRequest): number {
    return Math.min(Math.max(timeout, this.#server.config.startTimeout), totalTimeout);
  }

  #within<T>(work: Promise<T>, ms: number): Promise<T> {
    if (ms >= LONGEST_TIMER) return work;
    return new Promise((resolve, reject) => {
      const reason = `it is still starting after ${ms / 1000} s. Try again later`;
      const timer = setTimeout(() => reject(this.#server.unavailable(reason)), ms);
      timer.unref();
      work.then(resolve, reject).finally(() => clearTimeout(timer));
    });
  }

  #send(connection: Connection, request: SourceRequest): Ticket {
    if (this.interests.telling === null) return connection.request(request);
    return this.hold(request, () => connection.request(request));
  }

  /** Holds a call back while the server is told the log level: over HTTP the call could arrive first. */
  hold(request: SourceRequest, begin: () => Ticket): Ticket {
    return this.#defer(request, this.interests.telling ?? Promise.resolve(), begin);
  }

  #defer<T>(request: SourceRequest, ready: Promise<T>, begin: (value: T) => Ticket): Ticket {
    this.waiting++;
    // Runs before `begin` in the same turn, so that the connection never seems idle in between.
    const done = () => {
      this.waiting--;
    };
    ready.then(done, done);
    return deferRequest(request, ready, begin);
  }

  used(): void {
    if (this.#role.idleStop() !== null) this.#lastUse = Date.now();
  }

  /** Starts to watch the connection. Called again when intervals change. */
  watch(): void {
    this.#health.arm();
    this.#watchIdle();
  }

  unwatch(): void {
    this.#health.disarm();
    clearTimeout(this.#idleTimer);
  }

  #watchIdle(): void {
    clearTimeout(this.#idleTimer);
    const limit = this.#role.idleStop();
    if (this.live === null || limit === null) return;
    const idle = Date.now() - this.#lastUse;
    const { isBusy } = this;
    if (!isBusy && idle >= limit) {
      this.#drain();
      this.restart.stopped();
      this.#role.idled?.();
      return;
    }
    this.#idleTimer = setTimeout(() => this.#watchIdle(), isBusy ? limit : limit - idle);
    this.#idleTimer.unref();
  }

  /** Accepts no more calls on the connection and lets the running ones finish. */
  #drain(): void {
    if (this.live !== null) this.#server.draining.add(this.live.connection);
    this.live = null;
    this.unwatch();
  }

  /** Calls on the connection fail with the reason, or else because the server is being stopped. */
  async close(reason?: CloseReason): Promise<void> {
    this.#closed = true;
    this.restart.clear();
    this.unwatch();
    const stopped = Promise.reject(this.#server.unavailable('it is being stopped'));
    stopped.catch(() => {});
    for (const resolve of this.#awaiting) resolve(stopped);
    // A connection that is still being opened is closed at once: opening it may take as long as start_timeout.
    const connection = this.live?.connection ?? this.#opening;
    this.live = null;
    await connection?.close(reason);
    await this.#starting?.catch(() => {});
  }

  connected(connection: Connection): void {
    this.#opening = connection;
  }

  entered(opened: OpenedConnection): void {
    const { connection, handshake } = opened;
    this.live = { connection, handshake };
    this.#lastUse = Date.now();
    this.restart.works();
    this.interests.renew();
    this.#role.opened?.(opened);
    this.watch();
  }

  lost(connection: Connection, reason: string): void {
    if (this.live?.connection !== connection || this.#closed) return;
    this.#drain();
    this.restart.failed(true);
    this.#role.lost?.(reason);
  }

  forgotten(connection: Connection, refused: SourceRequest | null): Ticket | null {
    if (this.live?.connection === connection) {
      this.#drain();
      this.restart.failed(true);
      this.#role.forgotten?.();
    }
    return refused === null ? null : this.#server.again(refused);
  }

  refused(connection: Connection, request: SourceRequest, refusal: UpstreamRefusal): Ticket | null {
    return this.#server.refused(request, refusal, (again) => this.forgotten(connection, again));
  }

  unsent(request: SourceRequest): Ticket | null {
    return this.#server.again(request);
  }

  missed(): void {
    this.#role.missed?.();
  }

  notification(message: Message): void {
    this.#role.notification(message);
  }

  get asksAnywhere(): boolean {
    return this.#server.asksAnywhere;
  }

  asked(isStray: boolean): void {
    this.#server.asked(isStray);
  }

  idle(): void {
    this.#role.idle?.();
  }

  note(text: string): void {
    this.#server.note(text);
  }

  preparing(text: string | null): void {
    this.#role.preparing?.(text);
  }

  stderr(chunk: Buffer): void {
    this.#server.stderr(chunk);
  }
}
