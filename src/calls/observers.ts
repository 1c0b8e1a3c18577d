/**
 * The observers that a call reports to. `observe/` implements them: counting in metrics.ts, recording in audit.ts,
 * tracing in tracing.ts.
 */
import type { Subject } from '../access/circumstances.ts';
import type { TriedDecision } from '../access/dry-run.ts';
import type { ListKind } from '../access/view.ts';
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
  /** Calls of a cacheable tool that found no cached result. */
  cacheMisses: number;
}

export interface CallCounters {
  of(entry: Entry, method: string): CallCounter;
  /** Looked up once per caller, not once per call. */
  ofAgent(agent: string): AgentCounter;
  /** Counts a call that reached no server. */
  refuse(agent: AgentCounter, code: ErrorCode): void;
  /** Counts what rules that are only tried would have decided. */
  tried(decision: TriedDecision['decision']): void;
}

/** Counts what changed lists cost clients. */
export interface ListCounters {
  /** Counts a client that is notified of a changed list. */
  listChanged(kind: ListKind): void;
  /** Counts a changed list of tools that a client was sent, and about how many tokens it has. */
  sentAgain(tokens: number): void;
}

/** The parts of a call that are recorded. */
export interface RecordedCall {
  readonly by: RecordedCaller;
  readonly message: Message;
  readonly entry: Entry;
  /** The name or URI as the server knows it, and its position in the message. */
  readonly name: string;
  readonly nameStart: number;
  readonly nameEnd: number;
  /** The tool that it was made through, such as `toolman_call`; null for none. */
  readonly through: string | null;
  /** False if its name was not found, or not looked up. */
  readonly isFound: boolean;
  /** Whether it was sent to a server, or handled by something in place of one. */
  readonly isCounted: boolean;
  /** What rules that are only tried would have decided; null for nothing. */
  readonly tried: TriedDecision | null;
  /** The id of the line that was written before it was sent; null for none. */
  readonly begun: string | null;
}

export interface RecordedCaller {
  readonly agent: string;
  /** Whom the policy decides about. */
  readonly subject: Subject;
  readonly principal: string;
  readonly door: string;
  readonly revision: string | null;
  readonly namespace: string | null;
  /** Policies do not apply to the operator. */
  readonly isOperator: boolean;
  /** What narrows it besides the policy: `task`, `toolset` or `namespace`; null for nothing. */
  readonly narrowedBy: string | null;
}

/** Records how calls end, and on demand that they begin. */
export interface Recorder {
  /** Records that a call is about to be sent. `isWritten` resolves when the line is on the disk: true, or cannot be written: false. */
  begun(call: RecordedCall): { readonly id: string; readonly isWritten: Promise<boolean> };
  /**
   * `outcome` is one of outcome.ts, `error` is Toolgate's own error, `answer` is what the server answered, and `bytes` its size.
   * Of an answer that was passed on as it came there is only the size.
   */
  ended(
    call: RecordedCall,
    outcome: number,
    ms: number,
    error: GatewayError | null,
    answer: Parts | null,
    bytes: number,
  ): void;
  /** Whether results are recorded, so that they are needed whole. */
  readonly keepsResults: boolean;
}

export interface CallAudit {
  /** Null if recording is off. */
  readonly recorder: Recorder | null;
  /** Whether calls have to be refused because they cannot be recorded. */
  readonly stops: boolean;
  /** Whether a call is recorded before it is sent, too. */
  readonly before: boolean;
}

/**
 * Watches one call, for a person who looks on. It is told in this order; only `ended` always comes. A clock costs more than
 * the rest of this, so those of the call are used where it has read one.
 */
export interface CallWatch {
  /** The name has been looked up. */
  found(): void;
  /** Its steps have stopped for now: it waits, or an answer is to come. */
  stopped(): void;
  /** It goes on after it has waited. `what` says for what: `approval`, `limits`, `audit`, or empty for something else. */
  resumed(what: string): void;
  /** It is sent to its server, at this time. */
  sent(at: number): void;
  /** `answer` is null if there is none, or if it was passed on while it came; `bytes` is its length. `at` is 0 if it did not begin. */
  ended(outcome: number, error: GatewayError | null, answer: Parts | null, bytes: number, at: number): void;
  /** Whether it has to see the result whole. */
  readonly keepsResults: boolean;
}

/** Follows one call. */
export interface CallTrace {
  /** The name has been looked up. */
  found(entry: Entry): void;
  /** The call is sent to its server. Returns the trace context for the server; null to keep the caller's. */
  sent(entry: Entry): TraceContext | null;
  /** The server has answered, or the call ended without an answer. Middleware may still be running. */
  ended(outcome: number, error: GatewayError | null, answer: Parts | null): void;
  /** The caller has cancelled it. */
  cancelled(): void;
}
