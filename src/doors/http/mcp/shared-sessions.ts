/**
 * Sessions that all replicas serve. What a session is lives in the store; each replica that is asked for one has a copy of
 * it in memory. Copies hear of each other's changes. Calls are in the ledger of the store from their beginning to their
 * end, and those of a replica that was killed are ended, or made again if that is declared safe.
 */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { ListKind } from '../../../access/view.ts';
import { GatewayError } from '../../../base/errors.ts';
import { sha256 } from '../../../base/hash.ts';
import type { KeptCaller, Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { findMember } from '../../../protocol/json.ts';
import { idText, isResponse, type Message } from '../../../protocol/message.ts';
import { readMessage } from '../../../protocol/read.ts';
import { readsEmptyEvents } from '../../../protocol/revisions.ts';
import type { Reply } from '../../../protocol/rpc.ts';
import { SSE_KEEPALIVE } from '../../../protocol/sse.ts';
import type { Replica, ReplicaMessage } from '../../../store/shared/replica.ts';
import { type LedgerKey, STANDING, STANDING_KEPT, type TakenCall } from '../../../store/shared/shared-store.ts';
import type { Exchange } from '../../answer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { sendReply } from '../wire/reply.ts';
import type { Sessions } from './sessions.ts';
import { progressIn, readEventId, readStream, SharedExchange, sealedAt, Wakes } from './shared-exchange.ts';
import { type Budget, startStream } from './stream.ts';
import { StreamableSession } from './streamable-session.ts';

/** The requests that do something. They are in the ledger; others are answered at once and can be sent again. */
const LEDGER: ReadonlySet<string> = new Set([
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
  'tasks/result',
]);
/** Milliseconds after which a copy that nobody uses is dropped. The session itself stays in the store. */
const COPY_IDLE = 5 * 60_000;
/** Milliseconds between writing to the store that a session is in use. */
const MOST_TOUCH = 60_000;
/** Seconds. */
const RETRY_AFTER = 1;

/** What is written when a session begins. */
interface OpenedSession {
  readonly identity: Omit<Identity, 'credential'> & { readonly expires: number | null };
  readonly scope: Scope;
  readonly clientId: string | null;
  /** The request `initialize`. */
  readonly initialize: string;
}

export interface SharedSessions {
  /** The session of this id. Rejects if it is over, belongs to somebody else, or if the store cannot be reached. */
  find(id: string, identity: Identity, scope: Scope): SharedSession | Promise<SharedSession>;
  /** Opens a session with its first request, and answers it. */
  open(message: Message, identity: Identity, scope: Scope, clientId: string | null, post: ResponseTo): Promise<void>;
  /** Whether a request has to go through `call`. */
  isCall(message: Message): boolean;
  call(session: SharedSession, message: Message, post: ResponseTo, streams: boolean): Promise<void>;
  /** A notification, or an answer to a question. */
  accept(session: SharedSession, message: Message): Promise<void>;
  end(session: SharedSession): Promise<void>;
  /** Clients with streams go to another replica now. */
  drain(): void;
  /** Ends the calls that are still under way. */
  close(): Promise<void>;
}

export interface ResponseTo {
  readonly response: ServerResponse;
  readonly headers: readonly string[];
}

export class SharedSession extends StreamableSession {
  readonly replica: Replica;
  readonly wakes: Wakes;
  readonly backpressure: Backpressure;
  /** The resources that this replica listens to for it. */
  readonly uris = new Set<string>();
  lastTouch = performance.now();
  /** The stream that gets notifications, and all that are open for them. */
  #standing: ServerResponse | null = null;
  readonly #responses = new Set<ServerResponse>();
  readonly #marks = new Map<string, string>();

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
      const after = asked?.after ?? (await this.#hold(response));
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
    const fields = (await store.session(this.id, STANDING_KEPT)) ?? {};
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
    for (const response of this.#responses) {
      if (isValid) response.write(SSE_KEEPALIVE);
      else response.end();
    }
  }

  override close(): void {
    for (const response of this.#responses) response.end();
    super.close();
  }

  /** It is in use, on this replica. Resolves to false if it has ended. */
  touch(ttl: number): void {
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
      field === 'uri' ? `uri:${sha256(String((value as unknown[])[0])).slice(0, 32)}` : field;
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

function placeOf(session: string, field: string): string {
  return `session:${session}:${field}`;
}

function streamOf(request: string): string {
  return `a${sha256(request, 'base64url').slice(0, 21)}`;
}

/** What a session's fields say about it. */
interface StoredSession {
  readonly opened: OpenedSession;
  readonly isReady: boolean;
  readonly level: string | null;
  readonly kept: KeptCaller;
}

export function createSharedSessions(
  gateway: Gateway,
  replica: Replica,
  sessions: Sessions,
  backpressure: Backpressure,
): SharedSessions {
  const { store } = replica;
  const budget: Budget = { used: 0 };
  const wakes = new Wakes();
  const loading = new Map<string, Promise<SharedSession>>();
  const running = new Map<SharedExchange, Message>();
  const ttl = () => gateway.config.http.sessionTtl;
  const copyOf = (id: unknown): SharedSession | null => {
    const found = sessions.peek(String(id));
    return found instanceof SharedSession ? found : null;
  };

  const stopHearing = [
    replica.hear('wake', ({ session, stream }) => wakes.wake({ session: String(session), stream: String(stream) })),
    replica.hear('ended', ({ session }) => {
      const copy = copyOf(session);
      if (copy !== null) sessions.end(copy);
    }),
    replica.hear('held', ({ session }) => {
      copyOf(session)?.yield();
    }),
    replica.hear('session', ({ session, change }) => adopt(copyOf(session), change as ReplicaMessage)),
    replica.hear('accept', ({ session, message }) => {
      copyOf(session)?.peer.accept(readMessage(Buffer.from(String(message), 'base64')));
    }),
  ];
  replica.takeOver((call) => {
    takeOver(call).catch((error: unknown) => gateway.events.emit('failure', { where: 'taking over a call', error }));
  });

  function adopt(copy: SharedSession | null, change: ReplicaMessage): void {
    if (copy === null) return;
    if (change.ready === true) copy.peer.restore({ isInitialized: true });
    if (typeof change.level === 'string') copy.peer.restore({ level: change.level });
    if ('kept' in change) copy.peer.adopt(change.kept as KeptCaller['selection']);
    if (Array.isArray(change.uri) && !copy.lacksStream) {
      const [uri, isOn] = change.uri as [string, boolean];
      if (isOn) copy.follow(uri);
      else copy.unfollow(uri);
    }
  }

  function requireUp(): void {
    if (!replica.isUp) throw unavailable();
  }

  async function ask<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw error instanceof GatewayError ? error : unavailable();
    }
  }

  async function read(id: string): Promise<StoredSession | null> {
    const fields = await ask(store.session(id, ttl()));
    if (fields === null) return null;
    const field = (name: string): unknown => {
      const sealed = fields[name];
      const plain = sealed === undefined ? null : replica.open(sealed, placeOf(id, name));
      return plain === null ? null : JSON.parse(plain.toString());
    };
    const opened = field('open') as OpenedSession | null;
    if (opened === null) return null;
    const known = (kind: ListKind) => fields[`known:${kind}`]?.toString() ?? null;
    return {
      opened,
      isReady: field('ready') === true,
      level: field('level') as string | null,
      kept: {
        selection: field('kept') as KeptCaller['selection'],
        known: { tools: known('tools'), resources: known('resources'), prompts: known('prompts') },
      },
    };
  }

  /** Makes a copy of a session of the store. `identity` is whose request needs it; null for a call that is taken over. */
  function load(id: string, identity: Identity | null): Promise<SharedSession> {
    const pending = loading.get(id);
    if (pending !== undefined) return pending;
    const loaded = make(id, identity).finally(() => loading.delete(id));
    loading.set(id, loaded);
    return loaded;
  }

  async function make(id: string, identity: Identity | null): Promise<SharedSession> {
    const state = await read(id);
    const known = copyOf(id);
    if (known !== null) return known;
    if (state === null) throw sessionUnknown();
    const { opened, isReady, level, kept } = state;
    const { scope, clientId } = opened;
    const own = opened.identity;
    const isTheirs = identity === null || (identity.principal === own.principal && identity.agent === own.agent);
    if (!isTheirs) throw sessionUnknown();
    const { expires, ...rest } = own;
    const whose = identity ?? { ...rest, credential: { expires, revocation: { isRevoked: false } } };
    const copy = new SharedSession(gateway, replica, wakes, whose, scope, clientId, backpressure, budget, id, kept);
    copy.peer.restore({
      initialize: readMessage(Buffer.from(opened.initialize, 'base64')),
      isInitialized: isReady,
      ...(level !== null && { level }),
    });
    sessions.adopt(copy);
    return copy;
  }

  function exchangeFor(
    call: LedgerKey,
    epoch: number,
    session: SharedSession,
    message: Message,
    post: ResponseTo | null,
    streams: boolean,
    progressed: number | null = null,
  ): SharedExchange {
    const exchange: SharedExchange = new SharedExchange({
      ...{ replica, wakes, backpressure, call, epoch, streams, progressed },
      response: post?.response ?? null,
      headers: post?.headers ?? [],
      primes: readsEmptyEvents(session.peer.revision!),
      ended: () => running.delete(exchange),
    });
    running.set(exchange, message);
    return exchange;
  }

  /** A replica was killed, and this one has its call now. */
  async function takeOver(taken: TakenCall): Promise<void> {
    const { epoch, bytes, ...call } = taken;
    const plain = replica.open(bytes, `call:${call.session}:${call.stream}`);
    const session = plain === null ? null : await load(call.session, null).catch(() => null);
    if (plain === null || session === null) {
      await store.append(call, replica.id, { epoch, number: 1, bytes: Buffer.alloc(0), isLast: true }, 1);
      return;
    }
    const message = readMessage(plain);
    const events = (await store.events(call.session, call.stream, [0, 1], replica.id)) ?? [];
    const progress = events.map((event) => progressIn(replica.open(event.bytes, sealedAt(call)) ?? Buffer.alloc(0)));
    const most = Math.max(...progress.filter((one) => !Number.isNaN(one)), Number.NEGATIVE_INFINITY);
    const exchange = exchangeFor(call, epoch, session, message, null, true, most);
    if (session.peer.isRepeatable(message)) session.peer.request(message, exchange);
    else await exchange.giveUp(message, outcomeUnknown('the replica that made it was killed'));
  }

  async function broadcast(session: SharedSession, message: Message): Promise<void> {
    session.peer.accept(message);
    await ask(replica.publish('accept', { session: session.id, message: message.bytes.toString('base64') }));
  }

  async function passTo(owner: string | null, session: SharedSession, message: Message): Promise<void> {
    if (owner === null || owner === replica.id) session.peer.accept(message);
    else await ask(replica.send(owner, 'accept', { session: session.id, message: message.bytes.toString('base64') }));
  }

  return {
    find(id, identity, scope) {
      requireUp();
      const check = (): SharedSession => {
        const session = sessions.find(StreamableSession, id, identity, scope) as SharedSession;
        session.touch(ttl());
        return session;
      };
      return copyOf(id) === null ? load(id, identity).then(check) : check();
    },
    async open(message, identity, scope, clientId, { response, headers }) {
      requireUp();
      const id = randomBytes(18).toString('base64url');
      const session = sessions.open(
        scope,
        () => new SharedSession(gateway, replica, wakes, identity, scope, clientId, backpressure, budget, id, null),
      );
      const reply = await new Promise<Reply>((resolve) => session.peer.request(message, capturing(resolve)));
      if (session.peer.revision === null) {
        sessions.end(session);
        sendReply(response, 200, reply, headers);
        return;
      }
      const { credential, ...rest } = identity;
      const opened: OpenedSession = {
        identity: { ...rest, expires: credential.expires },
        scope,
        clientId,
        initialize: message.bytes.toString('base64'),
      };
      try {
        await ask(store.openSession(id, session.sealed('open', opened), ttl()));
      } catch (error) {
        sessions.end(session);
        throw error;
      }
      sendReply(response, 200, reply, ['mcp-session-id', id, ...headers]);
    },
    isCall: (message) => LEDGER.has(message.method),
    async call(session, message, post, streams) {
      const { id } = session;
      const call = { session: id, stream: streamOf(idText(message)) };
      const bytes = replica.seal(message.bytes, `call:${id}:${call.stream}`);
      const digest = sha256(message.bytes, 'base64url');
      const admission = await ask(store.admit({ ...call, owner: replica.id, digest, bytes }));
      switch (admission) {
        case 'gone':
          sessions.end(session);
          throw sessionUnknown();
        case 'taken':
        case 'fresh':
          if (admission === 'taken')
            throw new GatewayError(
              'request_invalid',
              'Another request of this session has the same id and is still running.',
            );
          session.peer.request(message, exchangeFor(call, 1, session, message, post, streams));
          return;
        case 'known':
          // A balancer or the client has sent it again. It is not made twice: both get the same answer.
          await readStream({ replica, wakes, backpressure, call }, post.response, post.headers, [0, 1], streams);
          return;
        default:
          admission satisfies never;
      }
    },
    async accept(session, message) {
      requireUp();
      if (isResponse(message)) {
        const [, owner = null] = /^"toolgate-([\w-]{12})-/.exec(message.idStart < 0 ? '' : idText(message)) ?? [];
        await passTo(owner, session, message);
        return;
      }
      switch (message.method) {
        case 'notifications/cancelled': {
          const { bytes, paramsStart, paramsEnd } = message;
          const asked = paramsStart < 0 ? null : findMember(bytes, 'requestId', paramsStart, paramsEnd);
          const stream = asked === null ? null : streamOf(bytes.toString('latin1', asked.start, asked.end));
          const owner = stream === null ? null : await ask(store.ownerOf({ session: session.id, stream }));
          await passTo(owner, session, message);
          return;
        }
        case 'notifications/initialized':
          session.peer.accept(message);
          await ask(store.setSession(session.id, session.sealed('ready', true), 0));
          await ask(replica.publish('session', { session: session.id, change: { ready: true } }));
          return;
        case 'notifications/roots/list_changed':
          await broadcast(session, message);
          return;
        default:
          session.peer.accept(message);
      }
    },
    async end(session) {
      await ask(store.endSession(session.id));
      sessions.end(session);
      await replica.publish('ended', { session: session.id }).catch(() => {});
    },
    drain() {
      for (const session of sessions.all) if (session instanceof SharedSession) session.release();
    },
    async close() {
      for (const stop of stopHearing) stop();
      replica.takeOver(() => {});
      const unknown = outcomeUnknown('the gateway was stopped');
      const given = [...running].map(([exchange, message]) => exchange.giveUp(message, unknown));
      await Promise.race([Promise.all(given), new Promise((resolve) => setTimeout(resolve, 2_000).unref())]);
    },
  };
}

function capturing(done: (reply: Reply) => void): Exchange {
  return {
    send() {},
    finish: done,
    abandon() {},
    keepAlive() {},
    isFull: false,
    whenDrained: (proceed) => proceed(),
  };
}

function unavailable(): GatewayError {
  return new GatewayError(
    'store_unavailable',
    `The store of the gateway cannot be reached, so sessions cannot be served now. Try again in ${RETRY_AFTER} s.`,
    { details: { retryAfter: RETRY_AFTER } },
  );
}

function sessionUnknown(): GatewayError {
  return new GatewayError(
    'session_unknown',
    `The session is unknown or over. Start a new one with ${StreamableSession.beginning}.`,
  );
}

function outcomeUnknown(why: string): GatewayError {
  return new GatewayError(
    'outcome_unknown',
    `The outcome of this call is unknown: ${why} before it was answered. It may have had its effect, and was not made again. Find out before you call again.`,
  );
}
