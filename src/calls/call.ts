/** One call: from the caller's message to the server that its name belongs to. */

import { findPrompt, findResource, findTool } from '../access/find.ts';
import { GatewayError, toGatewayError } from '../base/errors.ts';
import { nameIn } from '../catalog/catalog.ts';
import type { Entry } from '../catalog/entry.ts';
import { CACHED, CANCELLED, type EntryCounter, ERROR, FAILED, OK, TIMEOUT, TOOL_ERROR } from '../observe/metrics.ts';
import { type Follower, type SentSpan, spanEnd } from '../observe/span.ts';
import type { ClientChannel, ItemDefinition, Sink, SourceRequest, Ticket } from '../protocol/contract.ts';
import { decodeString, findMember, readMembers } from '../protocol/json.ts';
import { type Message, tokenOf } from '../protocol/message.ts';
import { mirrorHeaders } from '../protocol/param-headers.ts';
import { type Parts, sizeOf } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { rewriteRequest, toolCall, type Wire } from '../protocol/rewrite.ts';
import { saysError } from '../protocol/tool-error.ts';
import { stampTrace, traceHeaders } from '../protocol/trace.ts';
import type { Source } from '../sources/source.ts';
import type { Caller } from './caller.ts';
import { Relay } from './forwarding-sink.ts';

/** What a call has to pass on its way: how many at one time, how often, how much. */
export interface Limiter {
  /** Sends the call now, later, or not at all. */
  enter(call: Call): Ticket;
  /** A call that was sent is over, with an outcome of figures.ts. `error` is Toolgate's own, where it was one. */
  leave(call: Call, outcome: number, error: GatewayError | null): void;
  /** Whether results are looked at before they go on; then `inspect` hands them over. */
  readonly inspects: boolean;
  inspect(call: Call, outcome: number, result: Parts, era: Era): void;
  /** Hands over a result as far as it may be seen. */
  show(call: Call, result: Parts, era: Era): void;
}

/** Who answers calls: a server, or whatever stands for one. */
export type Callee = Pick<Source, 'call' | 'completes' | 'tasks'>;

/** Who writes down what became of calls. */
export interface Recorder {
  /** A call is over, with an outcome of figures.ts. `error` is Toolgate's own, where it was one; `answer` that of the server. */
  called(call: Call, outcome: number, ms: number, error: GatewayError | null, answer: Parts | null): void;
  /** Toolgate has answered without a server, from what it keeps. */
  answered(by: Caller, message: Message, answer: Parts): void;
  /** A call reached no server. */
  refused(by: Caller, message: Message, error: GatewayError): void;
}

/**
 * A caller's request on its way to the server that its name belongs to. It is its own sink and ticket, because what comes
 * back has to be counted, and a further object for each call is felt.
 */
export class Call extends Relay implements SourceRequest, Ticket {
  readonly message: Message;
  readonly entry: Entry;
  /** What `rewriteRequest` puts between `start` and `end`. */
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly by: Caller;
  timeout = 0;
  totalTimeout = 0;
  client: ClientChannel | null = null;
  /** The definition, as last listed. */
  item: ItemDefinition;
  /** Where it goes, and where it is counted. */
  source: Callee | null = null;
  row: EntryCounter | null = null;
  /** The same while it is under way. */
  metrics: EntryCounter | null = null;
  started = 0;
  /** What it has to leave at its end, and who is told of that; null where there is nothing and nobody. */
  limiter: Limiter | null = null;
  recorder: Recorder | null = null;
  /** Who follows it, and its way to the server; null where nobody does. */
  follower: Follower | null = null;
  way: SentSpan | null = null;
  /** Where it waits for its turn; null when it does not. */
  waits: { quit(): void } | null = null;
  /** Under which its result is kept for equal calls; null where it is not. */
  cacheKey: string | null = null;
  ticket: Ticket | null = null;

  constructor(message: Message, entry: Entry, name: string, start: number, end: number, sink: Sink, by: Caller) {
    super(sink);
    this.message = message;
    this.entry = entry;
    this.name = name;
    this.start = start;
    this.end = end;
    this.by = by;
    this.item = entry.item;
  }

  get sink(): Sink {
    return this;
  }

  get method(): string {
    return this.message.method;
  }

  get agent(): string {
    return this.by.agent;
  }

  get token(): Buffer | null {
    return tokenOf(this.message);
  }

  /** Whether the caller said the name itself under which it sees the item, and not one that was found to fit. */
  get exact(): boolean {
    const { entry, by } = this;
    const said = decodeString(this.message.bytes, this.start, this.end);
    return said === (by.namespace === null ? entry.name : nameIn(by.view().catalog, entry));
  }

  encode(id: number, era: Era): Wire {
    return rewriteRequest(this.message, this, this.sink, id, era);
  }

  encodeTool(head: string): Wire {
    return toolCall(this.message, head, this.name);
  }

  headers(): readonly string[] {
    const { mirrored } = this.item;
    return mirrorHeaders(this.message, this.name, typeof mirrored === 'string' ? null : mirrored);
  }

  /** The trace that it belongs to, where that is ours to say. */
  get trace(): readonly string[] | null {
    const context = this.way?.context ?? null;
    return context === null ? null : traceHeaders(context);
  }

  renew(definitions: readonly ItemDefinition[]): void {
    const { kind, name } = this.item;
    this.item = definitions.find((item) => item.kind === kind && item.name === name) ?? this.item;
  }

