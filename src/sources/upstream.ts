/**
 * One configured server, kept available: started, listed, restarted with growing pauses when it dies, put to sleep when
 * idle and woken by a call. Owns at most one connection at a time.
 */
import { EMPTY_OFFER, KINDS, type Kind, kindWords, type Offer, reuseItems } from '../catalog/item.ts';
import type { ServerConfig } from '../config/config.ts';
import { GatewayError, messageOf } from '../errors.ts';
import { AttemptFailure, FORGOTTEN, type Keeper, openServer } from './attempt.ts';
import type { Connection, Refusal, Request, Ticket } from './connection.ts';
import { createFading } from './fading.ts';
import { createFreshness } from './freshness.ts';
import { type Greeting, NO_TASKS } from './greeting.ts';
import { later } from './later.ts';
import { createLeases } from './leases.ts';
import { listOffer } from './listing.ts';
import { passNews } from './news.ts';
import {
  CAPABILITY_MISSING,
  capabilityMissing,
  HEADER_MISMATCH,
  REVISION_UNSUPPORTED,
  refusalText,
} from './refusal.ts';
import { createRelisting } from './relisting.ts';
import { retryPause } from './retry.ts';
import type { Source, SourceContext, SourceState } from './source.ts';
import { createTail } from './tail.ts';
import { createWishes } from './wishes.ts';

/** A server that stayed up this long is not in a crash loop. */
const STEADY = 30_000;
/** A server that forgets this often in a row gets pauses too. */
const MAX_FORGETS = 5;

