/**
 * The engine in the memory of one process, for replicas on one machine: the first process of `--processes` keeps it. It
 * does what the scripts of redis-store.ts do, step for step.
 */
import { answersAt, joinAnswers } from './answers.ts';
import {
  type Admission,
  DAY_KEPT,
  type LedgerKey,
  LONGEST_CALL,
  MOST_EVENTS,
  type SharedStore,
  STANDING,
  STANDING_KEPT,
  type StoredEvent,
  type StoreReader,
} from './shared-store.ts';

interface LedgerCall {
  owner: string;
  epoch: number;
  /** The last event of this epoch. */
  number: number;
  isDone: boolean;
  readonly digest: string;
  bytes: Buffer;
  reader: string | null;
}

/** Entries that end by themselves. They are looked at when they are used, and now and then all together. */
class Expiring<T> {
  readonly entries = new Map<string, { value: T; until: number }>();

  get(key: string): T | undefined {
    const known = this.entries.get(key);
    if (known === undefined) return undefined;
    if (known.until > performance.now()) return known.value;
    this.entries.delete(key);
    return undefined;
  }

  set(key: string, value: T, ms: number): void {
    this.entries.set(key, { value, until: performance.now() + ms });
  }

  touch(key: string, ms: number): void {
    const known = this.entries.get(key);
    if (known !== undefined) known.until = performance.now() + ms;
  }

  sweep(): void {
    const now = performance.now();
    for (const [key, { until }] of this.entries) if (until <= now) this.entries.delete(key);
  }
}

const SWEEP = 30_000;

