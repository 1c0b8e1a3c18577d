/**
 * What replicas of one gateway share, as an engine keeps it: Redis, or the first process of `--processes`. An engine sees
 * sealed bytes only. Every method is one atomic step, so that a replica can be killed between any two.
 */
import type { Reply } from '../../protocol/rpc.ts';

/** What a replica reads of the engine. */
export interface StoreReader {
  /** News for all replicas, in the same order for each. */
  news(entry: Buffer): void;
  /** Something for this replica alone. */
  received(entry: Buffer): void;
  /** The engine is reached again. News may have been missed. */
  returned(): void;
}

export interface KnownReplica {
  readonly id: string;
  /** Whether it has given a sign of life lately. */
  readonly isAlive: boolean;
}

/** A call in the ledger, by its session and the stream of its events, which follows from the id of its request. */
export interface LedgerKey {
  readonly session: string;
  readonly stream: string;
}

export interface NewLedgerCall extends LedgerKey {
  /** The replica that makes the call. */
  readonly owner: string;
  /** Equal for equal requests. */
  readonly digest: string;
  /** The request, to make the call again, or what its answer needs. Text has no white space: it costs less. */
  readonly bytes: Buffer | string;
}

/** `gone`: the session is over. `known`: the same request came before. `taken`: another request has its id. */
export type Admission = 'fresh' | 'gone' | 'known' | 'taken';

/** An event of a stream: its position, and the message; empty for the end of a stream without a message. */
export interface StoredEvent {
  readonly epoch: number;
  readonly number: number;
  readonly bytes: Buffer;
  /** The name under which answers were sealed together, if the message is one of them. */
  readonly batch?: string;
  /** Whether no other follows. */
  readonly isLast: boolean;
}

/** `done`: the event is written. `lost`: another replica has the call now. `missing`: the engine does not know it. */
export interface Written {
  readonly state: 'done' | 'lost' | 'missing';
  /** The replica with a client that reads the stream; null if it is nobody else's. */
  readonly reader: string | null;
}

/** A call that another replica has left. */
export interface TakenCall extends LedgerKey {
  readonly epoch: number;
  readonly bytes: Buffer;
  /** Whether a client has come back to wait for its events. */
  readonly isRead: boolean;
}

/** A budget of calls: a rate (`interval` and `burst` in milliseconds), or calls of a day. */
export type CallBudget =
  | { readonly key: string; readonly interval: number; readonly burst: number }
  | { readonly key: string; readonly limit: number };

/** Which budget is used up, by its index, and for how many milliseconds if it is a rate. */
export interface UsedUp {
  readonly index: number;
  readonly pause: number;
}

export interface SharedStore {
  readonly isUp: boolean;
  /** From now on the reader gets what is new. */
  follow(replica: string, reader: StoreReader): Promise<void>;

  // Replicas
  beat(replica: string, ms: number): Promise<void>;
  replicas(): Promise<readonly KnownReplica[]>;
  /**
   * Forgets a replica that has ended. False if it has calls under way, or gives signs of life and does not ask for it
   * itself.
   */
  retire(replica: string, by: string): Promise<boolean>;
  /** Whether this replica alone may take over what a dead one left. */
  claim(dead: string, by: string, ms: number): Promise<boolean>;
  /** The calls that a replica has under way. */
  owned(replica: string): Promise<readonly LedgerKey[]>;
  publish(entry: Buffer): Promise<void>;
  send(replica: string, entry: Buffer): Promise<void>;

  // Maps, which every replica has in memory
  /** Sets an entry, or removes it, and publishes `news` in the same step. */
  setEntry(map: string, key: string, value: Buffer | null, news: Buffer): Promise<void>;
  entries(map: string): Promise<ReadonlyMap<string, Buffer>>;

  // Sessions
  openSession(id: string, fields: Readonly<Record<string, Buffer>>, ms: number): Promise<void>;
  /** Null if it is over. */
  session(id: string, ms: number): Promise<Readonly<Record<string, Buffer>> | null>;
  /** False if it is over. */
  setSession(id: string, fields: Readonly<Record<string, Buffer>>, ms: number): Promise<boolean>;
  endSession(id: string): Promise<boolean>;
  /** This replica has the client's stream for notifications. */
  hold(session: string, replica: string): Promise<void>;
  /**
   * Writes a message to the stream for notifications, unless `mark` has this value already. Resolves to the replica that
   * has the stream open; null if none, or if nothing was written.
   */
  tell(session: string, message: Buffer, mark: readonly [name: string, value: string] | null): Promise<string | null>;

  // The ledger of calls, and their events
  admit(call: NewLedgerCall): Promise<Admission>;
  /** Writes an event once, even if it is asked twice because the first reply was lost. */
  append(call: LedgerKey, owner: string, event: StoredEvent, keep: number): Promise<Written>;
  /**
   * Writes an answer that is the only event of a call of ours, a few milliseconds later and sealed together with others.
   * `seal` and `keep` are the same for all.
   */
  answerLate(
    call: LedgerKey,
    owner: string,
    epoch: number,
    reply: Reply,
    keep: number,
    seal: (plain: Buffer, place: string) => Buffer,
  ): Promise<Written>;
  /** Null if `from` does not make it any more, or is another replica and gives signs of life. */
  take(call: LedgerKey, from: string, by: string): Promise<TakenCall | null>;
  /** The replica that makes a call; null if none does. */
  ownerOf(call: LedgerKey): Promise<string | null>;
  /** The events of a stream after a position; null if the stream is not known. `reader` is told of later ones. */
  events(
    session: string,
    stream: string,
    after: readonly [epoch: number, number: number],
    reader: string,
  ): Promise<readonly StoredEvent[] | null>;

  // Limits and results
  spend(budgets: readonly CallBudget[]): Promise<UsedUp | null>;
  keepResult(key: string, value: Buffer, ms: number): Promise<void>;
  findResult(key: string): Promise<Buffer | null>;

  close(): Promise<void>;
}

/** The stream of a session for messages that belong to no request. */
export const STANDING = 's';
/** How many events of a stream are kept. */
export const MOST_EVENTS = 1_000;
/** How many news are kept for replicas that are late. */
export const MOST_NEWS = 10_000;
/** Milliseconds for which a call is in the ledger if nobody ends it. */
export const LONGEST_CALL = 24 * 3_600_000;
/** Milliseconds of a day's count: longer than a day, because clocks differ. */
export const DAY_KEPT = 49 * 3_600_000;
/** Milliseconds that notifications are kept for a client that comes back. */
export const STANDING_KEPT = 10 * 60_000;
