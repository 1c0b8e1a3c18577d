/**
 * One of several gateways that serve the same clients. It gives signs of life, hears news, has an inbox, and takes over
 * the calls of a replica that was killed. Its id is new with every start, because pids and hosts are used again.
 */
import { randomBytes } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import { createLease } from './lease.ts';
import { MirroredMap, type SharedMap } from './mirrored-map.ts';
import type { Sealing } from './sealing.ts';
import type { KnownReplica, LedgerKey, SharedStore, TakenCall } from './shared-store.ts';
import { TakenNumbers } from './taken-numbers.ts';

/** A message between replicas. */
export type ReplicaMessage = Readonly<Record<string, unknown>>;

export interface Replica {
  readonly id: string;
  readonly store: SharedStore;
  /** Whether the store can be reached. */
  readonly isUp: boolean;
  /** Whether no other replica can have, or can take now, a call of ours that was asked for at this time. */
  holds(since: number): boolean;
  /** How many replicas are alive, with this one. */
  readonly count: number;
  /** The other replicas that are alive. */
  readonly others: readonly string[];
  isAlive(id: string): boolean;
  /** Keys that are equal on all replicas. The first signs; the others are former ones. */
  keysFor(purpose: string): readonly Buffer[];
  seal(plain: Buffer | string, place: string): Buffer;
  open(sealed: Buffer, place: string): Buffer | null;
  /** `changed` hears of each entry that is there already, and that another replica sets or removes (null). */
  map(name: string, changed?: (key: string, value: unknown) => void): SharedMap;
  /** Resolves when all maps are read. */
  loaded(): Promise<void>;
  /** Tells all other replicas. Resolves when those that are alive have heard it, or after a second. */
  publish(kind: string, body: ReplicaMessage): Promise<void>;
  send(to: string, kind: string, body: ReplicaMessage): Promise<void>;
  /** `heard` gets the messages of a kind, whether they were published or sent. */
  hear(kind: string, heard: (body: ReplicaMessage, from: string) => void): () => void;
  /** What this replica does with calls of the ledger. */
  takeOver(taking: Taking): void;
  /** The reply of the store to a change of the ledger was lost, so calls may be there in our name that we do not know of. */
  doubt(): void;
  close(): Promise<void>;
}

/** Takes over calls. */
export interface Taking {
  /** A call that a replica has left when it was killed, or that is in our name and not in hand. */
  take(call: TakenCall, from: string): void;
  /** Whether this replica makes this call, or is about to. */
  hasInHand(call: LedgerKey): boolean;
  /** No call is in our name that is not in hand. */
  settled(): void;
}

/** Milliseconds between signs of life, and after how many a replica counts as dead. */
const BEAT = 500;
const DEAD_AFTER = 2_000;
/** Milliseconds before that in which a replica no longer relies on its own. */
const MARGIN = 500;
/** Milliseconds after the store is reached again in which nobody is declared dead: the others are on their way too. */
const GRACE = 5_000;
const ACK_WAIT = 1_000;
/** Milliseconds for which one replica has another one's calls to itself. Two of them would only do the same work. */
const CLAIM = 2_000;

export interface ReplicaEvents {
  note(message: string): void;
  failure(where: string, error: unknown): void;
}

