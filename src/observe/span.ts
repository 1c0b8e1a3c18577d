/**
 * Who follows calls on their way. A tracer is set once for a gateway; where none is, a call looks at one field. Nothing that
 * is in a call is told: no arguments, no results, no URIs.
 */

import type { GatewayError } from '../base/errors.ts';
import type { DoorKind } from '../calls/caller.ts';
import { CANCELLED, ERROR, OUTCOMES, type Outcome, TOOL_ERROR } from '../calls/outcome.ts';
import type { Entry } from '../catalog/entry.ts';
import { findMember } from '../protocol/json.ts';
import { join, type Parts } from '../protocol/parts.ts';
import type { TraceContext } from '../protocol/trace.ts';

/** Follows calls. Set by `gateway.trace`. */
export interface Tracer {
  /** A call comes in. Null where this one is not followed. */
  start(incoming: Incoming): CallSpan | null;
}

/** A call as it comes in. */
export interface Incoming {
  readonly method: string;
  readonly agent: string;
  readonly door: DoorKind;
  /** The revision of the protocol that the caller speaks; null for a program in the same process. */
  readonly revision: string | null;
  /** The id of the request, as text. */
  readonly id: string;
  /** The trace that the caller says it belongs to. */
  readonly parent: TraceContext | null;
}

/** The time from the request to its answer. */
export interface CallSpan {
  /** The trace from here on; null where the caller's stays. */
  readonly context: TraceContext | null;
  /** What is called is known. */
  found(entry: Entry): void;
  /** The call is sent to its server. */
  sent(entry: Entry): SentSpan;
  end(end: SpanEnd): void;
}

/** The time in which a server works on it. */
export interface SentSpan {
  /** What the server is told of the trace; null where the caller's stays. */
  readonly context: TraceContext | null;
  end(end: SpanEnd): void;
}

/** How a call went. */
export interface SpanEnd {
  /** `refused`: no server was asked. */
  readonly outcome: Outcome | 'refused';
  /** A word for the kind of error: `tool_error`, a code of Toolgate's own, or that of the server's JSON-RPC error. Null where all is well. */
  readonly error: string | null;
  /** The code of an error object of the server. */
  readonly rpcCode: number | null;
}

/** How a call ended, by its outcome: with an error of Toolgate's own, or with what the server answered. */
export function spanEnd(outcome: number, error: GatewayError | null, answer: Parts | null): SpanEnd {
  const name = OUTCOMES[outcome]!;
  if (error !== null) return { outcome: name, error: error.code, rpcCode: null };
  if (outcome === TOOL_ERROR) return { outcome: name, error: name, rpcCode: null };
  if (outcome !== ERROR) return { outcome: name, error: null, rpcCode: null };
  const code = answer === null ? null : codeOf(join(answer));
  return { outcome: name, error: String(code ?? 'error'), rpcCode: code };
}

/** No server was asked. */
export function refusedEnd(error: GatewayError): SpanEnd {
  return { outcome: 'refused', error: error.code, rpcCode: null };
}

/** Whoever takes a call back has not failed, and nobody else has. */
export const CANCELLED_END = spanEnd(CANCELLED, null, null);

function codeOf(error: Buffer): number | null {
  const code = findMember(error, 'code');
  const value = code === null ? Number.NaN : Number(error.toString('latin1', code.start, code.end));
  return Number.isInteger(value) ? value : null;
}
