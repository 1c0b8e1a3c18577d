/**
 * One call: `tools/call`, `prompts/get`, `resources/read` or `completion/complete`, from the caller's message to its
 * answer. It goes through the steps of pipeline.ts. Every call ends exactly once, in `end`.
 */
import type { TriedDecision } from '../access/dry-run.ts';
import type { Permission } from '../access/permission.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { nameIn } from '../catalog/catalog.ts';
import { builtInEntry, type Entry } from '../catalog/entry.ts';
import type { ClientChannel, ItemDefinition, ResultStream, Sink, SourceRequest, Ticket } from '../protocol/contract.ts';
import { decodeString } from '../protocol/json.ts';
import { type Message, tokenOf } from '../protocol/message.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';
import { type Headers, mirrorHeaders } from '../protocol/param-headers.ts';
import { type Parts, sizeOf } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { rewriteRequest, rewriteToolCall, type Wire } from '../protocol/rewrite.ts';
import { saysError } from '../protocol/tool-error.ts';
import { stampTrace, type TraceContext, traceHeaders } from '../protocol/trace.ts';
import type { Source } from '../sources/source.ts';
import type { Caller } from './caller.ts';
import { ForwardingSink } from './forwarding-sink.ts';
import { noteUris } from './named-uris.ts';
import type { CallAudit, CallCounter, CallCounters, CallTrace, CallWatch, RecordedCall } from './observers.ts';
import { CANCELLED, ERROR, FAILED, isTimeout, OK, REFUSED, TIMEOUT, TOOL_ERROR } from './outcome.ts';
import { StreamedResult } from './streamed-result.ts';

/**
 * One step of the pipeline. True: the call continues with the next step. False: the step has answered the call, or
 * keeps it and calls `advance` later. An error that it throws ends the call.
 */
export type Step = (call: Call) => boolean;

/** What all calls of a gateway share. */
export interface CallContext {
  readonly events: EventSink;
  readonly counters: CallCounters;
  readonly audit: CallAudit;
  /** Looks up what is called, and starts its steps. */
  start(call: Call): void;
  /** Throws if a call that has waited is no longer allowed. */
  recheck(call: Call): void;
}

/** Follows calls from their start. */
export interface CallTracer {
  begin(call: Call): void;
}

/** Watches calls while somebody looks on. */
export interface CallWatcher {
  begin(call: Call): CallWatch;
}

/** What steps at which calls wait are waiting for, for those who watch. */
export const waitingFor = new WeakMap<Step, string>();

/** What answers calls: a server, or something in its place. */
export type Callee = Pick<Source, 'completes' | 'tasks'> & { call(call: Call): Ticket };

/** The limits that a call has passed and occupies while it is under way. */
export interface Limiter {
  leave(call: Call, outcome: number, error: GatewayError | null): void;
  /** Whether results are inspected before they are delivered. If so, `inspect` delivers them. */
  readonly inspects: boolean;
  inspect(call: Call, outcome: number, result: Parts, era: Era): void;
}

/** The entry of a call whose name has not been found. */
const UNKNOWN_ENTRY: Entry = Object.freeze({ ...builtInEntry({ name: '', description: '' }), kind: 'resource' });

/** Shared, so that a call does not allocate a list before its entry is known. */
const NO_STEPS: readonly Step[] = [];

const CANCELLED_EARLY = new GatewayError('cancelled', 'The call was cancelled before it was sent.');

/**
 * A call is its own request, sink and ticket. The path of a call allocates as little as possible, and another object
 * per call costs measurable time.
 */