export async function openReplica(store: SharedStore, sealing: Sealing, events: ReplicaEvents): Promise<Replica> {
  const id = randomBytes(9).toString('base64url');
  const maps = new Map<string, MirroredMap>();
  const heard = new Map<string, Set<(body: ReplicaMessage, from: string) => void>>();
  const waiting = new Map<number, { readonly left: Set<string>; done(): void }>();
  let alive: ReadonlySet<string> = new Set([id]);
  let lastSerial = 0;
  // News and messages are read one after the other, so each has numbers of its own: one may be far behind the other.
  const lastNumber = { news: 0, inbox: 0 };
  const taken = { news: new TakenNumbers(), inbox: new TakenNumbers() };
  let taking: Taking | null = null;
  let isInDoubt = false;
  let lastBeat = performance.now();
  const lease = createLease(DEAD_AFTER, MARGIN);
  let quietUntil = 0;
  let isBeating = false;
  let isTaking = false;
  let isClosed = false;
  let loading: Promise<unknown> = Promise.resolve();

  /** Publishes, and waits until the replicas that are alive have heard it. */
  async function acked(write: (news: Buffer) => Promise<void>, kind: string, body: ReplicaMessage): Promise<void> {
    const serial = ++lastSerial;
    const left = new Set(othersOf(alive, id));
    const answered = new Promise<void>((resolve) => {
      const timer = setTimeout(done, ACK_WAIT).unref();
      function done(): void {
        clearTimeout(timer);
        waiting.delete(serial);
        resolve();
      }
      waiting.set(serial, { left, done });
    });
    try {
      await write(sealing.seal(JSON.stringify({ ...body, kind, from: id, serial, number: ++lastNumber.news }), 'news'));
    } catch (error) {
      waiting.get(serial)?.done();
      throw error;
    }
    if (left.size === 0) waiting.get(serial)?.done();
    await answered;
  }

  function read(entry: Buffer, what: 'news' | 'inbox'): ReplicaMessage | null {
    const plain = sealing.open(entry, what === 'news' ? what : `inbox:${id}`);
    if (plain === null) {
      events.note('a message in the store was ignored: it was not sealed with our key');
      return null;
    }
    const message: unknown = JSON.parse(plain.toString());
    if (!isObject(message)) return null;
    if (taken[what].take(String(message.from), message.number)) return message;
    events.note('a message in the store was ignored: it came before');
    return null;
  }

  function dispatch(message: ReplicaMessage): void {
    const { kind, from } = message;
    for (const one of heard.get(String(kind)) ?? []) {
      try {
        one(message, String(from));
      } catch (error) {
        events.failure(`a message of another replica (${String(kind)})`, error);
      }
    }
  }

  async function send(to: string, kind: string, body: ReplicaMessage): Promise<void> {
    await store.send(
      to,
      sealing.seal(JSON.stringify({ ...body, kind, from: id, number: ++lastNumber.inbox }), `inbox:${to}`),
    );
  }

  function resync(): void {
    for (const map of maps.values()) map.load(true).catch(() => {});
  }

  await store.follow(id, {
    news(entry) {
      const message = read(entry, 'news');
      if (message === null) return;
      const { kind, from, serial } = message;
      if (kind === 'map') maps.get(String(message.map))?.take(String(message.key), message.value, true);
      else if (from !== id) dispatch(message);
      if (from !== id) void send(String(from), 'heard', { serial }).catch(() => {});
    },
    received(entry) {
      const message = read(entry, 'inbox');
      if (message === null) return;
      if (message.kind !== 'heard') {
        dispatch(message);
        return;
      }
      const one = waiting.get(Number(message.serial));
      one?.left.delete(String(message.from));
      if (one?.left.size === 0) one.done();
    },
    returned() {
      quietUntil = performance.now() + GRACE;
      isInDoubt = true;
      void beat();
      resync();
    },
  });

  async function beat(): Promise<void> {
    if (isBeating || isClosed) return;
    isBeating = true;
    try {
      // It was stopped for a while, and may have been declared dead.
      const sent = performance.now();
      const isLate = sent - lastBeat > DEAD_AFTER;
      await store.beat(id, DEAD_AFTER);
      lastBeat = performance.now();
      if (!isClosed) lease.renewed(sent, lastBeat);
      if (isLate) {
        quietUntil = lastBeat + DEAD_AFTER;
        resync();
      }
      const replicas = await store.replicas();
      // While we or the store were away, the others could not be seen. They count as before.
      const isQuiet = performance.now() < quietUntil;
      const wasAlive = alive;
      const isThere = (one: KnownReplica) => one.isAlive || (isQuiet && wasAlive.has(one.id));
      alive = new Set([id, ...replicas.filter(isThere).map((one) => one.id)]);
      for (const one of waiting.values()) {
        for (const other of one.left) if (!alive.has(other)) one.left.delete(other);
        if (one.left.size === 0) one.done();
      }
      const dead = replicas.filter((one) => !one.isAlive && one.id !== id).map((one) => one.id);
      void takeAll(performance.now() >= quietUntil ? dead : []);
    } catch {
      // The store reports by itself that it cannot be reached.
    } finally {
      isBeating = false;
    }
  }

  /** It may take longer than a replica may be silent, so signs of life do not wait for it. */
  async function takeAll(dead: readonly string[]): Promise<void> {
    if (isTaking || isClosed) return;
    isTaking = true;
    try {
      if (isInDoubt) await findStrays();
      for (const one of dead) await bury(one);
    } catch {
      // The store cannot be reached. The next sign of life tries again.
    } finally {
      isTaking = false;
    }
  }

  /** Takes a call that is in the name of `from`, if it still is. */
  async function takeFrom(from: string, call: LedgerKey): Promise<void> {
    const taken = await store.take(call, from, id).catch((error: unknown) => {
      isInDoubt = true;
      throw error;
    });
    if (taken !== null) taking?.take(taken, from);
  }

  /** Finds the calls in our name that we do not have in hand. */
  async function findStrays(): Promise<void> {
    if (taking === null) return;
    isInDoubt = false;
    try {
      for (const call of await store.owned(id)) if (!taking.hasInHand(call)) await takeFrom(id, call);
      if (!isInDoubt) taking.settled();
    } catch (error) {
      isInDoubt = true;
      throw error;
    }
  }

  async function bury(dead: string): Promise<void> {
    if (taking === null || isClosed || !(await store.claim(dead, id, CLAIM))) return;
    const calls = await store.owned(dead);
    for (const call of calls) await takeFrom(dead, call);
    // It has come back.
    if (!(await store.retire(dead, id))) return;
    events.note(`replica ${dead} is gone${calls.length === 0 ? '' : `; it left ${calls.length} calls`}`);
  }

  await beat();
  const timer = setInterval(() => void beat(), BEAT).unref();

  return {
    id,
    store,
    get isUp() {
      return store.isUp;
    },
    holds: (since) => lease.holds(since, performance.now()),
    get count() {
      return alive.size;
    },
    get others() {
      return othersOf(alive, id);
    },
    isAlive: (one) => alive.has(one),
    keysFor: sealing.keysFor,
    seal: sealing.seal,
    open: sealing.open,
    map(name, changed = () => {}) {
      const map = new MirroredMap(name, { store, sealing, changed, told: (write, body) => acked(write, 'map', body) });
      maps.set(name, map);
      loading = Promise.all([loading, map.load(true)]);
      // Who waits for it is told.
      loading.catch(() => {});
      return map;
    },
    async loaded() {
      await loading;
    },
    publish: (kind, body) => acked((news) => store.publish(news), kind, body),
    send,
    hear(kind, one) {
      const all = heard.get(kind) ?? new Set();
      heard.set(kind, all.add(one));
      return () => all.delete(one);
    },
    takeOver(given) {
      taking = given;
    },
    doubt() {
      isInDoubt = true;
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      lease.end();
      clearInterval(timer);
      for (const one of waiting.values()) one.done();
      try {
        // Calls that are still in the ledger are left to the others, who find this replica dead.
        if (!(await store.retire(id, id))) await store.beat(id, 1);
      } catch (error) {
        events.note(`the store was not told of the end: ${messageOf(error)}`);
      }
      await store.close();
    },
  };
}

function othersOf(alive: ReadonlySet<string>, id: string): string[] {
  return [...alive].filter((one) => one !== id);
}
