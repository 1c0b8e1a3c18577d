/** One run of a tool. It is answered exactly once: by its result, an error, its timeout or a cancellation. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { fault, type ToolFault, thrownFault } from './fault.ts';
import type { RunnableItem } from './read-tool.ts';
import { RunContext } from './run-context.ts';
import { issueDetails, issuesText } from './schema.ts';

/** The answer to a question of a tool, or why there is none. */
export type AskOutcome = { readonly result: unknown } | { readonly error: string };

/** The caller of a run. */
export interface RunCaller {
  readonly agent?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** Where the messages of runs go. */
export interface RunSink {
  readonly namespace: string;
  readonly folder: string;
  readonly maxLine: number;
  /** The result as JSON, and the duration in milliseconds. The run is over after this, or after `fail`. */
  succeed(run: ToolRun, json: string, ms: number): void;
  fail(run: ToolRun, why: ToolFault): void;
  progress(run: ToolRun, progress: number, total?: number, message?: string): void;
  log(run: ToolRun, level: string, data: unknown): void;
  /**
   * Asks the client of the call, or the gateway. `done` is called at most once. The returned function withdraws the
   * question.
   */
  ask(run: ToolRun, method: string, params: object, done: (outcome: AskOutcome) => void): () => void;
  /** The error that the tool threw, for the operator's log. The caller gets one line of it, with `fail`. */
  threw(run: ToolRun, error: unknown): void;
}

/** The run that the current code belongs to, across timers, events and promises. */
const current = new AsyncLocalStorage<ToolRun>();

export class ToolRun {
  readonly id: string | number;
  readonly caller: RunCaller | null;
  /** The tool, or another item that is run like one. */
  readonly tool: RunnableItem;
  private readonly sink: RunSink;
  private readonly wantsProgress: boolean;
  private readonly timeoutMs: number;
  private readonly start = performance.now();
  private timer: NodeJS.Timeout | null = null;
  /** When the timer fires. */
  private until = 0;
  private aborting: AbortController | null = null;
  private over: ToolFault | null = null;
  private isDone = false;
  /** Ends each open question of the tool; null if it has never asked. */
  private questions: Set<(why: string) => void> | null = null;
  /** Milliseconds that were left when the first open question stopped the clock. */
  private left = 0;

  constructor(
    sink: RunSink,
    id: string | number,
    tool: RunnableItem,
    wantsProgress: boolean,
    timeoutMs: number,
    caller: RunCaller | null = null,
  ) {
    this.sink = sink;
    this.id = id;
    this.caller = caller;
    this.tool = tool;
    this.wantsProgress = wantsProgress;
    this.timeoutMs = timeoutMs;
    if (timeoutMs > 0) {
      this.until = this.start + timeoutMs;
      this.timer = setTimeout(expire, timeoutMs, this);
    }
  }

  get signal(): AbortSignal {
    this.aborting ??= new AbortController();
    if (this.over !== null && !this.aborting.signal.aborted) this.aborting.abort(abortReason(this.over));
    return this.aborting.signal;
  }

  /** Executes the tool so that `failCurrent` finds this run. */
  run(given: unknown): void {
    void current.run(this, execute, this, given);
  }