export class Call extends ForwardingSink implements SourceRequest, Ticket, RecordedCall {
  readonly context: CallContext;
  readonly by: Caller;
  /** Middleware may replace it with one that has other arguments. */
  message: Message;
  /** HTTP headers that have to repeat what the message says; null if there are none to check. */
  httpHeaders: Headers | null;
  /** The tool that it was made through, such as `toolman_call`; null for none. The message is already that of the tool. */
  through: string | null = null;
  entry: Entry = UNKNOWN_ENTRY;
  /** The name that its source uses, as JSON. It replaces the name in the message. */
  name = '';
  nameStart = -1;
  nameEnd = -1;
  /** The definition, as last listed. */
  item: ItemDefinition = UNKNOWN_ENTRY.item;
  /** What the policy allowed its caller when it was checked. */
  permission: Permission | null = null;
  /** What rules that are only tried would have decided; null for nothing. */
  tried: TriedDecision | null = null;
  begun: string | null = null;
  steps: readonly Step[] = NO_STEPS;
  /** The next step. */
  at = 0;
  source: Callee | null = null;
  timeout = 0;
  totalTimeout = 0;
  counter: CallCounter | null = null;
  isCounted = false;
  /** When it was sent, or when its middleware started; 0 before. */
  started = 0;
  isOver = false;
  limiter: Limiter | null = null;
  /** What it waits for: its turn, a person, a server that is starting. Null if nothing. */
  waiting: { quit(): void } | null = null;
  /** The key under which its result is cached; null if it is not. */
  cacheKey: string | null = null;
  /** Whether it has to go to the first process of its server, because its MCP task lives there. */
  pinned = false;
  /** The token under which the progress of an MCP task is reported; null to use the id of the request. */
  progressToken: number | null = null;
  middleware: { cancel(): void } | null = null;
  tracing: CallTrace | null = null;
  /** Null unless somebody looks on. */
  watched: CallWatch | null = null;
  traceContext: TraceContext | null = null;
  /** The request to its server. */
  ticket: Ticket | null = null;

  constructor(context: CallContext, by: Caller, message: Message, sink: Sink, httpHeaders: Headers | null) {
    super(sink);
    this.context = context;
    this.by = by;
    this.message = message;
    this.httpHeaders = httpHeaders;
  }

  get isFound(): boolean {
    return this.entry !== UNKNOWN_ENTRY;
  }

  /** The name has been looked up. */
  found(entry: Entry, name: string, nameStart: number, nameEnd: number): void {
    this.entry = entry;
    this.item = entry.item;
    this.name = name;
    this.nameStart = nameStart;
    this.nameEnd = nameEnd;
  }

  /** Whether the caller used the exact exposed name and not an alias. */
  get isExact(): boolean {
    const { entry, by } = this;
    const used = decodeString(this.message.bytes, this.nameStart, this.nameEnd);
    return used === (by.namespace === null ? entry.name : nameIn(by.view().catalog, entry));
  }

  /** Starts the pipeline. From now on the call may end at any time, even before this returns. */
  start(): void {
    this.context.start(this);
  }

  /** Continues after it has waited. */
  resume(): void {
    this.waiting = null;
    try {
      this.context.recheck(this);
    } catch (error) {
      this.refuse(error);
      return;
    }
    if (this.watched !== null) this.watched.resumed(waitingFor.get(this.steps[this.at - 1]!) ?? '');
    this.advance();
  }