  /** The same call, to be answered to another sink. */
  to(sink: Sink): Call {
    return this.followed(new Call(this.message, this.entry, this.name, this.start, this.end, sink, this.by));
  }

  /** The same call in other words. */
  as(message: Message, start: number, end: number): Call {
    return this.followed(new Call(message, this.entry, this.name, start, end, this.inner, this.by));
  }

  /** Another call in the place of this one: whoever follows the one follows the other. */
  followed<C extends Call>(call: C): C {
    call.follower = this.follower;
    return call;
  }

  /** From here on it is counted. */
  begin(): void {
    this.metrics = this.row!;
    this.started = performance.now();
    this.metrics.begin(this.by.usage);
  }

  /** To the server that it belongs to; that has to be known by now. */
  send(): Ticket {
    this.begin();
    if (this.follower !== null) this.follow(this.follower);
    try {
      this.ticket = this.source!.call(this);
    } catch (error) {
      this.#over(FAILED, toGatewayError(error), null);
      throw error;
    }
    return this;
  }

  follow(follower: Follower): void {
    this.way = follower.sent(this.entry);
    const { context } = this.way;
    if (context !== null) stampTrace(this.message, context.traceparent);
  }

  /** Answers as an equal call was answered before: no server is asked. */
  replay(limiter: Limiter, result: Parts, era: Era): void {
    this.begin();
    this.#over(CACHED, null, result);
    limiter.show(this, result, era);
  }

  /** It waited, and does not get to its server. */
  refuse(error: GatewayError): void {
    this.recorder?.refused(this.by, this.message, error);
    this.inner.fail(error);
  }

  cancel(reason: string): void {
    if (this.waits !== null) this.#quit();
    this.#over(CANCELLED, null, null);
    this.ticket?.cancel(reason);
  }

  override result(result: Parts, era: Era): void {
    const outcome = this.entry.kind === 'tool' && saysError(result) ? TOOL_ERROR : OK;
    const { limiter } = this;
    this.#over(outcome, null, result);
    if (limiter?.inspects) limiter.inspect(this, outcome, result, era);
    else this.inner.result(result, era);
  }

  override error(error: Buffer, era: Era): void {
    this.#over(ERROR, null, error);
    this.inner.error(error, era);
  }

  override fail(error: GatewayError): void {
    this.#over(error.code === 'source_timeout' ? TIMEOUT : FAILED, error, null);
    this.inner.fail(error);
  }

  #quit(): void {
    this.waits?.quit();
    // One that is counted already is written down with its end.
    if (this.metrics !== null) return;
    const error = new GatewayError('cancelled', 'The call was cancelled while it waited for its turn.');
    this.recorder?.refused(this.by, this.message, error);
  }

  #over(outcome: number, error: GatewayError | null, answer: Parts | null): void {
    const { metrics } = this;
    if (metrics === null) return;
    this.metrics = null;
    const ms = performance.now() - this.started;
    metrics.end(outcome, ms, answer === null ? 0 : sizeOf(answer), this.by.usage);
    this.way?.end(spanEnd(outcome, error, answer));
    this.limiter?.leave(this, outcome, error);
    this.recorder?.called(this, outcome, ms, error, answer);
  }
}

export function findCall(by: Caller, message: Message, sink: Sink): Call {
  if (message.method === 'completion/complete') return findCompletion(by, message, sink);
  const view = by.view();
  const byUri = message.method === 'resources/read';
  const start = byUri ? message.uriStart : message.nameStart;
  const end = byUri ? message.uriEnd : message.nameEnd;
  if (start < 0 || message.bytes[start] !== 0x22) {
    throw new GatewayError(
      'params_invalid',
      `${message.method} needs a string "${byUri ? 'uri' : 'name'}" in its parameters.`,
    );
  }
  const name = decodeString(message.bytes, start, end);
  if (byUri) {
    const { entry, upstreamName } = findResource(view, name);
    return new Call(message, entry, upstreamName, start, end, sink, by);
  }
  const entry = message.method === 'tools/call' ? findTool(view, name) : findPrompt(view, name);
  return new Call(message, entry, entry.upstreamName, start, end, sink, by);
}

/** What is to be completed is named one level deeper. */
function findCompletion(by: Caller, message: Message, sink: Sink): Call {
  const view = by.view();
  const { bytes, paramsStart, paramsEnd } = message;
  const ref = paramsStart < 0 ? null : findMember(bytes, 'ref', paramsStart, paramsEnd);
  const members = ref === null ? null : readMembers(bytes, ref.start, ref.end);
  const read = (key: string) => {
    const [member, ...more] = members?.filter((one) => one.key === key) ?? [];
    const isText = member !== undefined && more.length === 0 && bytes[member.start] === 0x22;
    return isText ? { ...member, text: decodeString(bytes, member.start, member.end) } : null;
  };
  const type = read('type')?.text;
  const named = type === 'ref/prompt' ? read('name') : type === 'ref/resource' ? read('uri') : null;
  if (named === null) {
    throw new GatewayError(
      'params_invalid',
      'completion/complete needs a "ref": { type: "ref/prompt", name } or { type: "ref/resource", uri }.',
    );
  }
  const { text, start, end } = named;
  if (type === 'ref/prompt') {
    const entry = findPrompt(view, text);
    return new Call(message, entry, entry.upstreamName, start, end, sink, by);
  }
  const template = view.entries.template.get(text);
  if (template !== undefined) return new Call(message, template, template.upstreamName, start, end, sink, by);
  const { entry, upstreamName } = findResource(view, text);
  return new Call(message, entry, upstreamName, start, end, sink, by);
}
