/**
 * One configured server, kept available: it is started, listed, restarted with growing delays when it ends, stopped
 * when idle, and started again by a call. It has one shared connection, on which it is listed, and further ones that
 * its callers need.
 */
import { GatewayError, messageOf } from '../base/errors.ts';
import { withoutStop } from '../base/text.ts';
import { retryAfterOf } from '../catalog/away.ts';
import type { Absence } from '../catalog/catalog.ts';
import { EMPTY_OFFER, type Kind, type Offer } from '../catalog/item.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import { decodeString } from '../protocol/json.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Message } from '../protocol/message.ts';
import type { ServerAbilities } from '../store/offers.ts';
import {
  FORGOTTEN,
  hasEndedEarly,
  lacksDependencies,
  needsLogin,
  type OpenedConnection,
  openServer,
} from './connect.ts';
import type { Connection } from './connection.ts';
import { KnownDefinitions } from './definitions.ts';
import { Draining } from './draining.ts';
import { type Handshake, NO_TASKS, type TaskAbilities } from './handshake.ts';
import { ConnectionKeeper, type KeptServer } from './keeper.ts';
import { type FileProblem, problemText } from './last-good.ts';
import { Leases } from './leases.ts';
import { Lists } from './lists.ts';
import { askToLogIn, canBeSent } from './login-question.ts';
import { PrivateConnections } from './private.ts';
import { RefusalRetries, type UpstreamRefusal } from './refusals.ts';
import { LoginMissing, type ServerLogin } from './server-login.ts';
import type { ResourceSubscriptions, ServerContext, ServerSource, SourceStatus } from './source.ts';
import type { StartTurn } from './start-queue.ts';
import { StateHistory } from './state.ts';
import { PrintedLines, StderrTail } from './stderr-tail.ts';
import { deferRequest, failRequest, NoFault } from './tickets.ts';
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
  /** What it prints, by lines; null if nobody looks. */
  #printed: PrintedLines | null = null;
  readonly #shared: ConnectionKeeper;
  readonly #leases: Leases;
  readonly #private: PrivateConnections;
  /** Whether each client has a connection to itself. Never changes: a change of `share` replaces the source. */
  readonly #isPrivate: boolean;
  readonly #retries: RefusalRetries;
  /** The last handshake of the server. */
  #handshake: Handshake | null = null;
  /** What it can do, as its last handshake or its last run said. */
  #abilities: ServerAbilities | null = null;
  /** Milliseconds that its last start took; null if it has never been up. */
  #startTime: number | null = null;
  /** When its connection was last opened. */
  #openedAt = 0;
  #restarts = 0;
  /** Whether its last attempt failed because its dependencies could not be installed. */
  #lacksDependencies = false;
  /** Whether its last attempt failed because nobody is logged in. */
  #needsLogin = false;
  /** Calls whose caller was asked to log in. */
  #asking = 0;
  /** The files that its worker could not load when it last started. */
  #problems: readonly FileProblem[] = [];
  isSse = false;
  /** Whether it has ever asked its client something. */
  #asks = false;
  asksAnywhere = false;
  #mayProbe = true;
  /** Whether it has ended and is started again soon. Calls wait for that. */
  #isReturning = false;
  readonly #definitions = new KnownDefinitions();
  /** Its place among the servers that are starting; null before and after. */
  #turn: StartTurn | null = null;

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
      preparing: (text) => (text === null ? this.#states.prepared() : this.#states.prepare(text)),
      opened: (opened) => this.#opened(opened),
      failed: (error) => this.#failed(error),
      lost: (reason) => this.#lost(reason),
      forgotten: () => this.#forgotten(),
      idled: () => this.#idled(),
      idle: () => this.#leases.admit(),
    });
    this.#leases = new Leases(this, this.#shared, { notification, missed });
    this.#private = new PrivateConnections(this, {
      needsLogin,
      logLevel: () => this.#shared.interests.logLevel,
      // Changes of its lists are ignored here: the lists come from the shared connection.
      notification: (message, client) => this.#passUpdate(message, client),
    });
    this.#lists = new Lists({
      live: () => this.#shared.live,
      isOpening: () => this.#shared.isStarting,
      config: () => this.config,
      store: () => this.#remember(),
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
    const { offers, eras, starts } = this.#context;
    const { launch, launchHash, start, required } = this.config;
    const known = offers.read(launchHash);
    if (known !== null) {
      this.#lists.offer = known.offer;
      this.#definitions.recall(known.offer);
      this.#abilities = known.abilities;
      this.#asks = known.abilities?.asks === true;
      this.#startTime = known.startTime;
    }
    // A server with an empty offer must not sleep: no call could wake it, so it would never be listed again.
    const maySleep = start === 'lazy' && this.offer.items.length > 0;
    const turn = maySleep || launch.kind === 'http' ? null : starts.join({ required, startTime: this.#startTime });
    this.#turn = turn;
    await eras.isLegacy(launchHash);
    if (maySleep && !this.#states.isClosed) {
      this.#states.enter('asleep', 'not started yet; the next call starts it');
      return;
    }
    await turn?.come;
    if (!this.#states.isClosed) {
      // A call may have started it already.
      if (this.#shared.live === null) this.#states.enter('starting', '');
      await this.#start();
    }
    turn?.leave();
    this.#turn = null;
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
    // Who has to log in again sees the tools, and each call says how.
    const isWaiting = state === 'locked' && this.#needsLogin;
    const isListed = state === 'asleep' || state === 'starting' || isRestarting || isWaiting;
    return this.#shared.live !== null || (isListed && this.offer !== EMPTY_OFFER);
  }

  get absence(): Absence | null {
    const { state, detail, since, isPreparing } = this.#states;
    if (state === 'up' || state === 'asleep' || state === 'closed') return null;
    // Why a start takes its time changes often, and lists must not change with it.
    const isStarting = isPreparing || state === 'starting';
    return {
      state: isPreparing ? 'installing' : state,
      reason: isStarting ? '' : detail,
      since: Date.parse(since),
      lacksDependencies: this.#lacksDependencies,
    };
  }

  get inFlight(): number {
    const { draining } = this;
    return this.#shared.inFlight + draining.inFlight + this.#leases.inFlight + this.#private.inFlight + this.#asking;
  }

  get completes(): boolean {
    return this.#abilities?.completes ?? false;
  }

  get tasks(): TaskAbilities {
    return this.#isPrivate ? NO_TASKS : (this.#abilities?.tasks ?? NO_TASKS);
  }

  get subscribes(): boolean {
    return this.#abilities?.subscribes ?? false;
  }

  get subscribed(): readonly (readonly [ClientChannel | null, readonly string[]])[] {
    return [[null, this.#shared.interests.subscriptions.uris] as const, ...this.#private.subscribed];
  }

  status(): SourceStatus {
    const login = this.#context.vault.shownLogin(this.config);
    const agentLogins = this.#context.vault.agentLogins(this.config);
    return {
      ...this.#states.report(),
      revision: this.#handshake?.revision ?? null,
      pid: this.#shared.live?.connection.pid ?? null,
      restarts: this.#restarts,
      checks: this.#shared.checks,
      stderr: this.#context.redact(this.#stderr.text()),
      problems: this.#problems,
      ...(login !== null && { login }),
      ...(agentLogins !== null && { agentLogins }),
    };
  }

  call(request: SourceRequest): Ticket {
    if (this.#isPrivate && request.client !== null) return this.#callPrivately(request.client, request);
    const { live, interests } = this.#shared;
    if (live !== null) {
      this.#shared.used();
      if (interests.telling !== null) return this.#shared.hold(request, () => this.call(request));
      const isLeased = this.#asks && request.pinned !== true;
      return isLeased ? this.#leases.request(request) : live.connection.request(request);
    }
    const { state } = this.#states;
    if (state === 'asleep' || state === 'starting' || this.#shared.isStarting)
      return this.#callWhenUp(request, this.#shared.start());
    if (this.#isReturning) return this.#callWhenUp(request, this.#shared.nextStart());
    if (this.#canAskLogin(request)) return this.#askToLogIn(request);
    const later = this.#needsLogin ? 'Then try again' : 'Try again later';
    return failRequest(request, this.unavailable(`${this.#states.detail}. ${later}`));
  }

  #callPrivately(client: ClientChannel, request: SourceRequest): Ticket {
    if (this.config.credentials !== 'agent' || !canBeSent(request)) return this.#private.call(client, request);
    return this.#private.call(client, request, (again) => {
      const { agent = '', principal = agent } = request;
      const asked = this.#loginOf(agent, principal).then((login) => {
        if (!login.hasPage && !this.#context.asksLogins) throw new LoginMissing(login.key, login.command);
        return new Promise<void>((goOn, giveUp) => askToLogIn(request, login, { goOn, giveUp }));
      });
      return this.#goOnAfter(request, asked, again);
    });
  }

  /** The login of an agent, or of all callers. */
  async #loginOf(agent: string | null, principal: string | null): Promise<ServerLogin> {
    const { vault } = this.#context;
    const { launch } = await vault.fill(this.config);
    const login = launch.kind === 'http' ? vault.loginFor(this.config.key, launch, agent, principal) : null;
    if (login === null) throw this.unavailable(this.#states.detail);
    return login;
  }

  #canAskLogin(request: SourceRequest): boolean {
    return this.#needsLogin && this.#context.asksLogins && canBeSent(request);
  }

  /** The caller can be sent to where a person logs in. The call goes on after that. */
  #askToLogIn(request: SourceRequest): Ticket {
    const asked = this.#loginOf(null, null).then(
      (login) => new Promise<void>((goOn, giveUp) => askToLogIn(request, login, { goOn, giveUp })),
    );
    return this.#goOnAfter(request, asked, () => this.#callWhenUp(request, this.#shared.start(), false));
  }

  /** The login puts another source in the place of this one, which stays open for the calls that asked for it. */
  #goOnAfter(request: SourceRequest, asked: Promise<void>, goOn: () => Ticket): Ticket {
    let isOver = false;
    const over = () => {
      if (!isOver) this.#asking--;
      isOver = true;
    };
    this.#asking++;
    asked.then(over, over);
    const ticket = deferRequest(request, asked, goOn);
    return {
      cancel(reason) {
        over();
        ticket.cancel(reason);
      },
    };
  }

  /** The offer that the caller knows may be that of the last run, so the item is looked up again before it is called. */
  #callWhenUp(request: SourceRequest, start: Promise<Connection>, mayAsk = true): Ticket {
    this.#turn?.skip();
    // Null: somebody has to log in first, and the caller can.
    const started = start.catch((error: unknown) => {
      if (mayAsk && this.#canAskLogin(request)) return null;
      throw error;
    });
    return this.#shared.callAfter(started, request, (connection) => {
      if (connection === null) return this.#askToLogIn(request);
      const { item } = request;
      const { items } = this.offer;
      if (item !== undefined && !items.some(({ kind, name }) => kind === item.kind && name === item.name)) {
        const text = `Server "${this.config.key}" no longer has the ${item.kind} "${item.name}": it started with other ones than the last time. List the ${item.kind}s again.`;
        throw new GatewayError(item.kind === 'resource' ? 'resource_unknown' : 'item_unknown', text);
      }
      request.renew?.(items);
      // If it has ended again already, the connection refuses the call. A call does not wait a second time.
      return this.#shared.live === null ? connection.request(request) : this.call(request);
    });
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

  hurry(): void {
    this.#turn?.skip();
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
    this.#turn?.skip();
    this.#lists.clear();
    const closing = [this.#shared.close(), this.#leases.close(), this.#private.close(), this.draining.close()];
    await Promise.all(closing);
  }

  async open(keeper: ConnectionKeeper): Promise<OpenedConnection> {
    const known = keeper === this.#shared ? null : this.#handshake;
    if (keeper === this.#shared) this.#openedAt = performance.now();
    const mayProbe = known === null ? this.#mayProbe : known.era === 'modern';
    const opened = await openServer(this.config, this.#context, keeper, mayProbe);
    this.#handshake ??= opened.handshake;
    return opened;
  }

  unavailable(reason: unknown): GatewayError {
    const why = typeof reason === 'string' ? reason : messageOf(reason);
    const text = this.#context.redact(`Server "${this.config.key}" is not available: ${withoutStop(why)}.`);
    const { key: server } = this.config;
    const state = this.absence?.state ?? 'down';
    const details = {
      servers: [{ server, state, reason: this.#context.redact(why) }],
      retryAfter: retryAfterOf(state),
    };
    const code = this.#lacksDependencies ? 'dependency_error' : 'source_unavailable';
    return new NoFault(code, text, { details, cause: reason });
  }

  #opened({ connection, handshake, listed }: OpenedConnection): void {
    this.#handshake = handshake;
    this.#lacksDependencies = false;
    this.isSse = connection.isSse === true;
    const { redact } = this.#context;
    this.#problems = (connection.problems ?? []).map((one) => ({ ...one, message: redact(one.message) }));
    const { completes, subscribes, tasks } = handshake;
    this.#abilities = { completes, subscribes, tasks, asks: this.#asks };
    this.#startTime = Math.round(performance.now() - this.#openedAt);
    this.#lists.replace(listed, handshake);
    this.#isReturning = false;
    this.#states.enter('up', handshake.server);
    this.#context.started(this.config.key);
    this.#remember();
    this.#leases.admit();
  }

  #remember(): void {
    const { offer } = this;
    for (const changed of this.#definitions.compare(offer))
      this.#context.events.emit('definition', { source: this.config.key, ...changed });
    void this.#context.offers.write(this.config.launchHash, {
      offer,
      abilities: this.#abilities,
      startTime: this.#startTime,
      problems: this.#problems.map(problemText),
    });
  }

  #failed(error: unknown): void {
    // A few servers exit at a request that they do not know, so `server/discover` is not sent the next time.
    if (hasEndedEarly(error) && this.config.launch.kind === 'stdio') this.#mayProbe = !this.#mayProbe;
    this.#lacksDependencies = lacksDependencies(error);
    const reason = withoutStop(messageOf(error));
    this.#needsLogin = needsLogin(error);
    if (error instanceof SecretMissing || this.#needsLogin) this.#states.enter('locked', reason);
    else this.#states.enter(...this.#shared.restart.schedule(reason), this.#lacksDependencies);
    this.#isReturning = false;
    this.#leases.refuse(this.unavailable(`${this.#states.detail}. Try again later`));
  }

  #lost(reason: string): void {
    this.#lists.clear();
    this.#restarts++;
    const [state, detail] = this.#shared.restart.schedule(reason);
    this.#isReturning = state === 'down';
    this.#states.enter(state, detail);
    if (!this.#isReturning) this.#leases.refuse(this.unavailable(`${detail}. Try again later`));
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

  asked(isStray: boolean): void {
    this.asksAnywhere ||= isStray;
    if (!this.#asks && this.#abilities !== null) {
      this.#abilities = { ...this.#abilities, asks: true };
      this.#remember();
    }
    this.#asks = true;
    this.#leases.admit();
  }

  note(message: string): void {
    this.#context.events.emit('note', { source: this.config.key, message });
  }

  stderr(chunk: Buffer): void {
    const { isInLine } = this.#stderr;
    this.#stderr.push(chunk);
    if (this.#context.output.printed === null) this.#printed = null;
    else {
      this.#printed ??= new PrintedLines((line) => this.#printedLine(line), isInLine);
      this.#printed.push(chunk);
    }
  }

  #printedLine(line: string): void {
    const { output, redact } = this.#context;
    output.printed?.(this.config.key, redact(line));
  }
}
