/** The requests of one connection that wait for an answer: ids, time-outs, progress tokens. */
import { GatewayError } from '../base/errors.ts';
import type { Sink, SourceRequest, Ticket } from '../protocol/contract.ts';
import { requiredUrls } from '../protocol/elicitation.ts';
import { decodeString, findMember, splice } from '../protocol/json.ts';
import { isHeard, isLogLevel, type LogLevel } from '../protocol/levels.ts';
import { idText, type Message } from '../protocol/message.ts';
import { SUBSCRIPTION_ID } from '../protocol/meta.ts';
import type { Parts } from '../protocol/parts.ts';
import { readProgress } from '../protocol/progress.ts';
import { ASKING, isAskable } from '../protocol/question.ts';
import type { Era } from '../protocol/revisions.ts';
import { createAbandonedRequests } from './abandoned.ts';
import type { Refusal } from './connection.ts';
import { createElicitations, type Elicitations } from './elicitations.ts';
import { CAPABILITY_MISSING, HEADER_MISMATCH, REVISION_UNSUPPORTED } from './refusal.ts';
import { Slots } from './slots.ts';

export interface Waiting extends Ticket {
  readonly id: number;
  readonly request: SourceRequest;
  /** What carries the request, where it has something of its own to stop. */
  carrier: { abort(error: Error): void } | null;
  /** What the request goes on under after `withdraw`. */
  next: Ticket | null;
}

export interface Pending {
  /** How the other side speaks. */
  era: Era;
  readonly size: number;
  add(request: SourceRequest): Waiting;
  has(id: number): boolean;
  all(): readonly Waiting[];
  /** Takes a request out without an answer; false where it is out already. */
  withdraw(id: number): boolean;
  /** Hands a response to whoever waits for it, if anybody does. `id` is for one that does not name its request. */
  settle(message: Message, id?: number): void;
  /** Hands over a result that was found without reading the whole message. */
  deliver(id: number, result: Parts): void;
  /**
   * The requests that a question may belong to, where one of their callers has this capability: none where nobody can be
   * meant. `id` is the one it came with, `task` the task it is about: null then, where nobody has come for its result yet.
   * A null among them is one that was given up, and may be meant all the same.
   */
  candidates(capability: string, id: number | null, task: string | null): (Waiting | null)[] | null;
  /** Requests in whose course the server may ask something, those that were given up included. */
  readonly asking: number;
  /** Those of them whose callers can be asked. */
  readonly askable: number;
  /** The addresses that callers were sent to. */
  readonly elicitations: Elicitations;
  /** Stops the clock of a request while a person is asked; returns what starts it again. */
  pause(waiting: Waiting): () => void;
  /** Hands a log message to the request whose reply it came with (`id`), or to the one it must belong to. */
  log(message: Message, id: number | null): void;
  /** Hands progress, or what belongs to a `subscriptions/listen`, to its request; false where there is none for it. */
  hear(message: Message, id: number | null): boolean;
  fail(id: number, error: GatewayError): void;
  failAll(error: GatewayError): void;
}

/** One request under way. A class at the top of the file, because one made for each connection would slow every call down. */
class Entry implements Waiting {
  readonly id: number;
  readonly request: SourceRequest;
  readonly table: Table;
  /** When it is given up: for want of a sign of life, and in any case. */
  deadline: number;
  readonly latest: number;
  /** Questions open in its course. */
  pauses = 0;
  carrier: { abort(error: Error): void } | null = null;
  next: Ticket | null = null;

  constructor(table: Table, id: number, request: SourceRequest) {
    this.table = table;
    this.id = id;
    this.request = request;
    const now = performance.now();
    this.latest = now + request.totalTimeout;
    this.deadline = Math.min(now + request.timeout, this.latest);
  }

  /** Starts the clock anew, unless a person is being waited for. */
  live(): void {
    if (this.pauses === 0) this.deadline = Math.min(performance.now() + this.request.timeout, this.latest);
  }

  cancel(reason: string): void {
    if (this.table.waiting.take(this.id) !== undefined) this.table.abandoned(this, reason);
    else this.next?.cancel(reason);
  }
}

interface Table {
  readonly source: string;
  readonly waiting: Slots<Entry>;
  readonly abandoned: (waiting: Entry, reason: string) => void;
}

export interface PendingEvents {
  /** A request ended without an answer while the server may still be working on it. */
  abandoned(waiting: Waiting, reason: string): void;
  refused(request: SourceRequest, refusal: Refusal): Ticket | null;
}

// One clock for all connections, running only while something waits: a timer for each call costs more than the rest of
// keeping track of it.
const TICK = 50;
const busy = new Set<Table>();
let clock: NodeJS.Timeout | null = null;

function startClock(table: Table): void {
  busy.add(table);
  clock ??= setInterval(tick, TICK);
}

