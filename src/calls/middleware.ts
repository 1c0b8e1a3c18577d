/**
 * Functions of the host program around each call. The first one added is the outermost. A call without any passes by all of
 * this; with some, its result goes through promises, still as the bytes it came in.
 */

import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { EventSink } from '../base/events.ts';
import { type CallKind, ERROR, kindOf, OK, TOOL_ERROR } from '../observe/metrics.ts';
import type { Sink, Ticket } from '../protocol/contract.ts';
import { decodeString, toBytes } from '../protocol/json.ts';
import { join, type Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { saysError } from '../protocol/tool-error.ts';
import { readArguments, withArguments } from './arguments.ts';
import type { Call } from './call.ts';
import { Relay } from './forwarding-sink.ts';
import { RelayedError, relayed } from './upstream-error.ts';

/** A call as middleware sees it. What costs something to find out is found out when it is looked at. */
export interface MiddlewareCall {
  readonly agent: string;
  readonly kind: CallKind;
  /** The exposed name, or the URI as the caller said it. */
  readonly name: string;
  /** The key of the server that it belongs to; `toolgate` for the gateway's own tools. */
  readonly server: string;
  /** What the server calls it. */
  readonly upstreamName: string;
  /** Of a tool or prompt; of a completion its `argument`. Undefined where there are none. */
  readonly arguments: unknown;
  /** Aborted when the caller takes the call back. */
  readonly signal: AbortSignal;
}

/** What a server answered. Given back as it is, its bytes go to the caller as they came. */
export class CallResult {
  /** @internal */
  readonly era: Era;
  /** @internal */
  readonly parts: Parts;
  #value: unknown;

  /** @internal */
  constructor(parts: Parts, era: Era) {
    this.parts = parts;
    this.era = era;
  }

  /** Its JSON. */
  get bytes(): Buffer {
    return join(this.parts);
  }

  /** The same, parsed. */
  get value(): Record<string, unknown> {
    this.#value ??= JSON.parse(this.bytes.toString());
    return this.#value as Record<string, unknown>;
  }

  /** Whether a tool says that it failed. */
  get isError(): boolean {
    return saysError(this.parts);
  }
}

/** Runs the rest of the call, with other arguments where some are given. Rejects with what is the call's error. */
export type Next = (args?: object) => Promise<CallResult>;

/**
 * A function around every call. Gives its result: what `next` gave, or an object in its place. What it throws is the call's error.
 *
 * @example
 * const readOnly: Middleware = (call, next) => {
 *   if (call.upstreamName.startsWith('write_')) throw new GatewayError('forbidden', 'Nothing is written here.');
 *   return next();
 * };
 * gateway.use(readOnly);
 */
export type Middleware = (call: MiddlewareCall, next: Next) => Promise<CallResult | object> | CallResult | object;

export interface MiddlewareStack {
  /** Replaced whole, so that a call under way keeps those it began with. */
  readonly all: readonly Middleware[];
  use(middleware: Middleware): () => void;
}

export function createMiddlewareStack(): MiddlewareStack {
  let all: readonly { readonly run: Middleware }[] = [];
  let runs: readonly Middleware[] = [];
  const put = (next: typeof all) => {
    all = next;
    runs = next.map(({ run }) => run);
  };
  return {
    get all() {
      return runs;
    },
    use(run) {
      // The same function may be there twice; each time it is removed by itself.
      const added = { run };
      put([...all, added]);
      return () => put(all.filter((one) => one !== added));
    },
  };
}

/** Runs a call through middleware. `send` makes it. */
export function runThrough(
  all: readonly Middleware[],
  call: Call,
  agent: string,
  events: EventSink,
  send: (call: Call) => Ticket,
): Ticket {
  const run = new Run(all, call, agent, events, send);
  void run.start();
  return run;
}

class Run implements Ticket {
  readonly all: readonly Middleware[];
  readonly call: Call;
  readonly agent: string;
  readonly events: EventSink;
  readonly send: (call: Call) => Ticket;
  isOver = false;
  /** Whether it was sent, and is written down by whoever sent it. */
  isSent = false;
  readonly started = performance.now();
  /** The call to the server, while it is under way, and what ends the waiting for it. */
  ticket: Ticket | null = null;
  reject: ((error: Error) => void) | null = null;
  #aborting: AbortController | null = null;

  constructor(all: readonly Middleware[], call: Call, agent: string, events: EventSink, send: (call: Call) => Ticket) {
    this.all = all;
    this.call = call;
    this.agent = agent;
    this.events = events;
    this.send = send;
  }

  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    return this.#aborting.signal;
  }

  async start(): Promise<void> {
    const { inner } = this.call;
    try {
      const result = await this.#enter(0, this.call);
      if (!this.#finish()) return;
      this.#record(result);
      inner.result(result.parts, result.era);
    } catch (error) {
      if (this.#finish()) this.#refuse(inner, error);
    }
  }

  /** The caller takes the call back, and hears nothing more of it. Middleware does, so that it can end what it began. */
  cancel(reason: string): void {
    if (this.isOver) return;
    this.isOver = true;
    const error = cancelled(this.call);
    if (this.#aborting === null) this.#aborting = new AbortController();
    this.#aborting.abort(error);
    this.#stop(reason, error);
  }

  async #enter(index: number, call: Call): Promise<CallResult> {
    const middleware = this.all[index];
    if (middleware === undefined) return this.#make(call);
    let used = false;
    const next: Next = (args) => {
      const result = used ? Promise.reject(new Error(TWICE)) : this.#goOn(index + 1, call, args);
      used = true;
      // Whoever does not wait for it must not end the process by that.
      result.catch(() => {});
      return result;
    };
    return asResult(await middleware(new SeenCall(this, call), next));
  }

  async #goOn(index: number, call: Call, args: object | undefined): Promise<CallResult> {
    if (this.isOver) throw cancelled(call);
    return this.#enter(index, args === undefined ? call : withArguments(call, args));
  }

  #make(call: Call): Promise<CallResult> {
    return new Promise((resolve, reject) => {
      this.reject = reject;
      this.isSent = true;
      const settled = () => {
        this.ticket = null;
        this.reject = null;
      };
      const made = call.to(new ResultSink(call.inner, resolve, reject, settled));
      const ticket = this.send(made);
      this.call.totalTimeout = made.totalTimeout;
      if (this.reject !== null) this.ticket = ticket;
    });
  }

  #stop(reason: string, error: Error): void {
    const { ticket, reject } = this;
    this.ticket = null;
    this.reject = null;
    ticket?.cancel(reason);
    reject?.(error);
  }

  /** False when it was over already. A server that is still working on it need not. */
  #finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#stop('the call was answered without it', cancelled(this.call));
    return true;
  }

  /** A middleware answered by itself. */
  #record(result: CallResult): void {
    if (this.isSent) return;
    const outcome = this.call.entry.kind === 'tool' && result.isError ? TOOL_ERROR : OK;
    this.call.recorder?.called(this.call, outcome, performance.now() - this.started, null, result.parts);
  }

  #refuse(sink: Sink, error: unknown): void {
    const { call } = this;
    const recorder = this.isSent ? null : call.recorder;
    if (error instanceof RelayedError) {
      const { bytes, era } = error.origin ?? { bytes: toBytes(error.error), era: 'legacy' };
      recorder?.called(call, ERROR, performance.now() - this.started, null, bytes);
      sink.error(bytes, era);
      return;
    }
    const known = toGatewayError(error);
    if (known.code === 'internal') this.events.emit('failure', { where: 'middleware', error });
    recorder?.refused(call.by, call.message, known);
    sink.fail(known);
  }
}

