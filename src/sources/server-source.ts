/**
 * One configured server, kept available: it is started, listed, restarted with growing delays when it ends, stopped
 * when idle, and started again by a call. It has one shared connection, on which it is listed, and further ones that
 * its callers need.
 */
import { GatewayError, messageOf } from '../base/errors.ts';
import { EMPTY_OFFER, type Kind, type Offer } from '../catalog/item.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import { decodeString } from '../protocol/json.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Message } from '../protocol/message.ts';
import { FORGOTTEN, hasEndedEarly, type OpenedConnection, openServer } from './connect.ts';
import { Draining } from './draining.ts';
import { type Handshake, NO_TASKS, type TaskAbilities } from './handshake.ts';
import { ConnectionKeeper, type KeptServer } from './keeper.ts';
import { Leases } from './leases.ts';
import { Lists } from './lists.ts';
import { PrivateConnections } from './private.ts';
import { RefusalRetries, type UpstreamRefusal } from './refusals.ts';
import type { ResourceSubscriptions, ServerContext, ServerSource, SourceStatus } from './source.ts';
import { StateHistory } from './state.ts';
import { StderrTail } from './stderr-tail.ts';
import { failRequest } from './tickets.ts';
import { SecretMissing } from './vault.ts';

/** If a server forgets its session more often than this in a row, reconnecting is delayed. */
const MAX_FORGETS = 5;
const DRAIN_LOOK = 20;
/** Progress without a pending request may belong to an MCP task. */
const ABOUT_TASKS: ReadonlySet<string> = new Set(['notifications/tasks/status', 'notifications/progress']);

export function createServerSource(config: ServerConfig, context: ServerContext): ServerSource {
  return new KeptServerSource(config, context);
}

class KeptServerSource implements ServerSource, KeptServer {
  config: ServerConfig;
  readonly draining = new Draining();
  readonly tried: Promise<void>;
  readonly #context: ServerContext;
  readonly #lists: Lists;
  readonly #states: StateHistory;
  readonly #stderr = new StderrTail();
  readonly #shared: ConnectionKeeper;
  readonly #leases: Leases;
  readonly #private: PrivateConnections;
  /** Whether each client has a connection to itself. Never changes: a change of `share` replaces the source. */
  readonly #isPrivate: boolean;
  readonly #retries: RefusalRetries;
  /** The last handshake of the server. */
  #handshake: Handshake | null = null;
  #restarts = 0;
  /** Whether it has ever asked its client something. */
  #asks = false;
  #mayProbe = true;

