/**
 * Functions of the host program that run around each call. The first one added is the outermost. If there are none,
 * calls skip this step. Otherwise the result passes through promises, still as the bytes it arrived in.
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

/** A call as middleware sees it. Values that are expensive to compute are computed on first access. */
export interface MiddlewareCall {
  readonly agent: string;
  readonly kind: CallKind;
  /** The exposed name, or the URI as the caller sent it. */
  readonly name: string;
  /** The key of the server that the item belongs to; `toolgate` for the gateway's own tools. */
  readonly server: string;
  /** The name that the server uses. */
  readonly upstreamName: string;
  /** The arguments of a tool or prompt; for a completion, its `argument`. Undefined if there are none. */
  readonly arguments: unknown;
  /** Aborted when the caller cancels the call. */
  readonly signal: AbortSignal;
}

/** A server's answer. If middleware returns it unchanged, the caller gets its bytes as they arrived. */
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

  /** The result as JSON. */
  get bytes(): Buffer {
    return join(this.parts);
  }

  /** The result, parsed. */
  get value(): Record<string, unknown> {
    this.#value ??= JSON.parse(this.bytes.toString());
    return this.#value as Record<string, unknown>;
  }

  /** Whether the tool reports that it failed. */
  get isError(): boolean {
    return saysError(this.parts);
  }
}

/** Runs the rest of the call, with other arguments if some are given. Rejects with the error of the call. */
export type Next = (args?: object) => Promise<CallResult>;

/**
 * A function around every call. It returns the result of the call: the one that `next` returned, or an object to use
 * instead. An error that it throws becomes the error of the call.
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
  /** The array is replaced, never changed, so that a running call keeps the middleware it started with. */
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
      // The same function may be added twice. Each addition gets its own object, so that it can be removed separately.
      const added = { run };
      put([...all, added]);
      return () => put(all.filter((one) => one !== added));
    },
  };
}

/** Runs a call through middleware. The innermost `next` continues the pipeline. */
export function runMiddleware(all: readonly Middleware[], call: Call): void {
  call.started = performance.now();
  const run = new MiddlewareRun(all, call);
  call.middleware = run;
  void run.start();
}

class MiddlewareRun {
  readonly all: readonly Middleware[];
  readonly call: Call;
  /** The sink that gets the final answer. */
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

  /** The caller has cancelled the call and gets no answer. Middleware is notified, so that it can clean up. */
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
      // If middleware does not await the result, a rejection must not end the process.
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

  /** Returns false if the call was already over. A server that is still working on it is told to stop. */
  #finish(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    if (this.isSent && !this.call.isOver) {
      this.call.abandon('middleware answered the call');
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

const TWICE = 'A middleware called next() twice, but a call is made only once. Keep the result of the first next().';

/** A call as one middleware sees it. The next one may see other arguments. */
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

/** Receives the server's answer for middleware. Everything else reaches the caller as it does without middleware. */
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

/** Modern results name their type in `resultType`; legacy results do not have that member. */
function asResult(given: unknown): CallResult {
  if (given instanceof CallResult) return given;
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new TypeError(
      'A middleware returned no result: it must return what next() returned, or an object to use instead.',
    );
  return new CallResult(toBytes(given), 'resultType' in given ? 'modern' : 'legacy');
}

/**
 * A tool or prompt called by an alias is shown under its exposed name. For a resource the URI in the message is shown,
 * because the entry may be a template.
 */
function nameOf({ message: { bytes }, entry, nameStart, nameEnd }: Call): string {
  return entry.kind === 'tool' || entry.kind === 'prompt' ? entry.name : decodeString(bytes, nameStart, nameEnd);
}

function cancelled(call: Call): GatewayError {
  return new GatewayError('cancelled', `The call of "${nameOf(call)}" was cancelled.`);
}
