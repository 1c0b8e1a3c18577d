/** A call that is followed: its span begins and ends here, and its server hears of the trace. */

import type { GatewayError } from '../base/errors.ts';
import { Call } from '../calls/call.ts';
import type { Caller } from '../calls/caller.ts';
import { Relay } from '../calls/forwarding-sink.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Admission, Sink, Ticket } from '../protocol/contract.ts';
import { decodeString } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { saysError } from '../protocol/tool-error.ts';
import { readTrace, withTrace } from '../protocol/trace.ts';
import { ERROR, FAILED, OK, TIMEOUT, TOOL_ERROR } from './histogram.ts';
import {
  CANCELLED_END,
  type CallSpan,
  type Follower,
  refusedEnd,
  type SentSpan,
  spanEnd,
  type Tracer,
} from './span.ts';

export function traceCall<C extends Caller>(
  tracer: Tracer,
  by: C,
  message: Message,
  sink: Sink,
  go: (by: C, message: Message, sink: Sink) => Ticket,
): Ticket {
  const { agent, door, revision } = by;
  const { method } = message;
  const span = tracer.start({ method, agent, door, revision, id: readId(message), parent: readTrace(message) });
  if (span === null) return go(by, message, sink);
  const traced = new TracedSink(sink, span);
  // In bytes of its own, because the span of the way to the server is written into them.
  traced.ticket = go(by, span.context === null ? message : withTrace(message, span.context), traced);
  return traced;
}

/** Clients choose it, so it is not taken at any length. */
const LONGEST_ID = 128;

function readId({ bytes, idStart, idEnd }: Message): string {
  const text = bytes[idStart] === 0x22 ? decodeString(bytes, idStart, idEnd) : bytes.toString('latin1', idStart, idEnd);
  return text.slice(0, LONGEST_ID);
}

class TracedSink extends Relay implements Ticket, Follower {
  readonly span: CallSpan;
  ticket: Ticket | null = null;
  kind = '';
  wasSent = false;
  isOver = false;

  constructor(inner: Sink, span: CallSpan) {
    super(inner);
    this.span = span;
  }

  override admit(call: Admission): void {
    if (call instanceof Call) {
      call.follower = this;
      this.kind = call.entry.kind;
      this.span.found(call.entry);
    }
    super.admit(call);
  }

  sent(entry: Entry): SentSpan {
    this.wasSent = true;
    return this.span.sent(entry);
  }

  cancel(reason: string): void {
    // First the way to the server, which lies inside.
    this.ticket?.cancel(reason);
    if (this.end()) this.span.end(CANCELLED_END);
  }

  override result(result: Parts, era: Era): void {
    if (this.end()) this.span.end(spanEnd(this.kind === 'tool' && saysError(result) ? TOOL_ERROR : OK, null, null));
    super.result(result, era);
  }

  override error(error: Buffer, era: Era): void {
    if (this.end()) this.span.end(spanEnd(ERROR, null, error));
    super.error(error, era);
  }

  override fail(error: GatewayError): void {
    if (this.end())
      this.span.end(
        this.wasSent ? spanEnd(error.code === 'source_timeout' ? TIMEOUT : FAILED, error, null) : refusedEnd(error),
      );
    super.fail(error);
  }

  /** False when it was over already. */
  end(): boolean {
    const isFirst = !this.isOver;
    this.isOver = true;
    return isFirst;
  }
}
