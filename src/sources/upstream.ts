/**
 * One configured server, kept available: started, listed, restarted with growing pauses when it dies, put to sleep when
 * idle and woken by a call. Owns one connection at a time, on which it is listed, and those that its callers need beside it.
 */

import { GatewayError, messageOf } from '../base/errors.ts';
import { EMPTY_OFFER, KINDS, type Kind, type Offer, reuseItems } from '../catalog/item.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { SourceRequest, Ticket } from '../protocol/contract.ts';
import { AttemptFailure, FORGOTTEN, type Keeper, type Opened, openServer } from './connect.ts';
import type { Connection } from './connection.ts';
import { createDraining } from './draining.ts';
import { createFreshness } from './freshness.ts';
import { type Handshake, NO_TASKS } from './handshake.ts';
import { createHealth, HUNG, RESTARTED } from './health.ts';
import { createIdleTimer } from './idle.ts';
import { createInterests } from './interests.ts';
import { createLeases } from './leases.ts';
import { listOffer, relisted } from './listing.ts';
import { passNews, passUpdate } from './news.ts';
import { createPrivates } from './private.ts';
import { RefusalRetries } from './refusals.ts';
import { createRelisting } from './relisting.ts';
import { RestartTimer } from './restart-timer.ts';
import type { ServerContext, Source } from './source.ts';
import { createStateHistory } from './state.ts';
import { createStderrTail } from './stderr-tail.ts';
import { deferRequest } from './tickets.ts';
import { SecretMissing } from './vault.ts';

/** A server that forgets this often in a row gets pauses too. */
const MAX_FORGETS = 5;

