/**
 * The reply to one POST. It is plain JSON if nothing is sent before the answer, and an event stream otherwise. The
 * choice is made late, because plain JSON is cheaper and by far the more common case.
 */
import type { ServerResponse } from 'node:http';
import type { Credential } from '../../../calls/identity.ts';
import type { ResultStream } from '../../../protocol/contract.ts';
import { join } from '../../../protocol/parts.ts';
import type { Reply } from '../../../protocol/rpc.ts';
import { type Exchange, SLOW } from '../../answer.ts';
import type { Backpressure } from '../wire/backpressure.ts';
import { sendReply, startReply } from '../wire/reply.ts';
import { EventStream, type StreamLog, startStream, whenDrained } from './stream.ts';

export class HttpExchange implements Exchange {
  // Plain fields: one of these is created for every call, and private fields are slower.
  readonly response: ServerResponse;
  readonly headers: readonly string[];
  readonly backpressure: Backpressure;
  /** Keeps the stream's events for a client that reconnects; null if clients cannot. */
  readonly log: StreamLog | null;
  /** The credential of the request; null in a session, which keeps it itself. */
  readonly credential: Credential | null;
  stream: EventStream | null = null;
  /** Whether an answer is being sent whose result is still coming. */
  isUnderWay = false;
  expected: number;
  /** Whether the request was already running at the last keep-alive. */
  waited = false;

  /** `expected` is the number of answers: more than one for a batch, which is always a stream. */
  constructor(
    response: ServerResponse,
    headers: readonly string[],
    backpressure: Backpressure,
    log: StreamLog | null,
    credential: Credential | null = null,
    expected = 1,
  ) {
    this.response = response;
    this.headers = headers;
    this.backpressure = backpressure;
    this.log = log;
    this.credential = credential;
    this.expected = expected;
    if (expected > 1) this.startStreaming();
  }

  get isGone(): boolean {
    return this.stream === null ? this.response.destroyed : !this.stream.isOpen;
  }

  send(message: Buffer): void {
    // It is too late for what belongs before the answer.
    if (this.isUnderWay) return;
    this.startStreaming().send(message);
  }

  begin(id: string, length: number): ResultStream | null {
    const { response, headers, backpressure } = this;
    // Events are kept whole for a client that reconnects, and the answers of a batch belong together.
    if (this.stream !== null || this.expected !== 1 || response.headersSent || response.destroyed) return null;
    this.isUnderWay = true;
    return startReply(response, id, length, headers, backpressure);
  }

  finish(reply: Reply, status = 200): void {
    this.expected--;
    // The client sees a reply that breaks off: nothing else can be said any more.
    if (this.isUnderWay) this.response.destroy();
    else if (this.stream === null) sendReply(this.response, status, reply, this.headers, this.backpressure);
    else if (this.expected === 0) this.stream.finish(reply);
    else this.stream.answer(reply);
  }

  abandon(): void {
    this.expected--;
    if (this.expected > 0) return;
    if (this.isUnderWay) this.response.destroy();
    else if (this.stream !== null) this.stream.end();
    else {
      startStream(this.response, this.headers);
      this.response.end();
    }
  }

  /** A slow reply becomes a stream with periodic keep-alives, because clients and proxies would otherwise give up. */
  keepAlive(): void {
    if (this.isUnderWay) return;
    if (this.waited) this.startStreaming().keepAlive();
    this.waited = true;
  }

  get isFull(): boolean {
    if (this.isUnderWay) return this.response.writableLength > SLOW;
    return this.stream?.isFull === true;
  }

  whenDrained(proceed: () => void): void {
    if (this.isUnderWay) whenDrained(this.response, proceed);
    else if (this.stream === null) proceed();
    else this.stream.whenDrained(proceed);
  }

  startStreaming(): EventStream {
    if (this.stream === null) {
      const { response, headers, backpressure, log } = this;
      if (log !== null) this.stream = log.open(response, headers, 'answer');
      else {
        this.stream = new EventStream(backpressure, 'answer', null);
        this.stream.attach(response, headers);
      }
    }
    return this.stream;
  }
}

/**
 * The reply to a client that reads plain JSON only, as 2025-03-26 allows: one answer, or an array with all answers of a
 * batch. Notifications go to the stream that the client may have open in its session.
 */
export function createPlainExchange(
  response: ServerResponse,
  headers: readonly string[],
  backpressure: Backpressure,
  session: { notify(message: Buffer): void },
  batch: number | null,
): Exchange {
  const answers: Reply[] = [];
  let expected = batch ?? 1;
  const end = () => {
    if (--expected > 0) return;
    if (answers.length === 0) response.writeHead(202, [...headers, 'content-length', '0']).end();
    else sendReply(response, 200, batch === null ? answers[0]! : inArray(answers), headers, backpressure);
  };
  return {
    send: (message) => session.notify(message),
    finish(answer) {
      answers.push(answer);
      end();
    },
    abandon: end,
    keepAlive() {},
    isFull: false,
    get isGone() {
      return response.destroyed;
    },
    whenDrained: (proceed) => proceed(),
  };
}

function inArray(answers: readonly Reply[]): Reply {
  const texts = answers.map(({ head, body, tail }) => head + join(body).toString('latin1') + tail);
  return { head: '[', body: Buffer.from(texts.join(','), 'latin1'), tail: ']' };
}
