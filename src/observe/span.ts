/**
 * The interface of tracers. A gateway has at most one tracer; without one, tracing costs a call one field access. A
 * tracer never gets the contents of a call: no arguments, no results, no URIs.
 */
import type { GatewayError } from '../base/errors.ts';
import type { DoorKind } from '../calls/caller.ts';
import { CANCELLED, ERROR, OUTCOMES, type Outcome, TOOL_ERROR } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import { findMember } from '../protocol/json.ts';
import { join, type Parts } from '../protocol/parts.ts';
import type { TraceContext } from '../protocol/trace.ts';

/** Traces calls. Set with `gateway.trace`. */
export interface Tracer {
  /** A call arrives. Returns null if it is not traced. */
  start(incoming: Incoming): CallSpan | null;
}

/** A call that has just arrived. */
export interface Incoming {
  readonly method: string;
  readonly agent: string;
  readonly door: DoorKind;
  /** The revision of the protocol that the caller speaks; null for a program in the same process. */
  readonly revision: string | null;
  /** The id of the request, as a string. */
  readonly id: string;
  /** The trace context that the caller sent. */
  readonly parent: TraceContext | null;
}

/** The time from the request to its answer. */
export interface CallSpan {
  /** The trace context from here on; null to keep the caller's. */
  readonly context: TraceContext | null;
  /** The name has been looked up, so the entry is known. */
  found(entry: Entry): void;
  /** The call is sent to its server. */
  sent(entry: Entry): SentSpan;
  end(end: SpanEnd): void;
}

/** The time in which the server works on the call. */
export interface SentSpan {
  /** The trace context that the server gets; null to keep the caller's. */
  readonly context: TraceContext | null;
  end(end: SpanEnd): void;
}

/** How a call ended. */
export interface SpanEnd {
  /** `refused`: the call was not sent to a server. */
  readonly outcome: Outcome | 'refused';
  /**
   * The kind of error: `tool_error`, one of Toolgate's own codes, or the code of the server's JSON-RPC error. Null if
   * there was none.
   */
  readonly error: string | null;
  /** The code of the server's JSON-RPC error. */
  readonly rpcCode: number | null;
}

/** Describes the end of a call: by its outcome, Toolgate's own error, or the server's answer. */
export function spanEnd(outcome: number, error: GatewayError | null, answer: Parts | null): SpanEnd {
  const name = OUTCOMES[outcome]!;
  if (error !== null) return { outcome: name, error: error.code, rpcCode: null };
  if (outcome === TOOL_ERROR) return { outcome: name, error: name, rpcCode: null };
  if (outcome !== ERROR) return { outcome: name, error: null, rpcCode: null };
  const code = answer === null ? null : codeOf(join(answer));
  return { outcome: name, error: String(code ?? 'error'), rpcCode: code };
}

/** For a call that was not sent to a server. */
export function refusedEnd(error: GatewayError): SpanEnd {
  return { outcome: 'refused', error: error.code, rpcCode: null };
}

/** A cancelled call has no error: neither the caller nor the server has failed. */
export const CANCELLED_END = spanEnd(CANCELLED, null, null);

function codeOf(error: Buffer): number | null {
  const code = findMember(error, 'code');
  const value = code === null ? Number.NaN : Number(error.toString('latin1', code.start, code.end));
  return Number.isInteger(value) ? value : null;
}