  async execute(given: unknown): Promise<void> {
    const { tool, sink } = this;
    try {
      let input = given ?? {};
      if (tool.input !== null) {
        let checked = tool.input.check(input);
        if (isPromise(checked)) checked = await checked;
        if (checked.issues !== undefined) {
          const text = `The arguments do not fit: ${issuesText(checked.issues)}`;
          this.fail(fault('invalid_arguments', text, issueDetails(checked.issues)));
          return;
        }
        input = checked.value as object;
      }
      let value = tool.self.execute(input, new RunContext(this, sink.namespace));
      if (isPromise(value)) value = await value;
      if (isAsyncIterable(value)) value = await lastOf(value);
      let json = tool.render(value, input);
      if (typeof json !== 'string') json = await json;
      this.succeed(json);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Ends the run with an error that the tool threw, now or later. Returns false if the run was already answered. */
  failed(error: unknown): boolean {
    if (this.isDone) return false;
    this.fail(thrownFault(error, this.sink.folder));
    this.sink.threw(this, error);
    return true;
  }

  progress(progress: number, total?: number, message?: string): void {
    if (this.isDone || !this.wantsProgress || !Number.isFinite(progress)) return;
    this.sink.progress(this, progress, total, message);
  }

  log(level: string, data: unknown): void {
    if (this.isDone) return;
    this.sink.log(this, level, data);
  }

  /** Rejects if there is no answer. The time-out of the tool does not run meanwhile: a person may need long. */
  ask(method: string, params: object): Promise<unknown> {
    if (this.isDone) return Promise.reject(new Error('The call is over.'));
    this.questions ??= new Set();
    const { questions } = this;
    if (questions.size === 0) this.stopClock();
    const answer = new Promise<unknown>((resolve, reject) => {
      const end = (why: string) => {
        questions.delete(end);
        withdraw();
        reject(new Error(why));
      };
      questions.add(end);
      let withdraw = () => {};
      withdraw = this.sink.ask(this, method, params, (outcome) => {
        if (!questions.delete(end)) return;
        if (questions.size === 0) this.startClock();
        if ('error' in outcome) reject(new Error(outcome.error));
        else resolve(outcome.result);
      });
    });
    // The tool may have ended without waiting for it.
    answer.catch(() => {});
    return answer;
  }

  private stopClock(): void {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.left = Math.max(1, this.until - performance.now());
  }

  private startClock(): void {
    if (this.timer === null || this.isDone) return;
    this.until = performance.now() + this.left;
    this.timer = setTimeout(expire, this.left, this);
  }

  /** The caller no longer waits for the result. */
  abort(error: Error): void {
    this.end(fault('cancelled', error.message));
  }

  /** Answers with the fault, and aborts the tool's signal. */
  end(why: ToolFault): void {
    if (this.isDone) return;
    this.over = why;
    this.fail(why);
    this.aborting?.abort(abortReason(why));
  }

  expired(): void {
    const text = `The tool did not finish within ${this.timeoutMs} ms.`;
    this.end(fault('execution_timeout', text, { timeout_ms: this.timeoutMs }));
  }

  private succeed(json: string): void {
    const { maxLine } = this.sink;
    // A character takes at most three bytes, so most results need not be measured.
    const size = json.length * 3 <= maxLine ? 0 : Buffer.byteLength(json);
    if (size > maxLine) {
      const text = `The result has ${size} bytes; ${maxLine} are allowed. Return less, or raise limits.message.`;
      this.fail(fault('too_large', text, { size, limit: maxLine }));
    } else if (this.done()) this.sink.succeed(this, json, performance.now() - this.start);
  }

  private fail(why: ToolFault): void {
    if (this.done()) this.sink.fail(this, why);
  }

  /** Returns false if the run was already answered. */
  private done(): boolean {
    if (this.isDone) return false;
    this.isDone = true;
    if (this.timer !== null) clearTimeout(this.timer);
    for (const end of [...(this.questions ?? [])]) end('The call is over.');
    return true;
  }
}

/** Fails the run that an uncaught error belongs to, which might otherwise never end. Returns false if there is none. */
export function failCurrent(error: unknown): boolean {
  return current.getStore()?.failed(error) ?? false;
}

/** The name of the item that the current code runs for; null outside of runs. */
export function currentItem(): string | null {
  return current.getStore()?.tool.name ?? null;
}

function execute(run: ToolRun, given: unknown): Promise<void> {
  return run.execute(given);
}

function expire(run: ToolRun): void {
  run.expired();
}

function abortReason({ code, message }: ToolFault): DOMException {
  return new DOMException(message, code === 'execution_timeout' ? 'TimeoutError' : 'AbortError');
}

/** Recognizes promises of other realms and libraries too. */
function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && typeof (value as Promise<T>).then === 'function';
}

/** A tool of the AI SDK may yield intermediate results; the last one counts. */
function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

async function lastOf(values: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const value of values) last = value;
  return last;
}
