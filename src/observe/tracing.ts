/** Traces a call: starts and ends its spans, and passes the trace context to its server. */
import type { GatewayError } from '../base/errors.ts';
import type { Call, CallTracer } from '../calls/call.ts';
import { ForwardingSink } from '../calls/forwarding-sink.ts';
import type { CallTrace } from '../calls/observers.ts';
import { ERROR, FAILED, isTimeout, OK, TIMEOUT, TOOL_ERROR } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import { decodeString } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { saysError } from '../protocol/tool-error.ts';
import { readTrace, type TraceContext, withTrace } from '../protocol/trace.ts';
import { CANCELLED_END, type CallSpan, refusedEnd, type SentSpan, spanEnd, type Tracer } from './span.ts';

export function createCallTracer(tracer: Tracer): CallTracer {
  return {
    begin(call) {
      const { message } = call;
      const { agent, door, revision } = call.by;
      const { method } = message;
      const span = tracer.start({ method, agent, door, revision, id: readId(message), parent: readTrace(message) });
      if (span === null) return;
      const traced = new TracedSink(call, span);
      call.inner = traced;
      call.tracing = traced;
      // This copies the message. The copy is needed because the server's `traceparent` is later stamped into its bytes
      // in place.
      if (span.context !== null) call.message = withTrace(message, span.context);
    },
  };
}

/** Clients choose the id, so only its first characters are kept. */
const LONGEST_ID = 128;

function readId({ bytes, idStart, idEnd }: Message): string {
  const text = bytes[idStart] === 0x22 ? decodeString(bytes, idStart, idEnd) : bytes.toString('latin1', idStart, idEnd);
  return text.slice(0, LONGEST_ID);
}

/**
 * Ends the span of a call when its answer is delivered. That is after middleware, so the span shows what the caller
 * gets.
 */
class TracedSink extends ForwardingSink implements CallTrace {
  readonly call: Call;
  readonly span: CallSpan;
  sentSpan: SentSpan | null = null;
  isOver = false;

  constructor(call: Call, span: CallSpan) {
    super(call.inner);
    this.call = call;
    this.span = span;
  }

  found(entry: Entry): void {
    this.span.found(entry);
  }

  sent(entry: Entry): TraceContext | null {
    this.sentSpan = this.span.sent(entry);
    return this.sentSpan.context;
  }

  ended(outcome: number, error: GatewayError | null, answer: Parts | null): void {
    this.sentSpan?.end(spanEnd(outcome, error, answer));
  }

  cancelled(): void {
    if (this.end()) this.span.end(CANCELLED_END);
  }

  override result(result: Parts, era: Era): void {
    const outcome = this.call.entry.kind === 'tool' && saysError(result) ? TOOL_ERROR : OK;
    if (this.end()) this.span.end(spanEnd(outcome, null, null));
    super.result(result, era);
  }

  override error(error: Buffer, era: Era): void {
    if (this.end()) this.span.end(spanEnd(ERROR, null, error));
    super.error(error, era);
  }

  override fail(error: GatewayError): void {
    if (this.end()) this.span.end(this.sentSpan === null ? refusedEnd(error) : spanEnd(failureOf(error), error, null));
    super.fail(error);
  }

  /** Returns false if the span has already ended. */
  end(): boolean {
    const isFirst = !this.isOver;
    this.isOver = true;
    return isFirst;
  }
}

function failureOf({ code }: GatewayError): number {
  return isTimeout(code) ? TIMEOUT : FAILED;
}