function tick(): void {
  const now = performance.now();
  for (const table of busy) {
    for (const entry of table.waiting.all()) if (entry.deadline <= now) expire(entry);
    if (table.waiting.size === 0) busy.delete(table);
  }
  if (busy.size > 0 || clock === null) return;
  clearInterval(clock);
  clock = null;
}

function expire(entry: Entry): void {
  const { table, id, request } = entry;
  const { method, timeout, totalTimeout, sink } = request;
  table.waiting.take(id);
  table.abandoned(entry, 'timed out');
  const isTotal = entry.deadline === entry.latest && totalTimeout > timeout;
  const [limit, name] = isTotal ? [totalTimeout, 'total_timeout'] : [Math.min(timeout, totalTimeout), 'timeout'];
  const text = `Server "${table.source}" did not answer ${method} within ${limit / 1000} s and was told to stop. Try again, or raise its ${name} in the configuration.`;
  sink.fail(new GatewayError('source_timeout', text));
}

const OPEN_BRACE = 0x7b;

function isErrorObject(bytes: Buffer, start: number, end: number): boolean {
  if (start < 0 || bytes[start] !== OPEN_BRACE) return false;
  const code = findMember(bytes, 'code', start, end);
  const message = findMember(bytes, 'message', start, end);
  return (
    code !== null &&
    message !== null &&
    /^-?\d/.test(bytes.toString('latin1', code.start, code.end)) &&
    bytes[message.start] === 0x22
  );
}

function hears({ logLevel }: Sink, level: LogLevel): boolean {
  return logLevel !== null && isHeard(level, logLevel);
}

function mayAsk({ request }: Waiting): boolean {
  return ASKING.has(request.method);
}

/** What a server says on a stream of its own for one `subscriptions/listen`. */
const ON_SUBSCRIPTION: ReadonlySet<string> = new Set([
  'notifications/subscriptions/acknowledged',
  'notifications/tasks',
]);

function subscriptionOf({ bytes, metaStart, metaEnd }: Message): number | null {
  const id = metaStart < 0 ? null : findMember(bytes, SUBSCRIPTION_ID, metaStart, metaEnd);
  return id === null ? null : Number(bytes.toString('latin1', id.start, id.end));
}

/** Nothing is logged about being told how much to log, being listened to, or being there. */
const UNLOGGED: ReadonlySet<string> = new Set(['logging/setLevel', 'subscriptions/listen', 'ping', 'server/discover']);

/** The codes by which a modern server refuses how we asked. They are about this connection, and mean nothing beyond it. */
const REFUSALS = [HEADER_MISMATCH, CAPABILITY_MISSING, REVISION_UNSUPPORTED];

function readRefusal(error: Buffer, era: Era): Refusal | null {
  const member = findMember(error, 'code')!;
  const code = Number(error.toString('latin1', member.start, member.end));
  if (!REFUSALS.includes(code)) return null;
  const data = readData(error);
  // In the earlier revisions the codes are free for any use, but a modern server may have taken the place of such a one.
  const isModern = era === 'modern' || (code === REVISION_UNSUPPORTED && Array.isArray(data?.supported));
  return isModern ? { code, error, data } : null;
}

function readData(error: Buffer): { readonly supported?: unknown } | null {
  try {
    return (JSON.parse(error.toString()) as { data?: object }).data ?? null;
  } catch {
    return null;
  }
}

/** What a call under way is told when its connection is closed, for a fault of the server or for none. */
export function failing(source: string, fault: string | undefined): GatewayError {
  if (fault === undefined) return new GatewayError('source_unavailable', `Server "${source}" is being stopped.`);
  return new GatewayError('source_broken', `Server "${source}" ${fault}. Try again in a moment.`);
}

