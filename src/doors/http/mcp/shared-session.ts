/**
 * A replica's copy of a session that all replicas serve. The session itself is in the store. What a client changes goes to
 * the store and to the other copies; notifications go to the one stream of the client, wherever it is open.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ListKind } from '../../../access/view.ts';
import { sha256 } from '../../../base/hash.ts';
import type { KeptCaller, Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { SSE_KEEPALIVE } from '../../../protocol/sse.ts';
import type { Replica } from '../../../store/shared/replica.ts';
import { STANDING } from '../../../store/shared/shared-store.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { readEventId, readStream, sealedAt, type Wakes } from './shared-stream.ts';
import { type Budget, startStream } from './stream.ts';
import { StreamableSession } from './streamable-session.ts';

/** Milliseconds after which a copy that nobody uses is dropped. The session itself stays in the store. */
const COPY_IDLE = 5 * 60_000;
/** Milliseconds between writing to the store that a session is in use. */
const MOST_TOUCH = 60_000;

export class SharedSession extends StreamableSession {
  readonly replica: Replica;
  readonly wakes: Wakes;
  readonly backpressure: Backpressure;
  /** The resources that this replica listens to for it. */
  readonly uris = new Set<string>();
  lastTouch = performance.now();
  /**
   * What digests of its requests are made with. Only replicas know it: who reads the store must not be able to find out by
   * trying whether a request was one that they can guess.
   */
  salt = randomBytes(16).toString('base64url');
  /** The stream that gets notifications, and all that are open for them. */
  #standing: ServerResponse | null = null;
  readonly #responses = new Set<ServerResponse>();
  readonly #marks = new Map<string, string>();
  readonly #ttl: () => number;

  constructor(
    gateway: Gateway,
    replica: Replica,
    wakes: Wakes,
    identity: Identity,
    scope: Scope,
    clientId: string | null,
    backpressure: Backpressure,
    budget: Budget,
    id: string,
    kept: KeptCaller | null,
  ) {
    super(gateway, identity, scope, clientId, backpressure, budget, {
      id,
      questions: `${replica.id}-${randomBytes(4).toString('hex')}`,
      kept,
      keep: (state) => this.#keep(state),
      announce: (kind, fingerprint, message) => this.tell(message, [`known:${kind}`, fingerprint]),
      listed: (kind, fingerprint) => this.#listed(kind, fingerprint),
      subscribed: (uri, isOn) => this.#subscribed(uri, isOn),
      setLevel: (level) => this.#change({ level }),
    });
    this.#ttl = () => gateway.config.http.sessionTtl;
    this.replica = replica;
    this.wakes = wakes;
    this.backpressure = backpressure;
  }

  override get copyTtl(): number {
    return COPY_IDLE;
  }

  override get lacksStream(): boolean {
    return this.#standing === null || this.#standing.destroyed;
  }

  override notify(message: Buffer): void {
    this.tell(message, null);
  }

  /** Writes a message to the stream for notifications, wherever it is open. */
  tell(message: Buffer, mark: readonly [string, string] | null): void {
    const key = { session: this.id, stream: STANDING };
    const sealed = this.replica.seal(message, sealedAt(key));
    this.replica.store.tell(this.id, sealed, mark).then(
      (holder) => {
        if (holder === this.replica.id) this.wakes.wake(key);
        else if (holder !== null) void this.replica.send(holder, 'wake', key).catch(() => {});
      },
      () => {
        // Without the store there is no stream that could carry it. The client lists again when it comes back.
      },
    );
  }

  override listen(response: ServerResponse, headers: readonly string[], lastEventId: string | undefined): void {
    this.#listen(response, headers, lastEventId).catch(() => response.destroy());
  }

  async #listen(response: ServerResponse, headers: readonly string[], lastEventId: string | undefined): Promise<void> {
    const asked = lastEventId === undefined ? null : readEventId(lastEventId);
    const { replica, wakes, backpressure } = this;
    const call = { session: this.id, stream: asked?.stream ?? STANDING };
    response.on('close', () => {
      this.lastUse = performance.now();
      this.#responses.delete(response);
      if (this.#standing === response) this.#standing = null;
    });
    if (call.stream === STANDING) {
      const told = await this.#hold(response);
      const after = asked?.after ?? told;
      startStream(response, headers);
      backpressure.opened(response);
      await readStream({ replica, wakes, backpressure, call }, response, headers, after, true, {
        isCurrent: () => this.#standing === response,
        wrote: (position) => {
          const told = Buffer.from(position.join('-'));
          void replica.store.setSession(this.id, { told }, 0).catch(() => {});
        },
      });
      return;
    }
    if (await readStream({ replica, wakes, backpressure, call }, response, headers, asked?.after ?? [0, 0], true))
      return;
    const text = 'The events after this Last-Event-ID are no longer kept. Send the request again.';
    response.writeHead(400, [...headers, 'content-type', 'text/plain']).end(text);
  }

