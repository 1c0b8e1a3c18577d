/**
 * Connections of a server that is not shared: each client has one to itself, from its first call until it leaves. What the
 * server offers is asked elsewhere.
 */

import { backoffDelay } from '../base/backoff.ts';
import { GatewayError } from '../base/errors.ts';
import type { ServerConfig } from '../config/servers.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Keeper, Opened } from './connect.ts';
import type { Connection } from './connection.ts';
import type { Draining } from './draining.ts';
import { createHealth, HUNG, RESTARTED } from './health.ts';
import { createIdleTimer } from './idle.ts';
import { createInterests } from './interests.ts';
import type { Subscriptions } from './subscriptions.ts';
import { deferRequest } from './tickets.ts';

export interface Privates {
  call(client: ClientChannel, request: SourceRequest): Ticket;
  subscriptions(client: ClientChannel): Pick<Subscriptions, 'add' | 'remove'>;
  /** What each of them wants to hear of. */
  readonly wanted: (readonly [ClientChannel, readonly string[]])[];
  setLogLevel(level: LogLevel): void;
  /** Passes on a notification of a client with a session. */
  tell(client: ClientChannel, message: Buffer): void;
  /** The server has forgotten the session of this connection: the next call opens another. */
  forgotten(connection: Connection): void;
  /** The times after which they are stopped, or looked after, may have changed. */
  rearm(): void;
  leave(client: ClientChannel): void;
  readonly inFlight: number;
  close(): Promise<void>;
}

export interface PrivateOptions {
  config(): ServerConfig;
  open(parts: Pick<Keeper, 'client' | 'connected' | 'entered' | 'lost' | 'isClosed'>): Promise<Opened>;
  note(text: string): void;
  readonly draining: Draining;
}

/** As many as a server may have. Beyond that the one used longest ago is ended. */
const MOST = 100;

type Own = ReturnType<typeof createOwn>;

export function createPrivates(options: PrivateOptions): Privates {
  /** In the order of their last use. */
  const owns = new Map<ClientChannel, Own>();
  const ending = new Set<Promise<void>>();
  let logLevel: LogLevel | null = null;
  let closed = false;

  function ownOf(client: ClientChannel): Own {
    if (closed) throw new GatewayError('source_unavailable', `Server "${options.config().key}" is being stopped.`);
    const known = owns.get(client);
    if (known === undefined) makeRoom();
    const own = known ?? createOwn(client, options);
    if (known === undefined && logLevel !== null) own.interests.setLogLevel(logLevel);
    owns.delete(client);
    owns.set(client, own);
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

  function leave(client: ClientChannel): void {
    const own = owns.get(client);
    if (own === undefined) return;
    owns.delete(client);
    const ended = own.close().finally(() => ending.delete(ended));
    ending.add(ended);
  }

  return {
    call: (client, request) => ownOf(client).call(request),
    subscriptions: (client) => ({
      async add(uri) {
        const own = ownOf(client);
        await own.connect();
        await own.interests.subscriptions.add(uri);
      },
      remove: (uri) => owns.get(client)?.interests.subscriptions.remove(uri),
    }),
    get wanted() {
      return [...owns].map(([client, { interests }]) => [client, interests.subscriptions.uris] as const);
    },
    setLogLevel(level) {
      logLevel = level;
      for (const { interests } of owns.values()) interests.setLogLevel(level);
    },
    tell: (client, message) => owns.get(client)?.tell(message),
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
      for (const client of [...owns.keys()]) leave(client);
      await Promise.allSettled(ending);
    },
  };
}

/** What one client has. */
function createOwn(client: ClientChannel, { config, open, note, draining }: PrivateOptions) {
  let line: Opened | null = null;
  let opening: Promise<Connection> | null = null;
  /** The connection that `opening` is about. */
  let nascent: Connection | null = null;
  let closed = false;
  let failures = 0;
  let retryTimer: NodeJS.Timeout | undefined;
  const current = () => (line === null ? null : { ...line, timeout: config().timeout });
  const interests = createInterests(current);
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
    inFlight() > Number(health.isAsking) ||
    line?.connection.awaited === true ||
    interests.subscriptions.uris.length > 0;
  const idling = createIdleTimer(() => (line === null ? null : config().idleStop), isBusy, retire);

  /** Takes the connection out of charge; it finishes what it has under way. */
  function retire(): void {
    idling.disarm();
    health.disarm();
    if (line !== null) draining.add(line.connection);
    line = null;
  }

  function connect(): Promise<Connection> {
    idling.use();
    clearTimeout(retryTimer);
    if (line !== null) return Promise.resolve(line.connection);
    opening ??= open({
      client,
      isClosed: () => closed,
      connected(connection) {
        nascent = connection;
      },
      entered(opened) {
        line = opened;
        interests.renew();
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
    if (closed || interests.subscriptions.uris.length === 0) return;
    retryTimer = setTimeout(() => connect().catch(listenAgain), backoffDelay(++failures));
    retryTimer.unref();
  }

  function send(connection: Connection, request: SourceRequest): Ticket {
    return interests.hold(request, (held) => connection.request(held)) ?? connection.request(request);
  }

  return {
    interests,
    rearm,
    inFlight,
    isBusy,
    connect,
    call(request: SourceRequest): Ticket {
      idling.use();
      failures = 0;
      if (line !== null) return send(line.connection, request);
      return deferRequest(request, connect(), (connection) => send(connection, request));
    },
    tell(message: Buffer): void {
      if (line?.handshake.era === 'legacy') line.connection.notify?.(message);
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
