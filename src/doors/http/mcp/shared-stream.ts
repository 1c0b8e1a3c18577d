/** The events of a call in the store: their names, what they look like to a client, and reading them. */
import type { ServerResponse } from 'node:http';
import { oneLine } from '../../../protocol/json.ts';
import { join } from '../../../protocol/parts.ts';
import type { Reply } from '../../../protocol/rpc.ts';
import { SSE_DATA, SSE_END } from '../../../protocol/sse.ts';
import { answerIn, answersAt } from '../../../store/shared/answers.ts';
import type { Replica } from '../../../store/shared/replica.ts';
import type { LedgerKey, StoredEvent } from '../../../store/shared/shared-store.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { sendReply } from '../wire/reply.ts';
import { startStream } from './stream.ts';

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

export type EventPosition = Omit<StoredEvent, 'bytes' | 'batch'>;

export function eventText(stream: string, { epoch, number }: EventPosition, message: Buffer): Reply {
  return { head: `id: ${eventId(stream, epoch, number)}\n${SSE_DATA}`, body: oneLine(message), tail: SSE_END };
}

/** The message of an event; null if it was not sealed by us, for this call. */
export function openEvent({ open }: Replica, call: LedgerKey, { bytes, batch }: StoredEvent): Buffer | null {
  if (bytes.length === 0) return NOTHING;
  if (batch === undefined) return open(bytes, sealedAt(call));
  const joined = open(bytes, answersAt(batch));
  return joined === null ? null : answerIn(joined, call);
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

export function writeEvent(
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

/** A stream, and what is needed to read it. */
export interface StreamOf {
  readonly replica: Replica;
  readonly wakes: Wakes;
  readonly backpressure: Backpressure;
  readonly call: LedgerKey;
}

/**
 * Writes the events of a stream after a position to a client, those that are there and those that come. A client that
 * reads no streams gets the answer alone. Resolves to false if there is no such stream.
 */
export async function readStream(
  { replica, wakes, backpressure, call }: StreamOf,
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
      const message = openEvent(replica, call, event);
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
