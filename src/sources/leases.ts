/**
 * Further processes of a server that asks its client questions, or further connections to it, so that every question
 * has one addressee. A call whose caller can be asked has a connection to itself. Calls whose callers cannot be asked
 * share one.
 */
import { GatewayError } from '../base/errors.ts';
import type { Sink, SourceRequest, Ticket } from '../protocol/contract.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { isAskable } from '../protocol/question.ts';
import type { Connection } from './connection.ts';
import { ConnectionKeeper, type KeeperRole, type KeptServer } from './keeper.ts';
import { failRequest } from './tickets.ts';

/** How many a server may have, including the first. Over HTTP they are only connections, not processes. */
const MOST = { stdio: 4, http: 16 };
const IDLE = 60_000;
/** A client that was asked something has at least this long to come back with the answer. */
const PATIENCE = 5_000;

export class Leases {
  readonly #server: KeptServer;
  readonly #primary: ConnectionKeeper;
  /** How leased connections handle notifications: as the primary one does. */
  readonly #role: Pick<KeeperRole, 'notification' | 'missed'>;
  readonly #extras = new Set<ConnectionKeeper>();
  /** The caller that each of them works for, or worked for last. */
  readonly #sinks = new WeakMap<ConnectionKeeper, Sink>();
  /** The connection that is being opened for all calls whose callers cannot be asked. */
  #shared: ConnectionKeeper | null = null;

  constructor(server: KeptServer, primary: ConnectionKeeper, role: Pick<KeeperRole, 'notification' | 'missed'>) {
    this.#server = server;
    this.#primary = primary;
    this.#role = role;
  }

  get inFlight(): number {
    let sum = 0;
    for (const { inFlight } of this.#extras) sum += inFlight;
    return sum;
  }

  setLogLevel(level: LogLevel): void {
    for (const { interests } of this.#extras) interests.setLogLevel(level);
  }

  /** Sends the request on a connection on which a question cannot be meant for another call. */
  request(request: SourceRequest): Ticket {
    if (!isAskable(request.sink)) return this.#requestShared(request);
    const free = this.#find(({ asking }) => asking === 0);
    if (free !== undefined) return this.#lease(free, request);
    if (this.#hasRoom || this.#makeRoom()) return this.#lease(this.#add(), request);
    const text = `Server "${this.#server.config.key}" is busy with ${this.#most} calls that may ask something back. Try again later.`;
    return failRequest(request, new GatewayError('source_busy', text));
  }

  /** For a call whose caller cannot be asked: uses a connection that has no callers who can be asked. */
  #requestShared(request: SourceRequest): Ticket {
    const calm = this.#find(({ askable }) => askable === 0);
    if (calm !== undefined) return calm.call(request);
    if (this.#shared === null && this.#hasRoom) this.#openShared();
    // If there is no room, the addressee of a question is uncertain, and questions are refused. The call is still made.
    return (this.#shared ?? this.#primary).call(request);
  }

  #openShared(): void {
    const keeper = this.#add();
    this.#shared = keeper;
    const done = () => {
      this.#shared = null;
    };
    keeper
      .start()
      .then(() => keeper.interests.telling)
      .then(done, done);
  }

  #lease(keeper: ConnectionKeeper, request: SourceRequest): Ticket {
    this.#sinks.set(keeper, request.sink);
    return keeper.call(request);
  }

  #add(): ConnectionKeeper {
    const drop = () => void this.#extras.delete(keeper);
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

  get #most(): number {
    return MOST[this.#server.config.launch.kind === 'http' ? 'http' : 'stdio'];
  }

  get #hasRoom(): boolean {
    return this.#extras.size + 1 < this.#most;
  }

  /**
   * Closes a connection that only has abandoned calls. If there is none, closes the one whose caller was asked
   * something and has been away longest: it may never come back, and other calls would wait for it.
   */
  #makeRoom(): boolean {
    const awaySince = (keeper: ConnectionKeeper) => this.#sinks.get(keeper)?.awaySince ?? Number.POSITIVE_INFINITY;
    const idle = [...this.#extras].find(({ live, inFlight }) => inFlight === 0 && live?.connection.awaited === false);
    const [longest] = [...this.#extras].sort((a, b) => awaySince(a) - awaySince(b));
    const closed = idle ?? longest;
    if (closed === undefined || (idle === undefined && Date.now() - awaySince(closed) < PATIENCE)) return false;
    this.#extras.delete(closed);
    void closed.close();
    return true;
  }

  async close(): Promise<void> {
    const all = [...this.#extras];
    this.#extras.clear();
    await Promise.allSettled(all.map((keeper) => keeper.close()));
  }
}
