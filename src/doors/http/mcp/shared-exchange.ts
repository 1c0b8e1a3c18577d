/**
 * The reply to one call of a session that several replicas share. Messages are in the store before the client gets them, so
 * that another replica can go on: with the stream if the client comes back there, and with the call if this replica is
 * killed. The store refuses what a replica writes that has lost the call.
 *
 * One kind of answer goes to the client first, and a few milliseconds later to the store, together with others: one that is
 * the whole reply, while no other replica can have the call. It has no event id, so nobody comes back for what follows it.
 * If the replica is killed in that moment, the others find a call without an answer. They end it as unknown, or make it
 * again if that is declared safe, as they do with any other. A client that has its answer does not ask, and one that has it
 * not cannot tell this from a replica that was killed a moment earlier.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { GatewayError } from '../../../base/errors.ts';
import { idText, type Message } from '../../../protocol/message.ts';
import { errorObject, errorReply, errorResult, type Reply, resultReply } from '../../../protocol/rpc.ts';
import { SSE_KEEPALIVE } from '../../../protocol/sse.ts';
import { bytesOf } from '../../../store/shared/answers.ts';
import type { Written } from '../../../store/shared/shared-store.ts';
import { type Exchange, SLOW } from '../../answer.ts';
import { sendReply } from '../wire/reply.ts';
import { type EventPosition, eventId, readStream, type StreamOf, sealedAt, writeEvent } from './shared-stream.ts';
import { startStream } from './stream.ts';

/** Milliseconds until a call that has no answer yet becomes a stream, so that its client has an event to come back to. */
const PRIME_AFTER = 100;
/** Milliseconds that answers are kept: for a client that has an event to come back to, and for one that sends its request again. */
const KEPT_STREAM = 5 * 60_000;
const KEPT_ANSWER = 30_000;
/** Milliseconds between tries while the store cannot be reached, and until a client that waits is answered without it. */
const RETRY = 200;
const PATIENCE = 5_000;
const NOTHING = Buffer.alloc(0);

export interface SharedExchangeOptions extends StreamOf {
  readonly epoch: number;
  /** When it was asked for. */
  readonly since: number;
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
    if (this.#isOver) return;
    if (this.#canGive()) this.#give(reply);
    else this.#add(bytesOf(reply), true);
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
    const event = { ...position, bytes: message.length === 0 ? NOTHING : replica.seal(message, sealedAt(call)) };
    const keep = this.#isStreaming || this.#options.response === null ? KEPT_STREAM : KEPT_ANSWER;
    const write = () => replica.store.append(call, replica.id, event, keep);
    this.#last = this.#last.then(() => this.#store(position, message, write));
  }

  /** Whether the client may have the whole reply before the store. */
  #canGive(): boolean {
    const { response, replica, since } = this.#options;
    const isAll = this.#number === 0 && !this.#isStreaming;
    return isAll && this.#writes && response?.destroyed === false && replica.holds(since);
  }

  #give(reply: Reply): void {
    this.#isOver = true;
    this.#writes = false;
    clearTimeout(this.#primer);
    const { replica, call, epoch, response, headers, backpressure } = this.#options;
    sendReply(response!, 200, reply, headers, backpressure);
    const write = () => replica.store.answerLate(call, replica.id, epoch, reply, KEPT_ANSWER, replica.seal);
    const position = { epoch, number: 1, isLast: true };
    this.#last = write().then(
      (written) => this.#written(written, position, NOTHING),
      () => this.#store(position, NOTHING, write),
    );
  }

  async #store(position: EventPosition, message: Buffer, write: () => Promise<Written>): Promise<void> {
    const latest = performance.now() + PATIENCE;
    for (;;) {
      const written = await write().catch(() => null);
      if (written !== null) {
        this.#written(written, position, message);
        return;
      }
      // The store cannot be reached. Nobody else can take the call then, so a client that waits gets its answer.
      if (position.isLast && this.#writes && performance.now() > latest) {
        this.#deliver(position, message);
        this.#writes = false;
      }
      await sleep(RETRY, undefined, { ref: false });
    }
  }

  #written({ state, reader }: Written, event: EventPosition, message: Buffer): void {
    const { replica, call, wakes } = this.#options;
    if (reader !== null) void replica.send(reader, 'wake', { ...call }).catch(() => {});
    if (this.#writes) {
      if (state === 'lost') this.#yield();
      else this.#deliver(event, message);
    }
    if (event.isLast) this.#options.ended();
    wakes.wake(call);
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
