/** Whom a call reports to. `observe/` implements these: counting in metrics.ts, recording in audit.ts, tracing in tracing.ts. */
import type { ErrorCode, GatewayError } from '../base/errors.ts';
import type { Entry } from '../catalog/entry.ts';
import type { Message } from '../protocol/message.ts';
import type { Parts } from '../protocol/parts.ts';
import type { TraceContext } from '../protocol/trace.ts';

/** Counts the calls of one agent. */
export interface AgentCounter {
  readonly inFlight: number;
}

/** Counts the calls of one entry. */
export interface CallCounter {
  begin(agent: AgentCounter): void;
  end(outcome: number, ms: number, bytes: number, agent: AgentCounter): void;
  /** A cacheable tool was called, and no result was cached. */
  cacheMisses: number;
}

export interface CallCounters {
  of(entry: Entry, method: string): CallCounter;
  /** Looked up once for a caller, not once for a call. */
  ofAgent(agent: string): AgentCounter;
  /** A call reached no server. */
  refuse(agent: AgentCounter, code: ErrorCode): void;
}

/** A call, as far as it is recorded. */
export interface RecordedCall {
  readonly by: RecordedCaller;
  readonly message: Message;
  readonly entry: Entry;
  /** The name or URI as the server knows it, and where it stands in the message. */
  readonly name: string;
  readonly nameStart: number;
  readonly nameEnd: number;
  /** False if its name was not found, or not looked up. */
  readonly isFound: boolean;
  /** Whether it was sent to a server, or carried out in its place. */
  readonly isCounted: boolean;
}

export interface RecordedCaller {
  readonly agent: string;
  readonly principal: string;
  readonly door: string;
  readonly revision: string | null;
  readonly namespace: string | null;
}

/** Writes down what became of calls. */
export interface Recorder {
  /** `outcome` is one of outcome.ts, `error` Toolgate's own error, `answer` what the server answered. */
  ended(call: RecordedCall, outcome: number, ms: number, error: GatewayError | null, answer: Parts | null): void;
}

export interface CallAudit {
  /** Null while nothing is recorded. */
  readonly recorder: Recorder | null;
  /** Whether calls have to be refused because they cannot be recorded. */
  readonly stops: boolean;
}

/** Follows one call. */
export interface CallTrace {
  /** The name has been looked up. */
  found(entry: Entry): void;
  /** The call goes to its server. Returns what the server is told about the trace; null if the caller's trace stays. */
  sent(entry: Entry): TraceContext | null;
  /** The server is done with it. */
  ended(outcome: number, error: GatewayError | null, answer: Parts | null): void;
  /** The caller has cancelled it. */
  cancelled(): void;
}
