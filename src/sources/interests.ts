/** What callers want in addition to calls: a log level, and changes in resources. Each new connection is told again. */
import { GatewayError } from '../base/errors.ts';
import type { LogLevel } from '../protocol/levels.ts';
import { ask } from './ask.ts';
import type { LiveConnection } from './handshake.ts';
import { listenRequest } from './listening.ts';

/** Calls wait at most this long for the server to accept the log level. */
const TELLING = 1_000;

const ignore = () => {};

export class Interests {
  readonly subscriptions: Subscriptions;
  /** Resolves when the server has been told the log level; null while there is nothing to wait for. */
  telling: Promise<void> | null = null;
  /** The log level that the server is sent; null if no caller has asked for one. */
  logLevel: LogLevel | null = null;
  readonly #keeper: { readonly live: LiveConnection | null };
  readonly #timeout: () => number;
  /** Settles the listen request that was sent last, with the outcome of its successor. */
  #supersede: (successor: Promise<ReadonlySet<string>>) => void = ignore;

  constructor(keeper: { readonly live: LiveConnection | null }, timeout: () => number) {
    this.#keeper = keeper;
    this.#timeout = timeout;
    this.subscriptions = new Subscriptions({
      // Legacy servers get one message for each resource, modern ones one message for all.
      tell: (method, uri) => (this.#era === 'legacy' ? this.#ask(method, { uri }, timeout()) : null),
      tellAll: (uris) => (this.#era === 'modern' ? this.#listen(uris) : null),
    });
  }

  get #era(): 'legacy' | 'modern' | undefined {
    return this.#keeper.live?.handshake.era;
  }

  /** A legacy server has one level for all callers: `info`, or `debug` as soon as one of them asks for it. */
  setLogLevel(level: LogLevel): void {
    if (this.logLevel === 'debug' || (this.logLevel !== null && level !== 'debug')) return;
    this.logLevel = level === 'debug' ? 'debug' : 'info';
    this.#tellLevel();
  }

  /** Tells a new connection. */
  renew(): void {
    this.#tellLevel();
    this.subscriptions.renew();
  }

  #tellLevel(): void {
    const level = this.logLevel;
    if (level === null || this.#keeper.live?.handshake.levels !== true) return;
    const telling: Promise<void> = this.#ask('logging/setLevel', { level }, Math.min(TELLING, this.#timeout()))
      .catch(ignore)
      .then(() => {
        if (this.telling === telling) this.telling = null;
      });
    this.telling = telling;
  }

  #ask(method: string, params: object, timeout: number): Promise<unknown> {
    return ask(this.#keeper.live!.connection, method, params, timeout);
  }

  /**
   * Resolves with the resources whose changes the server reports. A request that is replaced before the server accepted
   * it resolves like its successor.
   */
  #listen(uris: readonly string[]): Promise<ReadonlySet<string>> {
    const { connection, handshake } = this.#keeper.live!;
    const supersede = this.#supersede;
    const timeout = this.#timeout();
    const honoured = new Promise<ReadonlySet<string>>((resolve, reject) => {
      const late = setTimeout(() => {
        const text = `The server did not confirm within ${timeout / 1000} s that it reports changes in resources.`;
        reject(new GatewayError('source_timeout', text));
      }, timeout);
      late.unref();
      const settle = (uris: ReadonlySet<string> | Promise<ReadonlySet<string>>) => {
        clearTimeout(late);
        resolve(uris);
      };
      this.#supersede = settle;
      const request = listenRequest(handshake.filter, uris, {
        taken: (reported) => settle(new Set(reported ?? uris)),
        refused: () => settle(new Set()),
      });
      connection.listen?.(request);
      if (request === null) settle(new Set());
    });
    supersede(honoured);
    return honoured;
  }
}

export interface SubscriptionTransport {
  /** For servers that get a message for each resource. Null for other servers, and while there is no connection. */
  tell(method: 'resources/subscribe' | 'resources/unsubscribe', uri: string): Promise<unknown> | null;
  /** For servers that get one message for all: resolves with the resources that the server reports. Null likewise. */
  tellAll(uris: readonly string[]): Promise<ReadonlySet<string>> | null;
}

interface Subscription {
  count: number;
  /** Settles when the server has agreed or refused. A second subscriber waits for this, too. */
  readonly agreed: Promise<void>;
}

/** The resources of one server that have subscribers. They are counted: the server gets one subscription for each. */
export class Subscriptions {
  readonly #transport: SubscriptionTransport;
  readonly #byUri = new Map<string, Subscription>();

  constructor(transport: SubscriptionTransport) {
    this.#transport = transport;
  }

  get uris(): readonly string[] {
    return [...this.#byUri.keys()];
  }

  /** Resolves when the server reports changes of the resource. If it refuses, rejects and subscribes to nothing. */
  async add(uri: string): Promise<void> {
    const known = this.#byUri.get(uri);
    if (known !== undefined) {
      known.count++;
      return known.agreed;
    }
    const subscription: Subscription = { count: 1, agreed: this.#agree(uri) };
    this.#byUri.set(uri, subscription);
    try {
      await subscription.agreed;
    } catch (error) {
      if (this.#byUri.get(uri) === subscription) {
        this.#byUri.delete(uri);
        this.#transport.tellAll(this.uris)?.catch(ignore);
      }
      throw error;
    }
  }

  async #agree(uri: string): Promise<void> {
    const all = this.#transport.tellAll([...this.uris, uri]);
    if (all === null) await this.#transport.tell('resources/subscribe', uri);
    else if (!(await all).has(uri))
      throw new GatewayError('method_unknown', `The server does not report changes in "${uri}".`);
  }

  remove(uri: string): void {
    const known = this.#byUri.get(uri);
    if (known === undefined || --known.count > 0) return;
    this.#byUri.delete(uri);
    this.#transport.tellAll(this.uris)?.catch(ignore);
    this.#transport.tell('resources/unsubscribe', uri)?.catch(ignore);
  }

  /** Subscribes to all of them again, on a new connection. */
  renew(): void {
    if (this.#byUri.size === 0) return;
    this.#transport.tellAll(this.uris)?.catch(ignore);
    for (const uri of this.#byUri.keys()) this.#transport.tell('resources/subscribe', uri)?.catch(ignore);
  }
}