export function createPending(source: string, { abandoned, refused }: PendingEvents): Pending {
  const givenUp = createAbandonedRequests();
  const table: Table = {
    source,
    waiting: new Slots(),
    abandoned(entry, reason) {
      if (!UNLOGGED.has(entry.request.method)) givenUp.add(entry.id, entry.request);
      abandoned(entry, reason);
    },
  };
  const { waiting } = table;
  const elicitations = createElicitations();

  function settleError(entry: Entry, error: Buffer): void {
    const refusal = readRefusal(error, pending.era);
    if (refusal === null) {
      for (const params of requiredUrls(error)) elicitations.note(params, entry.request.client);
      entry.request.sink.error(error, pending.era);
    } else entry.next = refused(entry.request, refusal);
  }

  function progress(message: Message): boolean {
    const found = readProgress(message);
    const entry = found === null ? undefined : waiting.get(found.token);
    if (found === null || entry === undefined) return false;
    const { token, sink } = entry.request;
    if (token === null) return true;
    entry.live();
    sink.notify(splice(message.bytes, found, token));
    return true;
  }

  function addressees(id: number | null, task: string | null): Entry[] | null {
    const all = waiting.all();
    const own = id === null ? undefined : waiting.get(id);
    // It may have come with the reply to anybody: to the server we are all one client.
    if (task !== null) {
      const waits = all.find(({ request }) => request.taskId === task);
      return waits === undefined ? null : [waits];
    }
    if (own !== undefined) return [own];
    return id === null ? all.filter(mayAsk) : [];
  }

  const pending: Pending = {
    era: 'legacy',
    get size() {
      return waiting.size;
    },
    add(request) {
      const entry = new Entry(table, waiting.nextId(), request);
      if (waiting.size === 0) startClock(table);
      waiting.put(entry);
      return entry;
    },
    has: (id) => waiting.get(id) !== undefined,
    all: () => waiting.all(),
    withdraw: (id) => waiting.take(id) !== undefined,
    settle(message, id) {
      const { bytes, idStart, resultStart, resultEnd, errorStart, errorEnd } = message;
      // Without an id it may be no answer at all, but something of the same shape.
      if (idStart < 0 && (id === undefined || !isErrorObject(bytes, errorStart, errorEnd))) return;
      const answered = id ?? Number(idText(message));
      const entry = waiting.take(answered);
      if (entry === undefined) {
        givenUp.answered(answered);
        return;
      }
      const { sink, method } = entry.request;
      // Anything else, passed on, would be no response: the caller would not recognise it and wait for ever.
      if (bytes[resultStart] === OPEN_BRACE) sink.result(bytes.subarray(resultStart, resultEnd), pending.era);
      else if (isErrorObject(bytes, errorStart, errorEnd)) settleError(entry, bytes.subarray(errorStart, errorEnd));
      else
        sink.fail(
          new GatewayError(
            'source_broken',
            `Server "${source}" answered ${method} with neither a result nor an error.`,
          ),
        );
    },
    deliver(id, result) {
      const entry = waiting.take(id);
      if (entry === undefined) givenUp.answered(id);
      else entry.request.sink.result(result, pending.era);
    },
    log(message, id) {
      const { bytes, paramsStart, paramsEnd } = message;
      const member = paramsStart < 0 ? null : findMember(bytes, 'level', paramsStart, paramsEnd);
      if (member === null || bytes[member.start] !== 0x22) return;
      const level = decodeString(bytes, member.start, member.end);
      if (!isLogLevel(level)) return;
      const own = id === null ? undefined : waiting.get(id);
      // It came with the reply to a call that is over.
      if (id !== null && own === undefined) return;
      const candidates =
        own !== undefined ? [own] : waiting.all().filter(({ request }) => !UNLOGGED.has(request.method));
      const sink = candidates[0]?.request.sink;
      // It may be about any of them: one of another caller, or one that wants to hear nothing, keeps it from all.
      const isFor = (other: Sink) => other.owner === sink?.owner && hears(other, level);
      if (sink === undefined || !candidates.every(({ request }) => isFor(request.sink))) return;
      if (own !== undefined || !givenUp.mayBeAbandoned(sink.owner, null)) sink.notify(bytes);
    },
    hear(message, id) {
      if (message.method === 'notifications/progress') return progress(message);
      if (!ON_SUBSCRIPTION.has(message.method)) return false;
      const entry = waiting.get(subscriptionOf(message) ?? id ?? -1);
      if (entry?.request.method !== 'subscriptions/listen') return false;
      entry.request.sink.notify(message.bytes);
      return true;
    },
    candidates(capability, id, task) {
      const entries = addressees(id, task);
      if (entries === null) return null;
      // The server takes us for one client, and may ask on behalf of a caller that cannot be asked.
      if (!entries.some(({ request }) => request.sink.asks.has(capability))) return [];
      const isHaunted = id === null && task === null && givenUp.mayBeAbandoned(entries[0]!.request.sink.owner, ASKING);
      return isHaunted ? [...entries, null] : entries;
    },
    get asking() {
      return waiting.all().filter(mayAsk).length + givenUp.count(ASKING);
    },
    get askable() {
      return waiting.all().filter((entry) => mayAsk(entry) && isAskable(entry.request.sink)).length;
    },
    elicitations,
    pause({ id }) {
      const entry = waiting.get(id);
      if (entry === undefined) return () => {};
      entry.pauses++;
      entry.deadline = entry.latest;
      return () => {
        entry.pauses--;
        entry.live();
      };
    },
    fail(id, error) {
      waiting.take(id)?.request.sink.fail(error);
    },
    failAll(error) {
      for (const { id } of waiting.all()) waiting.take(id)?.request.sink.fail(error);
    },
  };
  return pending;
}
