/**
 * Functions of the host program around each call. The first one added is the outermost. Without any, calls skip this step; with
 * some, the result goes through promises, still as the bytes it came in.
 */

import { GatewayError, toGatewayError } from '../base/errors.ts';
import type { Sink } from '../protocol/contract.ts';
import { decodeString, toBytes } from '../protocol/json.ts';
import type { Message } from '../protocol/message.ts';
import { join, type Parts } from '../protocol/parts.ts';
import type { Era } from '../protocol/revisions.ts';
import { saysError } from '../protocol/tool-error.ts';
import { readArguments, replaceArguments } from './arguments.ts';
import type { Call } from './call.ts';
import { ForwardingSink } from './forwarding-sink.ts';
import { type CallKind, ERROR, kindOf, OK, REFUSED, TOOL_ERROR } from './outcome.ts';
import { RelayedError, relayed } from './relayed-error.ts';

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

/** Runs a call through middleware. The innermost `next` lets it go on with its steps. */
export function runMiddleware(all: readonly Middleware[], call: Call): void {
  call.started = performance.now();
  const run = new MiddlewareRun(all, call);
  call.middleware = run;
  void run.start();
}

class MiddlewareRun {
  readonly all: readonly Middleware[];
  readonly call: Call;
  /** Where the answer goes in the end. */
  readonly outer: Sink;
  isOver = false;
  isSent = false;
  /** Ends the wait for the server. */
  #reject: (error: Error) => void = () => {};
  #aborting: AbortController | null = null;

  constructor(all: readonly Middleware[], call: Call) {
    this.all = all;
    this.call = call;
    this.outer = call.inner;
  }

  get signal(): AbortSignal {
    this.#aborting ??= new AbortController();
    return this.#aborting.signal;
  }

  async start(): Promise<void> {
    try {
      const result = await this.#enter(0);
      if (this.#finish()) this.#deliver(result);
    } catch (error) {
      if (this.#finish()) this.#fail(error);
    }
  }

  /** The caller has cancelled the call and is told nothing more. Middleware is, so that it can end what it began. */
  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    const error = cancelled(this.call);
    this.#aborting ??= new AbortController();
    this.#aborting.abort(error);
    this.#reject(error);
  }

  async #enter(index: number): Promise<CallResult> {
    const middleware = this.all[index];
    if (middleware === undefined) return this.#send();
    let used = false;
    const next: Next = (args) => {
      const result = used ? Promise.reject(new Error(TWICE)) : this.#proceed(index + 1, args);
      used = true;
      // A middleware that does not wait for it must not end the process.
      result.catch(() => {});
      return result;
    };
    return asResult(await middleware(new SeenCall(this), next));
  }

  async #proceed(index: number, args: object | undefined): Promise<CallResult> {
    if (this.isOver) throw cancelled(this.call);
    if (args !== undefined) replaceArguments(this.call, args);
    return this.#enter(index);
  }

  #send(): Promise<CallResult> {
    return new Promise((resolve, reject) => {
      this.isSent = true;
      this.#reject = reject;
      this.call.inner = new ResultSink(this.outer, resolve, reject);
      this.call.advance();
    });
  }

  /** False if it was over already. A server that is still working on the call need not go on. */
  #finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    if (this.isSent && !this.call.isOver) {
      this.call.abandon('the call was answered without it');
      this.#reject(cancelled(this.call));
    }
    return true;
  }

  #deliver(result: CallResult): void {
    const { call, outer } = this;
    const { parts, era } = result;
    if (!call.isOver) call.end(call.entry.kind === 'tool' && result.isError ? TOOL_ERROR : OK, null, parts);
    outer.result(parts, era);
  }

  #fail(error: unknown): void {
    const { call, outer } = this;
    if (error instanceof RelayedError) {
      const { bytes, era } = error.origin ?? { bytes: toBytes(error.error), era: 'legacy' };
      call.end(ERROR, null, bytes);
      outer.error(bytes, era);
      return;
    }
    const known = toGatewayError(error);
    if (known !== error && known.code === 'internal')
      call.context.events.emit('failure', { where: 'middleware', error });
    call.end(REFUSED, known, null);
    outer.fail(known);
  }
}

const TWICE = 'A middleware called next() twice. A call is made once: keep what next() gave the first time.';

/** A call as one middleware sees it: the next one may see other arguments. */
class SeenCall implements MiddlewareCall {
  readonly #run: MiddlewareRun;
  readonly #message: Message;
  readonly #name: string;
  #arguments: { readonly value: unknown } | null = null;

  constructor(run: MiddlewareRun) {
    this.#run = run;
    this.#message = run.call.message;
    this.#name = nameOf(run.call);
  }

  get agent(): string {
    return this.#run.call.agent;
  }

  get kind(): CallKind {
    return kindOf(this.#message.method);
  }

  get name(): string {
    return this.#name;
  }

  get server(): string {
    return this.#run.call.entry.sourceKey;
  }

  get upstreamName(): string {
    const { name } = this.#run.call;
    return name === '' ? this.#name : (JSON.parse(Buffer.from(name, 'latin1').toString()) as string);
  }

  get arguments(): unknown {
    this.#arguments ??= { value: readArguments(this.#message) };
    return this.#arguments.value;
  }

  get signal(): AbortSignal {
    return this.#run.signal;
  }
}

/** Takes the answer of the server. Everything else reaches the caller as it does without middleware. */
class ResultSink extends ForwardingSink {
  readonly resolve: (result: CallResult) => void;
  readonly reject: (error: Error) => void;

  constructor(inner: Sink, resolve: (result: CallResult) => void, reject: (error: Error) => void) {
    super(inner);
    this.resolve = resolve;
    this.reject = reject;
  }

  override result(result: Parts, era: Era): void {
    this.resolve(new CallResult(result, era));
  }

  override error(error: Buffer, era: Era): void {
    this.reject(relayed(error, era));
  }

  override fail(error: GatewayError): void {
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
function nameOf({ message: { bytes }, entry, nameStart, nameEnd }: Call): string {
  return entry.kind === 'tool' || entry.kind === 'prompt' ? entry.name : decodeString(bytes, nameStart, nameEnd);
}

function cancelled(call: Call): GatewayError {
  return new GatewayError('cancelled', `The call of "${nameOf(call)}" was cancelled.`);
}
