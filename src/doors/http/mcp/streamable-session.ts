/** A session over Streamable HTTP: any number of notification streams, which a client can resume. */
import type { ServerResponse } from 'node:http';
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { SharedState } from '../../peer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { Session } from './sessions.ts';
import { type Budget, type EventStream, StreamLog } from './stream.ts';

/**
 * Milliseconds that a request waits for `notifications/initialized`. It can arrive first, because clients need not wait
 * for the reply to that notification.
 */
const INITIALIZED_WAIT = 1_000;
/** The most notifications that are kept until a stream opens. */
const MOST_MISSED = 1_000;

export class StreamableSession extends Session {
  static readonly beginning = '"initialize"';
  readonly log: StreamLog;
  /** The streams that the client holds open for notifications. The newest is used. */
  #standing: EventStream[] = [];
  /**
   * Notifications from the time without an open stream. Equal ones are kept once: it is enough to say once that a list
   * has changed.
   */
  #missed: BoundedMap<string, Buffer> | null = null;
  /** Requests that arrived before `notifications/initialized`. */
  readonly #early = new Set<() => void>();

  constructor(
    gateway: Gateway,
    identity: Identity,
    scope: Scope,
    clientId: string | null,
    backpressure: Backpressure,
    budget: Budget,
    shared: (SharedState & { readonly id: string }) | null = null,
  ) {
    super(gateway, identity, scope, 'http', clientId, shared);
    this.log = new StreamLog(backpressure, () => gateway.config.limits.replay, budget);
  }

  override get lacksStream(): boolean {
    return !this.#standing.some(({ isOpen }) => isOpen);
  }

  /** Opens a stream for notifications, or resumes one after the event that the client saw last. */
  listen(response: ServerResponse, headers: readonly string[], lastEventId: string | undefined): void {
    const resumed = lastEventId === undefined ? null : this.log.resume(lastEventId, response, headers);
    const stream = resumed ?? this.log.open(response, headers, 'standing');
    response.on('close', () => {
      this.lastUse = performance.now();
    });
    if (stream.kind !== 'standing') return;
    this.#standing = [...this.#standing.filter((one) => one.isOpen && one !== stream), stream];
    const missed = this.#missed;
    this.#missed = null;
    for (const message of missed?.values() ?? []) stream.send(message);
  }

  /** Sends it now, or once a stream is open again. */
  override notify(message: Buffer): void {
    const stream = this.#standing.findLast(({ isOpen }) => isOpen);
    if (stream !== undefined) {
      stream.send(message);
      return;
    }
    this.#missed ??= new BoundedMap(MOST_MISSED);
    this.#missed.set(message.toString('latin1'), message);
  }

  /**
   * Calls `proceed` once the client is initialized, which is nearly always immediately; calls `giveUp` if it takes too
   * long.
   */
  whenInitialized(proceed: () => void, giveUp: () => void): void {
    if (this.peer.isInitialized) {
      proceed();
      return;
    }
    const waiting = () => {
      clearTimeout(timer);
      proceed();
    };
    const timer = setTimeout(() => {
      this.#early.delete(waiting);
      giveUp();
    }, INITIALIZED_WAIT);
    this.#early.add(waiting);
  }

  override initialized(): void {
    const early = [...this.#early];
    this.#early.clear();
    for (const proceed of early) proceed();
  }

  override keepAlive(now: number, isValid: boolean): void {
    super.keepAlive(now, isValid);
    this.log.sweep(now);
    // The stream itself is kept for a client that reconnects with a new credential.
    for (const stream of this.#standing) {
      if (isValid) stream.keepAlive();
      else stream.detach();
    }
  }

  override close(): void {
    super.close();
    this.log.close();
  }
}
