/**
 * Sessions that all replicas serve. What a session is lives in the store; each replica that is asked for one has a copy of
 * it in memory. Copies hear of each other's changes.
 */
import { randomBytes } from 'node:crypto';
import type { ListKind } from '../../../access/view.ts';
import type { KeptCaller, Scope } from '../../../calls/caller.ts';
import type { Identity } from '../../../calls/identity.ts';
import type { Gateway } from '../../../gateway/gateway.ts';
import { findMember } from '../../../protocol/json.ts';
import { idText, isResponse, type Message } from '../../../protocol/message.ts';
import { readMessage } from '../../../protocol/read.ts';
import type { Reply } from '../../../protocol/rpc.ts';
import type { Replica, ReplicaMessage } from '../../../store/shared/replica.ts';
import type { Exchange } from '../../answer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { sendReply } from '../wire/reply.ts';
import type { Sessions } from './sessions.ts';
import {
  ask,
  createSharedCalls,
  isCall,
  type ResponseTo,
  type SharedCalls,
  sessionUnknown,
  streamOf,
  unavailable,
} from './shared-calls.ts';
import { placeOf, SharedSession } from './shared-session.ts';
import { Wakes } from './shared-stream.ts';
import type { Budget } from './stream.ts';
import { StreamableSession } from './streamable-session.ts';

/** What is written when a session begins. */
interface OpenedSession {
  readonly identity: Omit<Identity, 'credential'> & { readonly expires: number | null };
  readonly scope: Scope;
  readonly clientId: string | null;
  /** The request `initialize`. */
  readonly initialize: string;
  /** See `SharedSession.salt`. */
  readonly salt: string;
}

export interface SharedSessions extends SharedCalls {
  /** The session of this id. Rejects if it is over, belongs to somebody else, or if the store cannot be reached. */
  find(id: string, identity: Identity, scope: Scope): SharedSession | Promise<SharedSession>;
  /** Opens a session with its first request, and answers it. */
  open(message: Message, identity: Identity, scope: Scope, clientId: string | null, post: ResponseTo): Promise<void>;
  /** Whether a request has to go through `call`. */
  isCall(message: Message): boolean;
  /** A notification, or an answer to a question. */
  accept(session: SharedSession, message: Message): Promise<void>;
  end(session: SharedSession): Promise<void>;
  /** Clients with streams go to another replica now. */
  drain(): void;
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
  const calls = createSharedCalls(gateway, replica, wakes, backpressure, {
    load: (id) => load(id, null),
    end: (session) => sessions.end(session),
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
    const { scope, clientId, salt } = opened;
    const own = opened.identity;
    const isTheirs = identity === null || (identity.principal === own.principal && identity.agent === own.agent);
    if (!isTheirs) throw sessionUnknown();
    const { expires, ...rest } = own;
    const whose = identity ?? { ...rest, credential: { expires, revocation: { isRevoked: false }, isStandIn: true } };
    const copy = new SharedSession(gateway, replica, wakes, whose, scope, clientId, backpressure, budget, id, kept);
    copy.salt = salt;
    copy.peer.restore({
      initialize: readMessage(Buffer.from(opened.initialize, 'base64')),
      isInitialized: isReady,
      ...(level !== null && { level }),
    });
    sessions.adopt(copy);
    return copy;
  }

  async function broadcast(session: SharedSession, message: Message): Promise<void> {
    session.peer.accept(message);
    await ask(replica.publish('accept', { session: session.id, message: message.bytes.toString('base64') }));
  }

  /**
   * Whether there is such a replica. The client has written the name: one that no replica has would be an inbox that nobody
   * reads. One that we do not know of may just have started, or have been silent for a moment.
   */
  async function isReplica(id: string): Promise<boolean> {
    return replica.isAlive(id) || (await ask(store.replicas())).some((one) => one.id === id);
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
        session.touch();
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
        salt: session.salt,
      };
      try {
        await ask(store.openSession(id, session.sealed('open', opened), ttl()));
      } catch (error) {
        sessions.end(session);
        throw error;
      }
      sendReply(response, 200, reply, ['mcp-session-id', id, ...headers]);
    },
    isCall,
    call: calls.call,
    get admitting() {
      return calls.admitting;
    },
    async accept(session, message) {
      requireUp();
      if (isResponse(message)) {
        const [, owner = null] = /^"toolgate-([\w-]{12})-/.exec(message.idStart < 0 ? '' : idText(message)) ?? [];
        await passTo(owner !== null && (await isReplica(owner)) ? owner : null, session, message);
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
      await calls.close();
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