export function createSource(initial: ServerConfig, context: SourceContext): Source {
  const { events, offers, verdicts } = context;
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
  const freshness = createFreshness();
  const fading = createFading();
  /** Whether it has been seen to ask things of its clients. */
  let asks = false;
  const wishes = createWishes(() =>
    connection === null || greeting === null ? null : { connection, greeting, timeout: config.timeout },
  );
  const leases = createLeases(initial.key, openAnother);
  /** Requests that have been asked in a second session; there is no third. */
  const repeated = new WeakSet<Request>();
  let mayProbe = true;
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
    try {
      return (await openServer(config, context.limits.message, verdicts, keeper, mayProbe)).connection;
    } catch (error) {
      failures++;
      // A few servers end at a question that they do not know: the next time they are not asked it.
      const fled = error instanceof AttemptFailure && error.early && error.died && config.launch.kind === 'stdio';
      if (fled) mayProbe = !mayProbe;
      if (!isClosed()) retryLater(messageOf(error));
      throw new GatewayError('source_unavailable', `Server "${config.key}" is not available: ${messageOf(error)}.`);
    } finally {
      opening = null;
    }
  }

  const keeper: Keeper = {
    isClosed,
    connected(next) {
      opening = next;
    },
    entered(opened) {
      ({ connection, greeting } = opened);
      offer = reuseItems(offer, { ...opened.listed.offer, instructions: greeting.instructions });
      freshness.note(greeting.silent, opened.listed.holds);
      upSince = Date.now();
      lastUse = upSince;
      wishes.renew();
      moved('up', greeting.server);
      void offers.write(config.launchHash, offer);
      armIdle();
    },
    lost,
    forgotten,
    refused,
    asked() {
      asks = true;
    },
    missed: () => KINDS.forEach(relisting.schedule),
    notification: (message) => passNews(message, source, context, relisting),
    note: (message) => events.emit('note', { source: config.key, message }),
    stderr: (chunk) => stderr.push(chunk),
  };

  /** One more process of the same server. */
  async function openAnother(lost: (which: Connection) => void): Promise<Connection> {
    const another: Keeper = { ...keeper, connected() {}, entered() {}, lost };
    const mayBeModern = greeting?.era === 'modern';
    return (await openServer(config, context.limits.message, verdicts, another, mayBeModern)).connection;
  }

  /** The connection broke by itself. */
  function lost(which: Connection, reason: string): void {
    if (connection !== which || isClosed()) return;
    retire(which);
    restarts++;
    retryLater(reason);
  }

  /** The server wants to be greeted anew. That is soon done, so its items stay, and calls wait for it as for a sleeping one. */
  function forgotten(which: Connection, refused: Request | null): Ticket | null {
    if (connection === which) {
      retire(connection);
      if (failures > MAX_FORGETS) retryLater(FORGOTTEN);
      else {
        moved('asleep', `${FORGOTTEN}; a new one is being opened`);
        start().catch(() => {});
      }
    }
    return refused === null ? null : again(refused);
  }

  function again(request: Request): Ticket | null {
    if (repeated.has(request) || isClosed()) return null;
    repeated.add(request);
    return call(request);
  }

  /** The server does not take a request as we sent it: our knowledge of it may be old, or the caller may lack something. */
  function refused(which: Connection, request: Request, { code, data }: Refusal): Ticket | null {
    if (code === CAPABILITY_MISSING) {
      request.sink.fail(capabilityMissing(config.key, data));
      return null;
    }
    const first = !repeated.has(request);
    if (first && code === HEADER_MISMATCH && request.method === 'tools/call') {
      const retry = () => {
        request.renew(offer);
        return again(request) ?? giveUp(request, code);
      };
      return later(refresh('tool'), retry, (error) => request.sink.fail(error));
    }
    const isOld = first && code === REVISION_UNSUPPORTED;
    return (isOld ? forgotten(which, request) : null) ?? giveUp(request, code);
  }

  function giveUp(request: Request, code: number): null {
    request.sink.fail(new GatewayError('source_broken', refusalText(config.key, code)));
    return null;
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
    moved('down', reason);
    retryTimer = setTimeout(() => start().catch(() => {}), retryPause(failures));
    retryTimer.unref();
  }

  async function refresh(kind: Kind): Promise<void> {
    const asked = connection;
    if (asked === null || greeting === null) return;
    if (!greeting.kinds.includes(kind)) return;
    const deadline = Date.now() + config.startTimeout;
    try {
      const { offer: listed, holds, failed } = await listOffer(asked, greeting, deadline, [kind]);
      if (connection !== asked) return;
      freshness.note(greeting.silent, holds);
      const others = offer.items.filter((item) => item.kind !== kind);
      const { method } = kindWords[kind];
      const problems = offer.problems.filter((problem) => !problem.startsWith(method)).concat(listed.problems);
      // What it does not list for once is not gone.
      const items = failed.length > 0 ? offer.items : [...others, ...listed.items];
      offer = reuseItems(offer, { ...offer, items, problems });
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
    const busy = connection.inFlight + leases.inFlight > 0 || waking > 0;
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
    // Both are files, and the start waits for both.
    const [known] = await Promise.all([offers.read(config.launchHash), verdicts.isLegacy(config.launchHash)]);
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
    waking++;
    const opened = start().finally(() => {
      waking--;
    });
    return later(opened, (opened) => opened.request(request), request.sink.fail.bind(request.sink));
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
    await Promise.all([open?.close(), fading.close(), leases.close()]);
    await starting?.catch(() => {});
  }

  function call(request: Request): Ticket {
    if (connection !== null) {
      if (config.idleStop !== null) lastUse = Date.now();
      const held = wishes.hold(request, call);
      if (held !== null) return held;
      return asks && request.pinned !== true ? leases.request(connection, request) : connection.request(request);
    }
    if (state === 'asleep' || starting !== null) return wake(request);
    const error = new GatewayError(
      'source_unavailable',
      `Server "${config.key}" is not available: ${detail}. Try again later.`,
    );
    queueMicrotask(() => request.sink.fail(error));
    return { cancel() {} };
  }

  const source: Source = {
    tried,
    get offer() {
      return offer;
    },
    get present() {
      return connection !== null || (state === 'asleep' && offer !== EMPTY_OFFER);
    },
    get inFlight() {
      return (connection?.inFlight ?? 0) + fading.inFlight + leases.inFlight + waking;
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
    get subscribes() {
      return greeting?.subscribes ?? false;
    },
    subscriptions: wishes.subscriptions,
    get completes() {
      return greeting?.completes ?? false;
    },
    get tasks() {
      return greeting?.tasks ?? NO_TASKS;
    },
    setLogLevel: wishes.setLogLevel,
    freshen(kind) {
      if (connection !== null && freshness.isOver(kind)) relisting.schedule(kind);
    },
    call,
    async drain() {
      const latest = Date.now() + config.timeout;
      while (!isClosed() && source.inFlight > 0 && Date.now() < latest)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await close();
    },
    close,
  };
  return source;
}
