/**
 * The reply to one call of a session that several replicas share. Messages are in the store before the client gets them, so
 * that another replica can go on: with the stream if the client comes back there, and with the call if this replica is
 * killed. The store refuses what a replica writes that has lost the call. An answer that is the only message goes to the
 * client at once while no other replica can have the call, and a moment later to the store: then it costs no crossing of its
 * own. A replica that is killed in that moment leaves a call behind whose client mostly has its answer.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayError } from '../../../base/errors.ts';
import { oneLine } from '../../../protocol/json.ts';
import { idText, type Message } from '../../../protocol/message.ts';
import { join } from '../../../protocol/parts.ts';
import { errorObject, errorReply, errorResult, type Reply, resultReply } from '../../../protocol/rpc.ts';
import { SSE_DATA, SSE_END, SSE_KEEPALIVE } from '../../../protocol/sse.ts';
import type { Replica } from '../../../store/shared/replica.ts';
import type { LedgerKey, StoredEvent, Written } from '../../../store/shared/shared-store.ts';
import { type Exchange, SLOW } from '../../answer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { sendReply } from '../wire/reply.ts';
import { startStream } from './stream.ts';

/** Milliseconds until a call that has no answer yet becomes a stream, so that its client has an event to come back to. */
const PRIME_AFTER = 100;
/** Milliseconds that answers are kept: for a client that has an event to come back to, and for one that sends its request again. */
const KEPT_STREAM = 5 * 60_000;
const KEPT_ANSWER = 30_000;
/** Milliseconds between tries while the store cannot be reached, and until a client that waits is answered without it. */
const RETRY = 200;
const PATIENCE = 5_000;
/** Milliseconds after which a reader looks by itself: the message that wakes it may be lost. */
const TICK = 1_000;

const NOTHING = Buffer.alloc(0);

export function eventId(stream: string, epoch: number, number: number): string {
  return `${stream}_${epoch}-${number}`;
}

/** Null if it is not one of ours. */
export function readEventId(
  text: string,
): { readonly stream: string; readonly after: readonly [number, number] } | null {
  const [, stream, epoch, number] = /^([\w-]{1,64})_(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  return stream === undefined ? null : { stream, after: [Number(epoch), Number(number)] };
}

type EventPosition = Omit<StoredEvent, 'bytes'>;

export function eventText(stream: string, { epoch, number }: EventPosition, message: Buffer): Reply {
  return { head: `id: ${eventId(stream, epoch, number)}\n${SSE_DATA}`, body: oneLine(message), tail: SSE_END };
}

export const sealedAt = ({ session, stream }: LedgerKey) => `event:${session}:${stream}`;

/** Wakes those who read a stream on this replica. */
export class Wakes {
  readonly #waiting = new Map<string, Set<() => void>>();

  wake({ session, stream }: LedgerKey): void {
    for (const one of this.#waiting.get(`${session} ${stream}`) ?? []) one();
  }

  /** Resolves at the next wake, or after `ms`. */
  next({ session, stream }: LedgerKey, ms: number): Promise<void> {
    const key = `${session} ${stream}`;
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        waiting.delete(done);
        if (waiting.size === 0) this.#waiting.delete(key);
        resolve();
      };
      const timer = setTimeout(done, ms).unref();
      waiting.add(done);
    });
  }
}

export interface SharedExchangeOptions {
  readonly replica: Replica;
  readonly wakes: Wakes;
  readonly backpressure: Backpressure;
  readonly call: LedgerKey;
  readonly epoch: number;
  /** Null if the call was taken over: its client may come back for it. */
  readonly response: ServerResponse | null;
  readonly headers: readonly string[];
  /** Whether the client reads event streams, and whether it understands an event without a message. */
  readonly streams: boolean;
  readonly primes: boolean;
  /** Progress up to this was sent before the call was taken over; null if it was not. */
  readonly progressed?: number | null;
  /** It is over. */
  ended(): void;
}

