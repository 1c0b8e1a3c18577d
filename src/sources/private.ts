/**
 * Connections of a server that is not shared: each client has one to itself, from its first call until it leaves. What the
 * server offers is asked elsewhere.
 */
import type { ServerConfig } from '../config/config.ts';
import { GatewayError } from '../errors.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Keeper, Opened } from './attempt.ts';
import type { Connection, Request, Ticket } from './connection.ts';
import type { Fading } from './fading.ts';
import type { Guest } from './guest.ts';
import { createHealth, HUNG, RESTARTED } from './health.ts';
import { createIdling } from './idling.ts';
import { later } from './later.ts';
import { retryPause } from './retry.ts';
import type { Subscriptions } from './subscriptions.ts';
import { createWishes } from './wishes.ts';

export interface Privates {
  call(guest: Guest, request: Request): Ticket;
  subscriptions(guest: Guest): Pick<Subscriptions, 'add' | 'remove'>;
  /** What each of them wants to hear of. */
  readonly wanted: (readonly [Guest, readonly string[]])[];
  setLogLevel(level: LogLevel): void;
  /** Passes on a notification of a client with a session. */
  tell(guest: Guest, message: Buffer): void;
  /** The server has forgotten the session of this connection: the next call opens another. */
  forgotten(connection: Connection): void;
  /** The times after which they are stopped, or looked after, may have changed. */
  rearm(): void;
  leave(guest: Guest): void;
  readonly inFlight: number;
  close(): Promise<void>;
}

export interface PrivateOptions {
  config(): ServerConfig;
  open(parts: Pick<Keeper, 'guest' | 'connected' | 'entered' | 'lost' | 'isClosed'>): Promise<Opened>;
  note(text: string): void;
  readonly fading: Fading;
}

/** As many as a server may have. Beyond that the one used longest ago is ended. */
const MOST = 100;

type Own = ReturnType<typeof createOwn>;

export function createPrivates(options: PrivateOptions): Privates {
  /** In the order of their last use. */
  const owns = new Map<Guest, Own>();
  const ending = new Set<Promise<void>>();
  let logLevel: LogLevel | null = null;
  let closed = false;

  function ownOf(guest: Guest): Own {
    if (closed) throw new GatewayError('source_unavailable', `Server "${options.config().key}" is being stopped.`);
    const known = owns.get(guest);
    if (known === undefined) makeRoom();
    const own = known ?? createOwn(guest, options);
    if (known === undefined && logLevel !== null) own.wishes.setLogLevel(logLevel);
    owns.delete(guest);
    owns.set(guest, own);
    return own;
  }

  function makeRoom(): void {
    if (owns.size < MOST) return;
    const [idle] = [...owns].find(([, { isBusy }]) => !isBusy()) ?? [];
    if (idle === undefined) {
      const text = `Server "${options.config().key}" is busy with ${MOST} clients, each on a connection of its own. Try again later.`;
      throw new GatewayError('source_busy', text);
    }
    leave(idle);
  }

  function leave(guest: Guest): void {
    const own = owns.get(guest);
    if (own === undefined) return;
    owns.delete(guest);
    const ended = own.close().finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    call: (guest, request) => ownOf(guest).call(request),
    subscriptions: (guest) => ({
      async add(uri) {
        const own = ownOf(guest);
        await own.connect();
        await own.wishes.subscriptions.add(uri);
      },
      remove: (uri) => owns.get(guest)?.wishes.subscriptions.remove(uri),
    }),
    get wanted() {
      return [...owns].map(([guest, { wishes }]) => [guest, wishes.subscriptions.uris] as const);
    },
    setLogLevel(level) {
      logLevel = level;
      for (const { wishes } of owns.values()) wishes.setLogLevel(level);
    },
    tell: (guest, message) => owns.get(guest)?.tell(message),
    forgotten(connection) {
      for (const own of owns.values()) own.forgotten(connection);
    },
    rearm() {
      for (const { rearm } of owns.values()) rearm();
    },
    leave,
    get inFlight() {
      let sum = 0;
      for (const { inFlight } of owns.values()) sum += inFlight();
      return sum;
    },
    async close() {
      closed = true;
      for (const guest of [...owns.keys()]) leave(guest);
      await Promise.allSettled(ending);
    },
  };
}

/** What one client has. */
function createOwn(guest: Guest, { config, open, note, fading }: PrivateOptions) {
  let line: Opened | null = null;
  let opening: Promise<Connection> | null = null;
  /** The connection that `opening` is about. */
  let nascent: Connection | null = null;
  let closed = false;
  let failures = 0;
  let retryTimer: NodeJS.Timeout | undefined;
  const current = () => (line === null ? null : { ...line, timeout: config().timeout });
  const wishes = createWishes(current);
  const inFlight = () => (line?.connection.inFlight ?? 0) + (opening === null ? 0 : 1);
  const health = createHealth({
    line: current,
    config,
    calls: inFlight,
    asks: () => true,
    hung(which) {
      void which.close(RESTARTED);
      lost(which, HUNG);
    },
  });
  const isBusy = () =>
    inFlight() > Number(health.isAsking) || line?.connection.awaited === true || wishes.subscriptions.uris.length > 0;
  const idling = createIdling(() => (line === null ? null : config().idleStop), isBusy, retire);

  /** Takes the connection out of charge; it finishes what it has under way. */
  function retire(): void {
    idling.disarm();
    health.disarm();
    if (line !== null) fading.add(line.connection);
    line = null;
  }

  function connect(): Promise<Connection> {
    idling.use();
    clearTimeout(retryTimer);
    if (line !== null) return Promise.resolve(line.connection);
    opening ??= open({
      guest,
      isClosed: () => closed,
      connected(connection) {
        nascent = connection;
      },
      entered(opened) {
        line = opened;
        wishes.renew();
        rearm();
      },
      lost,
    })
      .then(({ connection }) => connection)
      .finally(() => {
        opening = null;
        nascent = null;
      });
    return opening;
  }

  function lost(which: Connection, reason: string): void {
    if (line?.connection !== which || closed) return;
    note(`the connection of one client has ended: ${reason}`);
    retire();
    listenAgain();
  }

  function rearm(): void {
    idling.arm();
    health.arm();
  }

  /** The next call opens another; where there is something to hear of, nobody waits for that. */
  function listenAgain(): void {
    if (closed || wishes.subscriptions.uris.length === 0) return;
    retryTimer = setTimeout(() => connect().catch(listenAgain), retryPause(++failures));
    retryTimer.unref();
  }

  function send(connection: Connection, request: Request): Ticket {
    return wishes.hold(request, (held) => connection.request(held)) ?? connection.request(request);
  }

  return {
    wishes,
    rearm,
    inFlight,
    isBusy,
    connect,
    call(request: Request): Ticket {
      idling.use();
      failures = 0;
      if (line !== null) return send(line.connection, request);
      return later(
        connect(),
        (connection) => send(connection, request),
        (error) => request.sink.fail(error),
      );
    },
    tell(message: Buffer): void {
      if (line?.greeting.era === 'legacy') line.connection.notify(message);
    },
    forgotten(connection: Connection): void {
      if (line?.connection !== connection) return;
      retire();
      listenAgain();
    },
    async close(): Promise<void> {
      closed = true;
      idling.disarm();
      health.disarm();
      clearTimeout(retryTimer);
      const connection = line?.connection ?? nascent;
      line = null;
      await connection?.close();
      await opening?.catch(() => {});
    },
  };
}