const TWICE = 'A middleware called next() twice. A call is made once: keep what next() gave the first time.';

/** What one middleware sees: the arguments may be those that another one gave. */
class SeenCall implements MiddlewareCall {
  readonly #run: Run;
  readonly #call: Call;
  #arguments: { readonly value: unknown } | null = null;

  constructor(run: Run, call: Call) {
    this.#run = run;
    this.#call = call;
  }

  get agent(): string {
    return this.#run.agent;
  }

  get kind(): CallKind {
    return kindOf(this.#call.method);
  }

  get name(): string {
    return nameOf(this.#call);
  }

  get server(): string {
    return this.#call.entry.sourceKey;
  }

  get upstreamName(): string {
    const { name } = this.#call;
    return name === '' ? this.name : (JSON.parse(Buffer.from(name, 'latin1').toString()) as string);
  }

  get arguments(): unknown {
    this.#arguments ??= { value: readArguments(this.#call) };
    return this.#arguments.value;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}

/** Where the answer of the server goes; all else reaches the caller as it does without middleware. */
class ResultSink extends Relay {
  readonly resolve: (result: CallResult) => void;
  readonly reject: (error: Error) => void;
  readonly settled: () => void;

  constructor(inner: Sink, resolve: (result: CallResult) => void, reject: (error: Error) => void, settled: () => void) {
    super(inner);
    this.resolve = resolve;
    this.reject = reject;
    this.settled = settled;
  }

  override result(result: Parts, era: Era): void {
    this.settled();
    this.resolve(new CallResult(result, era));
  }

  override error(error: Buffer, era: Era): void {
    this.settled();
    this.reject(relayed(error, era));
  }

  override fail(error: GatewayError): void {
    this.settled();
    this.reject(error);
  }
}

/** Results of the modern era say of which type they are; those of the earlier one cannot. */
function asResult(given: unknown): CallResult {
  if (given instanceof CallResult) return given;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new TypeError('A middleware gave no result: it returns what next() gave, or an object in its place.');
  return new CallResult(toBytes(given), 'resultType' in given ? 'modern' : 'legacy');
}

/** A tool that is called by another name of it is still that tool; a URI may be one of many that fit. */
function nameOf({ message: { bytes }, entry, start, end }: Call): string {
  return entry.kind === 'tool' || entry.kind === 'prompt' ? entry.name : decodeString(bytes, start, end);
}

function cancelled(call: Call): GatewayError {
  return new GatewayError('cancelled', `The call of "${nameOf(call)}" was cancelled.`);
}