  /** Runs the next steps, until one of them stops the call. */
  advance(): void {
    try {
      let goesOn = true;
      while (goesOn) goesOn = this.steps[this.at++]!(this);
      if (this.watched !== null) this.watched.stopped();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Ends the call with an error that occurred on the way. */
  refuse(error: unknown): void {
    const known = toGatewayError(error);
    if (known.code === 'internal') this.context.events.emit('failure', { where: this.method, error });
    this.end(this.#failureOf(known), known, null);
    this.inner.fail(known);
  }

  /** From now on the call counts as running. */
  begin(): void {
    this.isCounted = true;
    this.started = performance.now();
    this.counter!.begin(this.by.counter);
  }

  /** Sends it to its source. */
  send(): void {
    this.begin();
    if (this.watched !== null) this.watched.sent(this.started);
    if (this.tracing !== null) {
      this.traceContext = this.tracing.sent(this.entry);
      if (this.traceContext !== null) stampTrace(this.message, this.traceContext.traceparent);
    }
    this.ticket = this.source!.call(this);
  }

  /**
   * Ends the call: counts it, ends its span, frees its places, records it. Every call comes here, however it ended, and
   * only the first time counts.
   */
  end(
    outcome: number,
    error: GatewayError | null,
    answer: Parts | null,
    bytes = answer === null ? 0 : sizeOf(answer),
  ): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    const { context, by } = this;
    const now = this.started === 0 ? 0 : performance.now();
    const ms = now - this.started;
    by.resultBytes += bytes;
    if (this.isCounted) this.counter!.end(outcome, ms, bytes, by.counter);
    else if (outcome === REFUSED) context.counters.refuse(by.counter, error!.code);
    if (this.tried !== null) context.counters.tried(this.tried.decision);
    this.tracing?.ended(outcome, error, answer);
    this.limiter?.leave(this, outcome, error);
    context.audit.recorder?.ended(this, outcome, ms, error, answer, bytes);
    if (this.watched !== null) this.watched.ended(outcome, error, answer, bytes, now);
    return true;
  }

  #failureOf({ code }: GatewayError): number {
    if (!this.isCounted) return REFUSED;
    return isTimeout(code) ? TIMEOUT : FAILED;
  }

  // The answer comes back

  override result(result: Parts, era: Era): void {
    const outcome = this.entry.kind === 'tool' && saysError(result) ? TOOL_ERROR : OK;
    const { limiter } = this;
    if (!this.end(outcome, null, result)) return;
    if (this.by.found !== null && outcome === OK) this.by.found.called(this.entry);
    if (this.method !== 'resources/read' && this.method !== READ_DIRECTORY)
      noteUris(this.by, this.entry.sourceId, result);
    if (limiter?.inspects) limiter.inspect(this, outcome, result, era);
    else this.inner.result(result, era);
  }

  stream(era: Era, length: number): ResultStream | null {
    // Decided once, here: what has to see a result whole. Middleware and tracing put their own sinks between this and the door.
    const keepsIt = this.context.audit.recorder?.keepsResults === true || this.watched?.keepsResults === true;
    if (this.isOver || this.limiter?.inspects === true || keepsIt || this.tracing !== null) return null;
    const inner = this.inner.stream?.(era, length) ?? null;
    return inner === null ? null : new StreamedResult(this, inner);
  }

  /** The whole result has been passed on. Returns false if the call was over before. */
  streamed(outcome: number, bytes: number): boolean {
    if (!this.end(outcome, null, null, bytes)) return false;
    if (this.by.found !== null && outcome === OK) this.by.found.called(this.entry);
    return true;
  }

  override error(error: Buffer, era: Era): void {
    if (this.end(ERROR, null, error)) this.inner.error(error, era);
  }

  override fail(error: GatewayError): void {
    if (this.end(this.#failureOf(error), error, null)) this.inner.fail(error);
  }

  /** The caller no longer wants the answer. */
  cancel(reason: string): void {
    this.abandon(reason);
    this.middleware?.cancel();
    this.tracing?.cancelled();
  }

  /** Stops waiting for the server's answer, and tells the server. */
  abandon(reason: string): void {
    if (this.isOver) return;
    this.waiting?.quit();
    this.end(CANCELLED, this.isCounted ? null : CANCELLED_EARLY, null);
    this.ticket?.cancel(reason);
  }

  // The request, as its source reads it

  get sink(): Sink {
    return this;
  }

  get method(): string {
    return this.message.method;
  }

  get agent(): string {
    return this.by.agent;
  }

  get principal(): string {
    return this.by.principal;
  }

  get sessionId(): string {
    return this.by.sessionId;
  }

  get client(): ClientChannel {
    return this.by.client;
  }

  get token(): Buffer | null {
    return tokenOf(this.message);
  }

  encode(id: number, era: Era): Wire {
    return rewriteRequest(this.message, this, this, id, era, this.progressToken ?? id);
  }

  encodeTool(head: string): Wire {
    return rewriteToolCall(this.message, head, this.name);
  }

  headers(): readonly string[] {
    const { mirrored } = this.item;
    return mirrorHeaders(this.message, this.name, typeof mirrored === 'string' ? null : mirrored);
  }

  /** The trace it belongs to, if Toolgate set one. */
  get trace(): readonly string[] | null {
    return this.traceContext === null ? null : traceHeaders(this.traceContext);
  }

  recheck(): void {
    this.context.recheck(this);
  }

  renew(definitions: readonly ItemDefinition[]): void {
    const { kind, name } = this.item;
    this.item = definitions.find((item) => item.kind === kind && item.name === name) ?? this.item;
  }
}
