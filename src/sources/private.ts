/**
 * The connections of a server that is not shared. Each client has one to itself, from its first call until it leaves.
 * The offer is listed on another connection, which is shared.
 */
import { GatewayError } from '../base/errors.ts';
import type { ClientChannel, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import type { Message } from '../protocol/message.ts';
import { ConnectionKeeper, type KeptServer } from './keeper.ts';
import type { ResourceSubscriptions } from './source.ts';

/** How many a server may have. Beyond that, the idle one that was used longest ago is closed. */
const MOST = 100;

export interface PrivateOptions {
  /** Whether a connection failed because nobody is logged in. */
  needsLogin(failure: unknown): boolean;
  /** The log level for a new connection. */
  logLevel(): LogLevel | null;
  /** A notification of the server to one client. */
  notification(message: Message, client: ClientChannel): void;
}

export class PrivateConnections {
  readonly #server: KeptServer;
  readonly #options: PrivateOptions;
  /** In the order of their last use. */
  readonly #keepers = new Map<ClientChannel, ConnectionKeeper>();
  /** The agents of clients that have called, and the owners of their sessions. */
  readonly #owners = new WeakMap<ClientChannel, Pick<SourceRequest, 'agent' | 'principal'>>();
  readonly #closing = new Set<Promise<void>>();
  #closed = false;

  constructor(server: KeptServer, options: PrivateOptions) {
    this.#server = server;
    this.#options = options;
  }

  get inFlight(): number {
    let sum = 0;
    for (const { inFlight } of this.#keepers.values()) sum += inFlight;
    return sum;
  }

  /** The resources that each client has subscribed to. */
  get subscribed(): (readonly [ClientChannel, readonly string[]])[] {
    return [...this.#keepers].map(([client, { interests }]) => [client, interests.subscriptions.uris] as const);
  }

  /** `askToLogIn` is for a caller who can be asked, if nobody is logged in for it. It calls `again` after that. */
  call(client: ClientChannel, request: SourceRequest, askToLogIn?: (again: () => Ticket) => Ticket): Ticket {
    const { agent, principal } = request;
    if (agent !== undefined && !this.#owners.has(client)) this.#owners.set(client, { agent, principal });
    const keeper = this.#keeperOf(client);
    if (askToLogIn === undefined || keeper.live !== null) return keeper.call(request);
    // Null: somebody has to log in first.
    const started = keeper.start().catch((error: unknown) => {
      if (error instanceof GatewayError && this.#options.needsLogin(error.cause)) return null;
      throw error;
    });
    return keeper.callAfter(started, request, (connection) =>
      connection === null ? askToLogIn(() => this.#keeperOf(client).call(request)) : keeper.call(request),
    );
  }

  subscriptions(client: ClientChannel): ResourceSubscriptions {
    return {
      add: async (uri) => {
        const keeper = this.#keeperOf(client);
        await keeper.start();
        await keeper.interests.subscriptions.add(uri);
      },
      remove: (uri) => this.#keepers.get(client)?.interests.subscriptions.remove(uri),
    };
  }

  setLogLevel(level: LogLevel): void {
    for (const { interests } of this.#keepers.values()) interests.setLogLevel(level);
  }

  /** Passes on a notification of a client with a session. */
  tell(client: ClientChannel, message: Buffer): void {
    const live = this.#keepers.get(client)?.live;
    if (live?.handshake.era === 'legacy') live.connection.notify?.(message);
  }

  /** Intervals may have changed. */
  watch(): void {
    for (const keeper of this.#keepers.values()) keeper.watch();
  }

  leave(client: ClientChannel): void {
    const keeper = this.#keepers.get(client);
    if (keeper === undefined) return;
    this.#keepers.delete(client);
    const closed = keeper.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const client of [...this.#keepers.keys()]) this.leave(client);
    await Promise.allSettled(this.#closing);
  }

  #keeperOf(client: ClientChannel): ConnectionKeeper {
    const { key } = this.#server.config;
    if (this.#closed) throw new GatewayError('source_unavailable', `Server "${key}" is being stopped.`);
    const known = this.#keepers.get(client);
    if (known === undefined) this.#makeRoom();
    const keeper = known ?? this.#create(client);
    this.#keepers.delete(client);
    this.#keepers.set(client, keeper);
    return keeper;
  }

  #create(client: ClientChannel): ConnectionKeeper {
    // The next call opens another connection, but subscriptions must not wait for a call.
    const listenAgain = (reason: string) => {
      if (keeper.interests.subscriptions.uris.length > 0) keeper.restart.schedule(reason);
    };
    const keeper = new ConnectionKeeper(this.#server, {
      client,
      agent: () => this.#owners.get(client)?.agent ?? null,
      principal: () => this.#owners.get(client)?.principal ?? null,
      lists: false,
      idleStop: () => this.#server.config.idleStop,
      asks: () => true,
      notification: (message) => this.#options.notification(message, client),
      failed: () => listenAgain('failed'),
      forgotten: () => listenAgain('forgotten'),
      lost: (reason) => {
        this.#server.note(`the connection of one client has ended: ${reason}`);
        listenAgain(reason);
      },
    });
    const level = this.#options.logLevel();
    if (level !== null) keeper.interests.setLogLevel(level);
    return keeper;
  }

  #makeRoom(): void {
    if (this.#keepers.size < MOST) return;
    const [idle] = [...this.#keepers].find(([, { isBusy }]) => !isBusy) ?? [];
    if (idle === undefined) {
      const text = `Server "${this.#server.config.key}" is busy with ${MOST} clients, each on a connection of its own. Try again later.`;
      throw new GatewayError('source_busy', text);
    }
    this.leave(idle);
  }
}