  /** The newest stream is the one that gets notifications. Returns up to where they were sent before. */
  async #hold(response: ServerResponse): Promise<readonly [number, number]> {
    const { store, id } = this.replica;
    this.#standing = response;
    this.#responses.add(response);
    await store.hold(this.id, id);
    void this.replica.publish('held', { session: this.id }).catch(() => {});
    const fields = (await store.session(this.id, this.#ttl())) ?? {};
    for (const [name, sealed] of Object.entries(fields)) {
      if (!name.startsWith('uri:')) continue;
      const plain = this.replica.open(sealed, placeOf(this.id, name));
      const [uri, isOn] = plain === null ? ['', false] : (JSON.parse(plain.toString()) as [string, boolean]);
      if (isOn) this.follow(uri);
    }
    const [epoch = 0, number = 0] = (fields.told?.toString() ?? '0-0').split('-').map(Number);
    return [epoch, number];
  }

  /** This replica listens to a resource for it. */
  follow(uri: string): void {
    if (this.uris.has(uri)) return;
    this.uris.add(uri);
    this.peer.subscribe(uri).catch(() => this.uris.delete(uri));
  }

  unfollow(uri: string): void {
    if (this.uris.delete(uri)) this.peer.unsubscribe(uri);
  }

  /** Another replica has the newest stream for notifications. */
  yield(): void {
    for (const uri of [...this.uris]) this.unfollow(uri);
    this.#standing = null;
  }

  /** Ends the streams for notifications, so that the client opens one on another replica. */
  release(): void {
    for (const response of this.#responses) {
      response.write('retry: 200\n\n');
      response.end();
    }
    this.#responses.clear();
    this.#standing = null;
  }

  override keepAlive(_now: number, isValid: boolean): void {
    this.peer.keepAlive();
    // A client that only listens, or waits for a long call, sends nothing by which others know that it is there.
    if (isValid && (!this.lacksStream || this.peer.inFlight > 0)) this.touch();
    for (const response of this.#responses) {
      if (isValid) response.write(SSE_KEEPALIVE);
      else response.end();
    }
  }

  override close(): void {
    for (const response of this.#responses) response.end();
    super.close();
  }

  /** It is in use, on this replica. */
  touch(): void {
    const ttl = this.#ttl();
    const now = performance.now();
    if (now - this.lastTouch < Math.min(MOST_TOUCH, ttl / 4)) return;
    this.lastTouch = now;
    void this.replica.store.setSession(this.id, {}, ttl).catch(() => {});
  }

  sealed(field: string, value: unknown): Record<string, Buffer> {
    return { [field]: this.replica.seal(JSON.stringify(value), placeOf(this.id, field)) };
  }

  async #change(change: Readonly<Record<string, unknown>>): Promise<void> {
    const named = (field: string, value: unknown) =>
      field === 'uri' ? `uri:${sha256(`${this.salt}${String((value as unknown[])[0])}`).slice(0, 32)}` : field;
    const fields = Object.assign(
      {},
      ...Object.entries(change).map(([field, value]) => this.sealed(named(field, value), value)),
    );
    await this.replica.store.setSession(this.id, fields, 0);
    await this.replica.publish('session', { session: this.id, change });
  }

  #keep(state: KeptCaller): Promise<void> {
    return this.#change({ kept: state.selection });
  }

  #listed(kind: ListKind, fingerprint: string): void {
    const name = `known:${kind}`;
    if (this.#marks.get(name) === fingerprint) return;
    this.#marks.set(name, fingerprint);
    void this.replica.store.setSession(this.id, { [name]: Buffer.from(fingerprint) }, 0).catch(() => {});
  }

  #subscribed(uri: string, isOn: boolean): void {
    if (isOn) this.uris.add(uri);
    else this.uris.delete(uri);
    void this.#change({ uri: [uri, isOn] }).catch(() => {});
  }
}

export function placeOf(session: string, field: string): string {
  return `session:${session}:${field}`;
}