/** `unfollow`: the process of this replica has ended. */
export function createMemoryStore(): SharedStore & { unfollow(replica: string): void } {
  const readers = new Map<string, StoreReader>();
  const replicas = new Set<string>();
  const beats = new Expiring<true>();
  const claims = new Expiring<string>();
  const owned = new Map<string, Map<string, LedgerKey>>();
  const maps = new Map<string, Map<string, Buffer>>();
  const sessions = new Expiring<Map<string, Buffer>>();
  const calls = new Expiring<LedgerCall>();
  const streams = new Expiring<StoredEvent[]>();
  const budgets = new Expiring<number>();
  const results = new Expiring<Buffer>();
  let last = 0;
  const timer = setInterval(() => {
    for (const one of [beats, claims, sessions, calls, streams, budgets, results]) one.sweep();
  }, SWEEP).unref();

  const callKey = ({ session, stream }: LedgerKey) => `${session} ${stream}`;
  const ownedBy = (replica: string) => {
    const own = owned.get(replica) ?? new Map<string, LedgerKey>();
    owned.set(replica, own);
    return own;
  };
  const add = (key: string, event: StoredEvent, ms: number) => {
    const events = streams.get(key) ?? [];
    events.push(event);
    if (events.length > MOST_EVENTS) events.shift();
    streams.set(key, events, ms);
  };
  const publish = (entry: Buffer) => {
    for (const reader of readers.values()) reader.news(entry);
  };

  return {
    isUp: true,
    async follow(replica, reader) {
      readers.set(replica, reader);
    },
    unfollow: (replica) => void readers.delete(replica),
    async beat(replica, ms) {
      replicas.add(replica);
      beats.set(replica, true, ms);
    },
    replicas: async () => [...replicas].map((id) => ({ id, isAlive: beats.get(id) !== undefined })),
    async retire(replica, by) {
      claims.entries.delete(replica);
      const isAlive = replica !== by && beats.get(replica) !== undefined;
      if (isAlive || (owned.get(replica)?.size ?? 0) > 0) return false;
      replicas.delete(replica);
      // One that was only stopped goes on to hear the others.
      if (replica === by) readers.delete(replica);
      owned.delete(replica);
      beats.entries.delete(replica);
      return true;
    },
    async claim(dead, by, ms) {
      if (claims.get(dead) !== undefined) return false;
      claims.set(dead, by, ms);
      return true;
    },
    owned: async (replica) => [...(owned.get(replica)?.values() ?? [])],
    async publish(entry) {
      publish(entry);
    },
    async send(replica, entry) {
      readers.get(replica)?.received(entry);
    },

    async setEntry(map, key, value, news) {
      const entries = maps.get(map) ?? new Map<string, Buffer>();
      maps.set(map, entries);
      if (value === null) entries.delete(key);
      else entries.set(key, value);
      publish(news);
    },
    entries: async (map) => new Map(maps.get(map)),

    async openSession(id, fields, ms) {
      sessions.set(id, new Map(Object.entries(fields)), ms);
    },
    async session(id, ms) {
      const fields = sessions.get(id);
      if (fields === undefined) return null;
      sessions.touch(id, ms);
      return Object.fromEntries(fields);
    },
    async setSession(id, fields, ms) {
      const known = sessions.get(id);
      if (known === undefined) return false;
      for (const [name, value] of Object.entries(fields)) known.set(name, value);
      if (ms > 0) sessions.touch(id, ms);
      return true;
    },
    async endSession(id) {
      streams.entries.delete(`${id} ${STANDING}`);
      const isKnown = sessions.get(id) !== undefined;
      sessions.entries.delete(id);
      return isKnown;
    },
    async hold(session, replica) {
      sessions.get(session)?.set('holder', Buffer.from(replica));
    },
    async tell(session, message, mark) {
      const fields = sessions.get(session);
      if (fields === undefined) return null;
      if (mark !== null) {
        if (fields.get(mark[0])?.toString() === mark[1]) return null;
        fields.set(mark[0], Buffer.from(mark[1]));
      }
      add(`${session} ${STANDING}`, { epoch: 1, number: ++last, bytes: message, isLast: false }, STANDING_KEPT);
      return fields.get('holder')?.toString() ?? null;
    },

    async admit(call): Promise<Admission> {
      const { session, owner, stream, digest, bytes } = call;
      const key = callKey(call);
      if (sessions.get(session) === undefined) return 'gone';
      const known = calls.get(key);
      if (known?.digest === digest) return 'known';
      if (known?.isDone === false) return 'taken';
      replicas.add(owner);
      calls.set(
        key,
        { owner, epoch: 1, number: 0, isDone: false, digest, bytes: Buffer.from(bytes as string), reader: null },
        LONGEST_CALL,
      );
      ownedBy(owner).set(key, { session, stream });
      streams.entries.delete(key);
      return 'fresh';
    },
    async append(call, owner, event, keep) {
      const key = callKey(call);
      const known = calls.get(key);
      if (known === undefined) return { state: 'missing', reader: null };
      if (known.owner !== owner || known.epoch !== event.epoch) return { state: 'lost', reader: null };
      const reader = known.reader === owner ? null : known.reader;
      if (event.number <= known.number) return { state: 'done', reader };
      if (known.isDone) return { state: 'lost', reader: null };
      known.number = event.number;
      add(key, event, LONGEST_CALL);
      if (event.isLast) {
        known.isDone = true;
        known.bytes = Buffer.alloc(0);
        owned.get(owner)?.delete(key);
        calls.touch(key, keep);
        streams.touch(key, keep);
      }
      return { state: 'done', reader };
    },
    answerLate(call, owner, epoch, reply, keep, seal) {
      const batch = `${owner}-${++last}`;
      const bytes = seal(joinAnswers([{ ...call, reply }]), answersAt(batch));
      return this.append(call, owner, { epoch, number: 1, bytes, isLast: true, batch }, keep);
    },
    async take({ session, stream }, from, by) {
      if (from !== by && beats.get(from) !== undefined) return null;
      const key = callKey({ session, stream });
      const known = calls.get(key);
      owned.get(from)?.delete(key);
      if (known === undefined || known.owner !== from || known.isDone) return null;
      known.owner = by;
      known.epoch++;
      known.number = 0;
      ownedBy(by).set(key, { session, stream });
      return { session, stream, epoch: known.epoch, bytes: known.bytes, isRead: known.reader !== null };
    },
    async ownerOf(call) {
      const known = calls.get(callKey(call));
      return known === undefined || known.isDone ? null : known.owner;
    },
    async events(session, stream, [epoch, number], reader) {
      const key = callKey({ session, stream });
      const call = calls.get(key);
      if (call !== undefined) call.reader = reader;
      const events = streams.get(key);
      if (events === undefined) return call !== undefined || stream === STANDING ? [] : null;
      return events.filter((one) => one.epoch > epoch || (one.epoch === epoch && one.number > number));
    },

    async spend(wanted) {
      const now = performance.now();
      for (const [index, one] of wanted.entries()) {
        const value = budgets.get(one.key) ?? 0;
        if ('limit' in one) {
          if (value >= one.limit) return { index, pause: 0 };
        } else {
          const pause = value - now - (one.burst - one.interval);
          if (pause > 0.001) return { index, pause };
        }
      }
      for (const one of wanted) {
        const value = budgets.get(one.key) ?? 0;
        if ('limit' in one) budgets.set(one.key, value + 1, DAY_KEPT);
        else {
          const full = Math.max(value, now) + one.interval;
          budgets.set(one.key, full, full - now);
        }
      }
      return null;
    },
    async keepResult(key, value, ms) {
      results.set(key, value, ms);
    },
    findResult: async (key) => results.get(key) ?? null,
    async close() {
      clearInterval(timer);
    },
  };
}
