/** A session over Streamable HTTP: any number of streams for notifications, which a client may come back to. */
import type { ServerResponse } from 'node:http';
import type { Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { Session } from './sessions.ts';
import { type Budget, type EventStream, StreamLog } from './stream.ts';

/** How long a request may overtake `notifications/initialized`, where a client does not wait for the reply to that. */
const OVERTAKING = 1_000;
/** How many notifications wait for a stream to be opened. */
const MOST_MISSED = 1_000;

export class StreamableSession extends Session {
  static readonly beginning = '"initialize"';
  readonly log: StreamLog;
  /** Streams that the client holds open for notifications; the newest is used. */
  #standing: EventStream[] = [];
  /** Notifications that came while no stream was open. Each once: a list that changed twice is still just changed. */
  #missed: Map<string, Buffer> | null = null;
  /** Requests that came before the client said that it is initialized. */
  readonly #early = new Set<() => void>();

  constructor(gateway: Gateway, identity: Identity, scope: Scope, backpressure: Backpressure, budget: Budget) {
    super(gateway, identity, scope, 'http');
    this.log = new StreamLog(backpressure, () => gateway.config.limits.replay, budget);
  }

  override get isDeaf(): boolean {
    return !this.#standing.some(({ isOpen }) => isOpen);
  }

  /** Opens a stream for notifications, or resumes one after the event that the client saw last. */
  listen(response: ServerResponse, headers: readonly string[], lastEventId: string | undefined): void {
    const resumed = lastEventId === undefined ? null : this.log.resume(lastEventId, response, headers);
    const stream = resumed ?? this.log.open(response, headers, 'standing');
    response.on('close', () => {
      this.lastUse = Date.now();
    });
    if (stream.kind !== 'standing') return;
    this.#standing = [...this.#standing.filter((one) => one.isOpen && one !== stream), stream];
    const missed = this.#missed;
    this.#missed = null;
    for (const message of missed?.values() ?? []) stream.send(message);
  }

  /** Now, or when there is a stream again. */
  override notify(message: Buffer): void {
    const stream = this.#standing.findLast(({ isOpen }) => isOpen);
    if (stream !== undefined) {
      stream.send(message);
      return;
    }
    this.#missed ??= new Map();
    this.#missed.set(message.toString('latin1'), message);
    if (this.#missed.size > MOST_MISSED) this.#missed.delete(this.#missed.keys().next().value!);
  }

  /** Calls `proceed` when the client has said that it is initialized, nearly always at once; `giveUp` when it does not. */
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
    }, OVERTAKING);
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
    // A client that comes back with a new credential finds the stream again.
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