  constructor(config: ServerConfig, context: ServerContext) {
    this.config = config;
    this.#context = context;
    this.#isPrivate = config.share === 'session';
    this.#states = new StateHistory(context, () => this.config.key, this.#stderr);
    const notification = (message: Message) => this.#hear(message);
    const missed = () => this.#lists.missed();
    this.#shared = new ConnectionKeeper(this, {
      client: null,
      lists: true,
      idleStop: () => this.config.idleStop,
      asks: () => this.#asks,
      dependentCalls: () => this.#leases.inFlight,
      competingCalls: () => this.inFlight,
      notification,
      missed,
      opened: (opened) => this.#opened(opened),
      failed: (error) => this.#failed(error),
      lost: (reason) => this.#lost(reason),
      forgotten: () => this.#forgotten(),
      idled: () => this.#idled(),
    });
    this.#leases = new Leases(this, this.#shared, { notification, missed });
    this.#private = new PrivateConnections(this, {
      logLevel: () => this.#shared.interests.logLevel,
      // Changes of its lists are ignored here: the lists come from the shared connection.
      notification: (message, client) => this.#passUpdate(message, client),
    });
    this.#lists = new Lists({
      live: () => this.#shared.live,
      isOpening: () => this.#shared.isStarting,
      config: () => this.config,
      store: context.offers,
      changed: context.changed,
      note: (text) => this.note(text),
    });
    this.#retries = new RefusalRetries({
      key: () => this.config.key,
      isClosed: () => this.#states.isClosed,
      call: (request) => this.call(request),
      relist: () => this.#lists.refresh('tool').then(() => this.offer),
    });
    this.tried = this.#firstAttempt();
  }

  /**
   * Recalls the last known offer at once, before anything is awaited: the catalog that is built next already has the
   * names of this server.
   */
  async #firstAttempt(): Promise<void> {
    const { offers, eras } = this.#context;
    const { launchHash, start } = this.config;
    const known = offers.read(launchHash);
    if (known !== null) this.#lists.offer = known;
    await eras.isLegacy(launchHash);
    if (this.#states.isClosed) return;
    if (start === 'lazy' && known !== null) {
      this.#states.enter('asleep', 'not started yet; the next call starts it');
      return;
    }
    this.#states.enter('starting', '');
    await this.#start();
  }

  /** Failures are reported by the keeper. */
  async #start(): Promise<void> {
    await this.#shared.start().catch(() => {});
  }

  get offer(): Offer {
    return this.#lists.offer;
  }

  get present(): boolean {
    const { state } = this.#states;
    // The worker of a folder is back soon. Until then its offer stays, and calls fail with the reason.
    const isRestarting = state === 'down' && this.#restarts > 0 && this.config.launch.kind === 'folder';
    return this.#shared.live !== null || ((state === 'asleep' || isRestarting) && this.offer !== EMPTY_OFFER);
  }

  get inFlight(): number {
    return this.#shared.inFlight + this.draining.inFlight + this.#leases.inFlight + this.#private.inFlight;
  }

  get completes(): boolean {
    return this.#handshake?.completes ?? false;
  }

  get tasks(): TaskAbilities {
    return this.#isPrivate ? NO_TASKS : (this.#handshake?.tasks ?? NO_TASKS);
  }

  get subscribes(): boolean {
    return this.#handshake?.subscribes ?? false;
  }

  get subscribed(): readonly (readonly [ClientChannel | null, readonly string[]])[] {
    return [[null, this.#shared.interests.subscriptions.uris] as const, ...this.#private.subscribed];
  }

  status(): SourceStatus {
    return {
      ...this.#states.report(),
      revision: this.#handshake?.revision ?? null,
      pid: this.#shared.live?.connection.pid ?? null,
      restarts: this.#restarts,
      checks: this.#shared.checks,
      stderr: this.#context.redact(this.#stderr.text()),
    };
  }

  call(request: SourceRequest): Ticket {
    if (this.#isPrivate && request.client !== null) return this.#private.call(request.client, request);
    const { live, interests } = this.#shared;
    if (live !== null) {
      this.#shared.used();
      if (interests.telling !== null) return this.#shared.hold(request, () => this.call(request));
      const isLeased = this.#asks && request.pinned !== true;
      return isLeased ? this.#leases.request(request) : live.connection.request(request);
    }
    if (this.#states.state === 'asleep' || this.#shared.isStarting) return this.#shared.call(request);
    return failRequest(request, this.unavailable(`${this.#states.detail}. Try again later`));
  }

  update(config: ServerConfig): void {
    this.config = config;
    this.#shared.watch();
    this.#private.watch();
    const maySleep = config.idleStop !== null || config.start === 'lazy';
    if (this.#states.state === 'asleep' && !maySleep) void this.#start();
  }

  revive(): void {
    if (this.#shared.restart.revive() && this.#shared.live === null) void this.#start();
  }

  subscriptions(client: ClientChannel | null): ResourceSubscriptions {
    const isOwn = this.#isPrivate && client !== null;
    return isOwn ? this.#private.subscriptions(client) : this.#shared.interests.subscriptions;
  }

  setLogLevel(level: LogLevel): void {
    this.#shared.interests.setLogLevel(level);
    this.#leases.setLogLevel(level);
    this.#private.setLogLevel(level);
  }

  freshen(kind: Kind): void {
    this.#lists.freshen(kind);
  }

  tell(client: ClientChannel, message: Buffer): void {
    this.#private.tell(client, message);
  }

  leave(client: ClientChannel): void {
    this.#private.leave(client);
  }

  async drain(): Promise<void> {
    const latest = Date.now() + this.config.timeout;
    this.#shared.unwatch();
    while (!this.#states.isClosed && this.inFlight > 0 && Date.now() < latest)
      await new Promise((resolve) => setTimeout(resolve, DRAIN_LOOK));
    await this.close();
  }

  async close(): Promise<void> {
    if (this.#states.isClosed) return;
    this.#states.close();
    this.#lists.clear();
    const closing = [this.#shared.close(), this.#leases.close(), this.#private.close(), this.draining.close()];
    await Promise.all(closing);
  }

  async open(keeper: ConnectionKeeper): Promise<OpenedConnection> {
    const known = keeper === this.#shared ? null : this.#handshake;
    const mayProbe = known === null ? this.#mayProbe : known.era === 'modern';
    const opened = await openServer(this.config, this.#context, keeper, mayProbe);
    this.#handshake ??= opened.handshake;
    return opened;
  }

  unavailable(reason: unknown): GatewayError {
    const why = typeof reason === 'string' ? reason : messageOf(reason);
    const text = this.#context.redact(`Server "${this.config.key}" is not available: ${why}.`);
    return new GatewayError('source_unavailable', text);
  }

  #opened({ handshake, listed }: OpenedConnection): void {
    this.#handshake = handshake;
    this.#lists.replace(listed, handshake);
    this.#states.enter('up', handshake.server);
    this.#context.started(this.config.key);
    this.#lists.store();
  }

  #failed(error: unknown): void {
    // A few servers exit at a request that they do not know, so `server/discover` is not sent the next time.
    if (hasEndedEarly(error) && this.config.launch.kind === 'stdio') this.#mayProbe = !this.#mayProbe;
    const reason = messageOf(error);
    if (error instanceof SecretMissing) this.#states.enter('locked', reason);
    else this.#states.enter(...this.#shared.restart.schedule(reason));
  }

  #lost(reason: string): void {
    this.#lists.clear();
    this.#restarts++;
    this.#states.enter(...this.#shared.restart.schedule(reason));
  }

  /** A new handshake takes a moment, so the items stay, and calls wait as for a sleeping server. */
  #forgotten(): void {
    this.#lists.clear();
    if (this.#shared.restart.failures > MAX_FORGETS) {
      this.#states.enter(...this.#shared.restart.schedule(FORGOTTEN));
      return;
    }
    this.#states.enter('asleep', `${FORGOTTEN}; a new one is being opened`);
    void this.#start();
  }

  #idled(): void {
    this.#lists.clear();
    this.#states.enter('asleep', 'stopped while idle; the next call starts it');
  }

  #hear(message: Message): void {
    if (ABOUT_TASKS.has(message.method)) this.#context.taskChanged(this, message);
    else if (!this.#passUpdate(message, null)) this.#lists.hear(message.method);
  }

  /** Passes on that a resource has changed, to all clients or to this one; false for any other message. */
  #passUpdate({ method, bytes, uriStart, uriEnd }: Message, client: ClientChannel | null): boolean {
    if (method !== 'notifications/resources/updated') return false;
    if (uriStart >= 0 && bytes[uriStart] === 0x22)
      this.#context.updated(this, decodeString(bytes, uriStart, uriEnd), client);
    return true;
  }

  refused(
    request: SourceRequest,
    refusal: UpstreamRefusal,
    reconnect: (request: SourceRequest) => Ticket | null,
  ): Ticket | null {
    return this.#retries.refused(request, refusal, reconnect);
  }

  again(request: SourceRequest): Ticket | null {
    return this.#retries.again(request);
  }

  asked(): void {
    this.#asks = true;
  }

  note(message: string): void {
    this.#context.events.emit('note', { source: this.config.key, message });
  }

  stderr(chunk: Buffer): void {
    this.#stderr.push(chunk);
  }
}