export class SharedExchange implements Exchange {
  readonly #options: SharedExchangeOptions;
  readonly #primer: NodeJS.Timeout | undefined;
  #number = 0;
  /** The last event that the client has from here. */
  #delivered: readonly [epoch: number, number: number] = [0, 1];
  #isStreaming = false;
  #isOver = false;
  /** Whether this replica writes to the client itself. If not, a reader of the stream does. */
  #writes: boolean;
  /** One after the other, so that the order stays. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: SharedExchangeOptions) {
    this.#options = options;
    this.#writes = options.response !== null;
    if (options.response !== null && options.streams)
      this.#primer = setTimeout(() => this.#prime(), PRIME_AFTER).unref();
  }

  /** Its client can come back for the answer, so there is always one. */
  get isGone(): boolean {
    return false;
  }

  get isFull(): boolean {
    return (this.#options.response?.writableLength ?? 0) > SLOW;
  }

  whenDrained(proceed: () => void): void {
    const { response } = this.#options;
    if (response === null || response.destroyed) proceed();
    else response.once('drain', proceed).once('close', proceed);
  }

  keepAlive(): void {
    if (this.#isStreaming) this.#options.response?.write(SSE_KEEPALIVE);
    else this.#prime();
  }

  send(message: Buffer): void {
    if (this.#isOver || this.#isOld(message)) return;
    this.#stream();
    this.#add(message, false);
  }

  finish(reply: Reply): void {
    const bytes = Buffer.concat([
      Buffer.from(reply.head, 'latin1'),
      join(reply.body),
      Buffer.from(reply.tail, 'latin1'),
    ]);
    this.#add(bytes, true);
  }

  abandon(): void {
    this.#add(NOTHING, true);
  }

  /** Ends the call with this error, because nobody will know its outcome. Resolves when that is written. */
  giveUp(message: Message, error: GatewayError): Promise<unknown> {
    this.finish(unknownReply(message, error));
    return this.#last;
  }

  #prime(): void {
    const { response, primes, call, streams } = this.#options;
    if (this.#isOver || this.#isStreaming || response === null || response.destroyed || !streams) return;
    if (!primes) return;
    this.#stream();
    response.write(`id: ${eventId(call.stream, 0, 1)}\ndata: \n\n`);
  }

  #stream(): void {
    const { response, headers, streams, backpressure } = this.#options;
    if (this.#isStreaming || response === null || !streams) return;
    this.#isStreaming = true;
    startStream(response, headers);
    backpressure.opened(response);
  }

  /** Progress that was sent before the call was taken over is not sent again. */
  #isOld(message: Buffer): boolean {
    const { progressed = null } = this.#options;
    if (progressed === null || !message.includes('"notifications/progress"')) return false;
    return progressIn(message) <= progressed;
  }

  #add(message: Buffer, isLast: boolean): void {
    if (this.#isOver) return;
    if (isLast) {
      this.#isOver = true;
      clearTimeout(this.#primer);
    }
    const { replica, call, epoch } = this.#options;
    const position = { epoch, number: ++this.#number, isLast };
    const isGiven = isLast && position.number === 1 && this.#writes && replica.holdsCalls;
    if (isGiven) {
      this.#deliver(position, message);
      this.#writes = false;
    }
    const event = { ...position, bytes: message.length === 0 ? NOTHING : replica.seal(message, sealedAt(call)) };
    this.#last = this.#last.then(() => this.#store(event, message, isGiven));
  }

  /** `isGiven`: the client has it already. */
  async #store(event: StoredEvent, message: Buffer, isGiven: boolean): Promise<void> {
    const { replica, call, wakes } = this.#options;
    const keep = this.#isStreaming || this.#options.response === null ? KEPT_STREAM : KEPT_ANSWER;
    const latest = performance.now() + PATIENCE;
    for (;;) {
      const written = await replica.store.append(call, replica.id, event, keep, isGiven).catch(() => null);
      if (written !== null) {
        this.#written(written, event, message);
        wakes.wake(call);
        return;
      }
      // The store cannot be reached. Nobody else can take the call then, so a client that waits gets its answer.
      if (event.isLast && this.#writes && performance.now() > latest) {
        this.#deliver(event, message);
        this.#writes = false;
      }
      await sleep(RETRY, undefined, { ref: false });
    }
  }

  #written({ state, reader }: Written, event: StoredEvent, message: Buffer): void {
    const { replica, call } = this.#options;
    if (reader !== null) void replica.send(reader, 'wake', { ...call }).catch(() => {});
    if (this.#writes) {
      if (state === 'lost') this.#yield();
      else this.#deliver(event, message);
    }
    if (event.isLast) this.#options.ended();
  }

  /** Another replica has the call. The client gets what that one writes. */
  #yield(): void {
    const { response, headers, streams } = this.#options;
    this.#writes = false;
    if (response === null) return;
    void readStream(this.#options, response, headers, this.#delivered, streams);
  }

  #deliver(event: EventPosition, message: Buffer): void {
    const { response, headers, backpressure, call } = this.#options;
    if (response === null || response.destroyed) return;
    if (!this.#isStreaming) {
      if (!event.isLast) return;
      if (message.length === 0) {
        startStream(response, headers);
        response.end();
      } else sendReply(response, 200, { head: '', body: message, tail: '' }, headers, backpressure);
      return;
    }
    this.#delivered = [event.epoch, event.number];
    writeEvent(response, call.stream, event, message, backpressure);
  }
}

function writeEvent(
  response: ServerResponse,
  stream: string,
  event: EventPosition,
  message: Buffer,
  backpressure: Backpressure,
): void {
  if (message.length > 0) {
    const { head, body, tail } = eventText(stream, event, message);
    response.write(head, 'latin1');
    response.write(join(body));
    response.write(tail, 'latin1');
    backpressure.written(response);
  }
  if (event.isLast) response.end();
}

/**
 * Writes the events of a stream after a position to a client, those that are there and those that come. A client that
 * reads no streams gets the answer alone. Resolves to false if there is no such stream.
 */
export async function readStream(
  { replica, wakes, backpressure, call }: Pick<SharedExchangeOptions, 'replica' | 'wakes' | 'backpressure' | 'call'>,
  response: ServerResponse,
  headers: readonly string[],
  from: readonly [number, number],
  streams: boolean,
  reading: StreamReading = ALWAYS,
): Promise<boolean> {
  let after = from;
  while (reading.isCurrent()) {
    const woken = wakes.next(call, TICK);
    const events = await replica.store
      .events(call.session, call.stream, after, replica.id)
      .catch(() => 'down' as const);
    if (response.destroyed || response.writableEnded || !reading.isCurrent()) return true;
    if (events === null) {
      if (!response.headersSent) return false;
      response.end();
      return true;
    }
    if (streams && events !== 'down' && !response.headersSent) {
      startStream(response, headers);
      backpressure.opened(response);
    }
    for (const event of events === 'down' ? [] : events) {
      after = [event.epoch, event.number];
      const message = event.bytes.length === 0 ? NOTHING : replica.open(event.bytes, sealedAt(call));
      // What was not sealed by us is not passed on.
      if (message === null) continue;
      if (streams) writeEvent(response, call.stream, event, message, backpressure);
      else if (event.isLast) sendReply(response, 200, { head: '', body: message, tail: '' }, headers, backpressure);
      if (event.isLast) return true;
      reading.wrote(after);
    }
    await woken;
  }
  return true;
}

/** A stream that is read for as long as it is the one to be read. */
export interface StreamReading {
  isCurrent(): boolean;
  wrote(position: readonly [number, number]): void;
}

const ALWAYS: StreamReading = { isCurrent: () => true, wrote() {} };

export function unknownReply(message: Message, error: GatewayError): Reply {
  const id = idText(message);
  return message.method === 'tools/call' ? resultReply(id, errorResult(error)) : errorReply(id, errorObject(error));
}

export function progressIn(message: Buffer): number {
  try {
    const { params } = JSON.parse(message.toString()) as { params?: { progress?: unknown } };
    return typeof params?.progress === 'number' ? params.progress : Number.NaN;
  } catch {
    return Number.NaN;
  }
}
