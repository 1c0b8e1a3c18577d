/**
 * One configured server, kept available: started, listed, restarted with growing pauses when it dies, put to sleep when
 * idle and woken by a call. Owns at most one connection at a time.
 */
import { EMPTY_OFFER, type Kind, kindWords, type Offer, reuseItems } from '../catalog/item.ts';
import type { LimitsConfig, ServerConfig } from '../config/config.ts';
import { GatewayError, messageOf } from '../errors.ts';
import type { Events } from '../events.ts';
import type { OfferStore } from '../store/offers.ts';
import type { Connection, ConnectionEvents, Request, Ticket } from './connection.ts';
import { createFading } from './fading.ts';
import { openHttp } from './http.ts';
import { changedKinds, createRelisting } from './relisting.ts';
import { type Greeting, greet, listOffer } from './session.ts';
import { openStdio } from './stdio.ts';
import { createTail } from './tail.ts';

/** `asleep`: not running, but listed and started by the next call. `down`: failed, tried again after a pause. */
export type SourceState = 'starting' | 'up' | 'asleep' | 'down' | 'closed';

export interface SourceStatus {
  readonly state: SourceState;
  /** Why it is down, or what it calls itself when it is up. */
  readonly detail: string;
  readonly revision: string | null;
  readonly pid: number | null;
  readonly restarts: number;
  /** The end of what the server wrote to its standard error. */
  readonly stderr: string;
}

export interface Source {
  readonly offer: Offer;
  /** Whether its items are listed. */
  readonly present: boolean;
  readonly inFlight: number;
  /** Resolves when the first attempt is over, well or not. Never rejects. */
  readonly tried: Promise<void>;
  status(): SourceStatus;
  /** New settings for the same launch: nothing is restarted. */
  update(config: ServerConfig): void;
  call(request: Request): Ticket;
  /** Finishes the calls under way, then closes. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

export interface SourceContext {
  readonly events: Events;
  readonly offers: OfferStore;
  readonly limits: LimitsConfig;
  /** The offer or the presence changed. */
  changed(): void;
}

const RETRY = { first: 250, most: 30_000 };
/** A server that stayed up this long is not in a crash loop. */
const STEADY = 30_000;
const FORGOTTEN = 'has forgotten the session';
/** A server that forgets this often in a row gets pauses too. */
const MAX_FORGETS = 5;