export function createSource(initial: ServerConfig, context: ServerContext): Source {
  const { events, redact, offers, eras } = context;
  let config = initial;
  /** Whether each caller has a connection to itself. A server with another answer is another one. */
  const isPrivate = initial.share === 'session';
  let handshake: Handshake | null = null;
  let connection: Connection | null = null;
  let starting: Promise<Connection> | null = null;
  /** The connection that `starting` is about. */
  let opening: Connection | null = null;
  /** The end of one that was hung: until then its successor has to wait. */
  let parting: Promise<void> | null = null;
  let offer: Offer = EMPTY_OFFER;
  let [restarts, waking] = [0, 0];
  const stderr = createStderrTail();
  const states = createStateHistory(context, () => config.key, stderr);
  const { moved } = states;
  const isClosed = () => states.state === 'closed';
  const retry = new RestartTimer(() => start().catch(() => {}), initial.launch.kind === 'folder');
  const relisting = createRelisting(() => connection === null && starting !== null, refresh);
  const freshness = createFreshness();
  const draining = createDraining();
  /** Whether it has been seen to ask things of its clients. */
  let asks = false;
  const line = () => connection && handshake && { connection, handshake, timeout: config.timeout };
  const interests = createInterests(line);
  const note = (message: string) => events.emit('note', { source: config.key, message });
  const leases = createLeases(initial.key, initial.launch.kind === 'http' ? 'http' : 'stdio', async (lost) => {
    const opened = await openAnother({ lost });
    await interests.brief({ ...opened, timeout: config.timeout });
    return opened.connection;
  });
  const privates = createPrivates({ config: () => config, open: openPrivate, note, draining });
  const health = createHealth({
    line,
    config: () => config,
    calls: () => source.inFlight,
    asks: () => asks,
    hung(which) {
      parting = which.close(RESTARTED);
      lost(which, HUNG);
    },
  });
  const isBusy = () =>
    connection!.inFlight + leases.inFlight > Number(health.isAsking) ||
    waking > 0 ||
    connection!.awaited ||
    interests.subscriptions.uris.length > 0;
  const idling = createIdleTimer(() => (connection === null ? null : config.idleStop), isBusy, sleep);
  const repeats = new RefusalRetries({
    key: () => config.key,
    isClosed,
    call,
    relist: () => refresh('tool').then(() => offer),
  });
  let mayProbe = true;
  const sleeps = () => config.idleStop !== null || config.start === 'lazy';

  function start(): Promise<Connection> {
    retry.clear();
    starting ??= open().finally(() => {
      starting = null;
    });
    return starting;
  }

  async function open(): Promise<Connection> {
    // While a failed server is tried again it stays as it is, so that one can read why.
    if (!['asleep', 'down', 'crash_loop'].includes(states.state)) moved('starting', '');
    try {
      await parting;
      return (await openServer(config, context, keeper, mayProbe)).connection;
    } catch (error) {
      const died = error instanceof AttemptFailure && error.died;
      retry.failed(died);
      // A few servers end at a question that they do not know: the next time they are not asked it.
      if (died && error.early && config.launch.kind === 'stdio') mayProbe = !mayProbe;
      const why = messageOf(error);
      if (error instanceof SecretMissing && !isClosed()) moved('locked', why);
      else if (!isClosed()) moved(...retry.schedule(why));
      throw unavailable(why);
    } finally {
      opening = null;
    }
  }

  const keeper: Keeper = {
    client: null,
    lists: true,
    isClosed,
    connected(next) {
      opening = next;
    },
    entered(opened) {
      ({ connection, handshake } = opened);
      offer = reuseItems(offer, { ...opened.listed.offer, instructions: handshake.instructions });
      freshness.note(handshake.silent, opened.listed.holds);
      retry.works();
      idling.use();
      interests.renew();
      moved('up', handshake.server);
      context.started(config.key);
      void offers.write(config.launchHash, offer);
      idling.arm();
      health.arm();
    },
    lost,
    forgotten,
    refused: (which, request, refusal) => repeats.refused(request, refusal, (again) => forgotten(which, again)),
    asked() {
      asks = true;
    },
    missed: () => KINDS.forEach(relisting.schedule),
    notification: (message) => passNews(message, source, context, relisting),
    note,
    stderr: (chunk) => stderr.push(chunk),
  };

  /** One more connection to the same server. */
  async function openAnother(parts: Partial<Keeper>): Promise<Opened> {
    const another: Keeper = { ...keeper, lists: false, connected() {}, entered() {}, ...parts };
    const mayBeModern = handshake === null ? mayProbe : handshake.era === 'modern';
    try {
      const opened = await openServer(config, context, another, mayBeModern);
      handshake ??= opened.handshake;
      return opened;
    } catch (error) {
      throw unavailable(messageOf(error));
    }
  }

  /** One for a single client. What it says about lists is not so for the others. */
  function openPrivate(parts: Partial<Keeper> & Pick<Keeper, 'client'>): Promise<Opened> {
    return openAnother({
      ...parts,
      missed() {},
      notification: (message) => passUpdate(message, source, context, parts.client),
    });
  }

  function unavailable(why: string): GatewayError {
    return new GatewayError('source_unavailable', redact(`Server "${config.key}" is not available: ${why}.`));
  }

  /** The connection broke by itself. */
  function lost(which: Connection, reason: string): void {
    if (connection !== which || isClosed()) return;
    retire(which);
    restarts++;
    moved(...retry.schedule(reason));
  }

  /** The server wants to be greeted anew. That is soon done, so its items stay, and calls wait for it as for a sleeping one. */
  function forgotten(which: Connection, refused: SourceRequest | null): Ticket | null {
    for (const others of [privates, leases]) others.forgotten(which);
    if (connection === which) {
      retire(connection);
      if (retry.failures > MAX_FORGETS) moved(...retry.schedule(FORGOTTEN));
      else {
        moved('asleep', `${FORGOTTEN}; a new one is being opened`);
        start().catch(() => {});
      }
    }
    return refused === null ? null : repeats.again(refused);
  }

  /** There is nothing to look after. */
  function rest(): void {
    idling.disarm();
    relisting.clear();
    health.disarm();
  }

  /** Takes the connection out of charge, and notes that this was not planned. */
  function retire(which: Connection): void {
    connection = null;
    rest();
    draining.add(which);
    retry.failed(true);
  }

  async function refresh(kind: Kind): Promise<void> {
    const asked = connection;
    if (asked === null || handshake === null || !handshake.kinds.includes(kind)) return;
    const deadline = Date.now() + config.startTimeout;
    try {
      const listed = await listOffer(asked, handshake, deadline, [kind]);
      if (connection !== asked) return;
      freshness.note(handshake.silent, listed.holds);
      offer = reuseItems(offer, relisted(offer, kind, listed));
      void offers.write(config.launchHash, offer);
      context.changed();
    } catch (error) {
      note(`listing again failed: ${messageOf(error)}`);
    }
  }

  function sleep(): void {
    if (connection !== null) draining.add(connection);
    connection = null;
    rest();
    retry.stopped();
    moved('asleep', 'stopped while idle; the next call starts it');
  }

  async function firstAttempt(): Promise<void> {
    // Both are files, and the start waits for both.
    const [known] = await Promise.all([offers.read(config.launchHash), eras.isLegacy(config.launchHash)]);
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
  function wake(request: SourceRequest): Ticket {
    waking++;
    const opened = start().finally(() => {
      waking--;
    });
    return deferRequest(request, opened, (opened) => opened.request(request));
  }

  async function close(): Promise<void> {
    if (isClosed()) return;
    states.close();
    retry.clear();
    rest();
    // One that is still starting is not waited for: it may hang for as long as start_timeout.
    const open = connection ?? opening;
    connection = null;
    await Promise.all([open?.close(), leases.close(), privates.close()]);
    await draining.close();
    await starting?.catch(() => {});
  }

  function call(request: SourceRequest): Ticket {
    if (isPrivate && request.client !== null) return privates.call(request.client, request);
    if (connection !== null) {
      if (config.idleStop !== null) idling.use();
      const held = interests.hold(request, call);
      if (held !== null) return held;
      return asks && request.pinned !== true ? leases.request(connection, request) : connection.request(request);
    }
    if (states.state === 'asleep' || starting !== null) return wake(request);
    const error = unavailable(`${states.detail}. Try again later`);
    queueMicrotask(() => request.sink.fail(error));
    return { cancel() {} };
  }

  const source: Source = {
    tried,
    get offer() {
      return offer;
    },
    get present() {
      // The worker of a folder is soon back: what it offers stays, and its calls are told why they fail.
      const isBack = states.state === 'down' && restarts > 0 && config.launch.kind === 'folder';
      return connection !== null || ((states.state === 'asleep' || isBack) && offer !== EMPTY_OFFER);
    },
    get inFlight() {
      return (connection?.inFlight ?? 0) + draining.inFlight + leases.inFlight + privates.inFlight + waking;
    },
    status: () => ({
      ...states.report(),
      revision: handshake?.revision ?? null,
      pid: connection?.pid ?? null,
      restarts,
      checks: health.checks,
      stderr: redact(stderr.text()),
    }),
    update(next) {
      config = next;
      idling.arm();
      health.arm();
      privates.rearm();
      if (states.state === 'asleep' && !sleeps()) void start().catch(() => {});
    },
    revive() {
      if (retry.revive() && connection === null) void start().catch(() => {});
    },
    get subscribes() {
      return handshake?.subscribes ?? false;
    },
    subscriptions: (client) =>
      isPrivate && client !== null ? privates.subscriptions(client) : interests.subscriptions,
    get wanted() {
      return [[null, interests.subscriptions.uris] as const, ...privates.wanted];
    },
    tell: privates.tell,
    leave: privates.leave,
    get completes() {
      return handshake?.completes ?? false;
    },
    get tasks() {
      return isPrivate ? NO_TASKS : (handshake?.tasks ?? NO_TASKS);
    },
    setLogLevel(level) {
      interests.setLogLevel(level);
      privates.setLogLevel(level);
    },
    freshen(kind) {
      if (connection !== null && freshness.isOver(kind)) relisting.schedule(kind);
    },
    call,
    async drain() {
      const latest = Date.now() + config.timeout;
      health.disarm();
      while (!isClosed() && source.inFlight > 0 && Date.now() < latest)
        await new Promise((resolve) => setTimeout(resolve, 20));
      await close();
    },
    close,
  };
  return source;
}