export function createSource(initial: ServerConfig, context: SourceContext): Source {
  const { events, offers } = context;
  let config = initial;
  let state: SourceState = 'starting';
  let detail = '';
  let greeting: Greeting | null = null;
  let connection: Connection | null = null;
  let starting: Promise<Connection> | null = null;
  /** The connection that `starting` is about. */
  let opening: Connection | null = null;
  let offer: Offer = EMPTY_OFFER;
  let failures = 0;
  let restarts = 0;
  let upSince = 0;
  let retryTimer: NodeJS.Timeout | undefined;
  let idleTimer: NodeJS.Timeout | undefined;
  let lastUse = Date.now();
  let waking = 0;
  const relisting = createRelisting(() => connection === null && starting !== null, refresh);
  const fading = createFading();
  /** Requests that have been asked in a second session; there is no third. */
  const repeated = new WeakSet<Request>();
  const stderr = createTail();

  const moved = (next: SourceState, why: string) => {
    state = next;
    detail = why;
    // What the server said last is for the operator's log only: it may hold anything, and callers read `detail`.
    const said = next === 'down' ? stderr.lastLine() : '';
    events.emit('source', { source: config.key, state, detail: said === '' ? why : `${why} (it said: ${said})` });
    context.changed();
  };
  const isClosed = () => state === 'closed';
  const sleeps = () => config.idleStop !== null || config.start === 'lazy';

  function start(): Promise<Connection> {
    clearTimeout(retryTimer);
    starting ??= open().finally(() => {
      starting = null;
    });
    return starting;
  }

  async function open(): Promise<Connection> {
    // While a failed server is tried again it stays `down`, so that the reason can be read.
    if (state !== 'asleep' && state !== 'down') moved('starting', '');
    let opened: Connection | null = null;
    let died: string | null = null;
    try {
      const deadline = Date.now() + config.startTimeout;
      opened = await connect({
        closed: (reason) => {
          died = reason;
          lost(opened, reason);
        },
        forgotten: (refused) => {
          if (opening === null || opening !== opened) return forgotten(opened, refused);
          died = FORGOTTEN;
          return null;
        },
        note: (message) => events.emit('note', { source: config.key, message }),
        notification: (message) => changedKinds(message.method).forEach(relisting.schedule),
      });
      opening = opened;
      if (died !== null) throw new GatewayError('source_unavailable', died);
      if (isClosed()) throw new GatewayError('source_unavailable', 'closed');
      greeting = await greet(opened, config.startTimeout);
      const listed = await listOffer(opened, greeting.kinds, deadline);
      if (died !== null) throw new GatewayError('source_unavailable', died);
      if (isClosed()) throw new GatewayError('source_unavailable', 'closed');
      connection = opened;
      offer = reuseItems(offer, listed);
      upSince = Date.now();
      lastUse = upSince;
      moved('up', greeting.server);
      void offers.write(config.launchHash, offer);
      armIdle();
      return opened;
    } catch (error) {
      await opened?.close();
      failures++;
      const reason = died ?? startProblem(error);
      if (!isClosed()) retryLater(reason);
      throw new GatewayError('source_unavailable', `Server "${config.key}" is not available: ${reason}.`);
    } finally {
      opening = null;
    }
  }

  function startProblem(error: unknown): string {
    if (!(error instanceof GatewayError) || error.code !== 'source_timeout') return messageOf(error);
    return `did not start and list its tools within ${config.startTimeout / 1000} s; raise start_timeout if it needs longer`;
  }

  async function connect(connectionEvents: ConnectionEvents): Promise<Connection> {
    const { launch, key } = config;
    const options = { source: key, maxMessage: context.limits.message };
    if (launch.kind === 'http') return openHttp(launch, options, connectionEvents);
    return openStdio(launch, { ...options, stderr: (chunk) => stderr.push(chunk) }, connectionEvents);
  }

  /** The connection broke by itself. */
  function lost(which: Connection | null, reason: string): void {
    if (connection === null || connection !== which || isClosed()) return;
    retire(which);
    restarts++;
    retryLater(reason);
  }

  /** The server wants to be greeted anew. That is soon done, so its items stay, and calls wait for it as for a sleeping one. */
  function forgotten(which: Connection | null, refused: Request | null): Ticket | null {
    if (connection !== null && connection === which) {
      retire(connection);
      if (failures > MAX_FORGETS) retryLater(FORGOTTEN);
      else {
        moved('asleep', `${FORGOTTEN}; a new one is being opened`);
        start().catch(() => {});
      }
    }
    if (refused === null || repeated.has(refused) || isClosed()) return null;
    repeated.add(refused);
    return call(refused);
  }

  /** Takes the connection out of charge, and notes that this was not planned. */
  function retire(which: Connection): void {
    connection = null;
    clearTimeout(idleTimer);
    relisting.clear();
    fading.add(which);
    if (Date.now() - upSince > STEADY) failures = 0;
    failures++;
  }

  function retryLater(reason: string): void {
    const pause = Math.min(RETRY.first * 2 ** (failures - 1), RETRY.most) * (0.75 + Math.random() / 2);
    moved('down', reason);
    retryTimer = setTimeout(() => start().catch(() => {}), pause);
    retryTimer.unref();
  }

  async function refresh(kind: Kind): Promise<void> {
    const asked = connection;
    if (asked === null || greeting === null) return;
    if (!greeting.kinds.includes(kind)) return;
    try {
      const listed = await listOffer(asked, [kind], Date.now() + config.startTimeout);
      if (connection !== asked) return;
      const others = offer.items.filter((item) => item.kind !== kind);
      const { method } = kindWords[kind];
      const problems = offer.problems.filter((problem) => !problem.startsWith(method)).concat(listed.problems);
      offer = reuseItems(offer, { items: [...others, ...listed.items], problems });
      void offers.write(config.launchHash, offer);
      context.changed();
    } catch (error) {
      events.emit('note', { source: config.key, message: `listing again failed: ${messageOf(error)}` });
    }
  }

  function armIdle(): void {
    clearTimeout(idleTimer);
    const { idleStop } = config;
    if (idleStop === null || connection === null) return;
    const idle = Date.now() - lastUse;
    const busy = connection.inFlight > 0 || waking > 0;
    if (!busy && idle >= idleStop) {
      sleep();
      return;
    }
    idleTimer = setTimeout(armIdle, busy ? idleStop : idleStop - idle);
    idleTimer.unref();
  }

  function sleep(): void {
    if (connection !== null) fading.add(connection);
    connection = null;
    relisting.clear();
    failures = 0;
    moved('asleep', 'stopped while idle; the next call starts it');
  }

  async function firstAttempt(): Promise<void> {
    const known = await offers.read(config.launchHash);
    if (known !== null && offer === EMPTY_OFFER) offer = known;
    if (isClosed()) return;
    if (config.start === 'lazy' && known !== null) {
      moved('asleep', 'not started yet; the next call starts it');
      return;
    }
    await start().catch(() => {});
  }
  const tried = firstAttempt();

  /** A call that has to wake the server first. */
  function wake(request: Request): Ticket {
    let cancelled = false;
    let ticket: Ticket | null = null;
    waking++;
    start()
      .then(
        (opened) => {
          if (!cancelled) ticket = opened.request(request);
        },
        (error: GatewayError) => {
          if (!cancelled) request.sink.fail(error);
        },
      )
      .finally(() => {
        waking--;
      });
    return {
      cancel(reason) {
        cancelled = true;
        ticket?.cancel(reason);
      },
    };
  }

  async function close(): Promise<void> {
    if (isClosed()) return;
    state = 'closed';
    clearTimeout(retryTimer);
    clearTimeout(idleTimer);
    relisting.clear();
    // One that is still starting is not waited for: it may hang for as long as start_timeout.
    const open = connection ?? opening;
    connection = null;
    await Promise.all([open?.close(), fading.close()]);
    await starting?.catch(() => {});
  }

  function call(request: Request): Ticket {
    if (connection !== null) {
      if (config.idleStop !== null) lastUse = Date.now();
      return connection.request(request);
    }
    if (state === 'asleep' || starting !== null) return wake(request);
    const error = new GatewayError(
      'source_unavailable',
      `Server "${config.key}" is not available: ${detail}. Try again later.`,
    );
    queueMicrotask(() => request.sink.fail(error));
    return { cancel() {} };
  }

  return {
    tried,
    get offer() {
      return offer;
    },
    get present() {
      return connection !== null || (state === 'asleep' && offer !== EMPTY_OFFER);
    },
    get inFlight() {
      return (connection?.inFlight ?? 0) + fading.inFlight + waking;
    },
    status: () => ({
      state,
      detail,
      revision: greeting?.revision ?? null,
      pid: connection?.pid ?? null,
      restarts,
      stderr: stderr.text(),
    }),
    update(next) {
      config = next;
      armIdle();
      if (state === 'asleep' && !sleeps()) void start().catch(() => {});
    },
    call,
    async drain() {
      const latest = Date.now() + config.timeout;
      while (!isClosed() && this.inFlight > 0 && Date.now() < latest)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await close();
    },
    close,
  };
}
