/** One call under way: it is answered once, by whatever comes first. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { RunContext } from './run-context.ts';
import { type ToolFault, fault, thrownFault } from './fault.ts';
import { resultJson } from './result-json.ts';
import { issueDetails, issuesText } from './schema.ts';
import type { RunnableTool } from './read-tool.ts';

/** Where a call's messages go. */
export interface RunSink {
  readonly namespace: string;
  readonly folder: string;
  readonly maxLine: number;
  /** Its result as JSON, and how long it took in milliseconds. It is over, as with `fail`. */
  succeed(running: ToolRun, json: string, ms: number): void;
  fail(running: ToolRun, why: ToolFault): void;
  progress(running: ToolRun, progress: number, total?: number, message?: string): void;
  log(running: ToolRun, level: string, data: unknown): void;
  /** What its tool threw: the answer has one line of it, and people look for the rest elsewhere. */
  threw(running: ToolRun, error: unknown): void;
}

/** The call that the present code runs for, wherever it got to by timers, events and promises. */
const current = new AsyncLocalStorage<ToolRun>();

export class ToolRun {
  readonly id: string | number;
  /** Who calls, where that is known. */
  readonly clientId: string | null;
  readonly tool: RunnableTool;
  private readonly line: RunSink;
  private readonly wantsProgress: boolean;
  private readonly timeoutMs: number;
  private readonly start = performance.now();
  private timer: NodeJS.Timeout | null = null;
  private aborting: AbortController | null = null;
  private over: ToolFault | null = null;
  private isDone = false;

  constructor(
    line: RunSink,
    id: string | number,
    tool: RunnableTool,
    wantsProgress: boolean,
    timeoutMs: number,
    clientId: string | null = null,
  ) {
    this.line = line;
    this.id = id;
    this.clientId = clientId;
    this.tool = tool;
    this.wantsProgress = wantsProgress;
    this.timeoutMs = timeoutMs;
    if (timeoutMs > 0) this.timer = setTimeout(expire, timeoutMs, this);
  }

  get signal(): AbortSignal {
    this.aborting ??= new AbortController();
    if (this.over !== null && !this.aborting.signal.aborted) this.aborting.abort(abortReason(this.over));
    return this.aborting.signal;
  }

  run(given: unknown): void {
    void current.run(this, execute, this, given);
  }

  async execute(given: unknown): Promise<void> {
    const { tool, line } = this;
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
      let value = tool.self.execute(input, new RunContext(this, line.namespace));
      if (isPromise(value)) value = await value;
      if (isAsyncIterable(value)) value = await lastOf(value);
      let json = resultJson(value, tool.output);
      if (typeof json !== 'string') json = await json;
      this.succeed(json);
    } catch (error) {
      this.failed(error);
    }
  }

  /** By what its tool threw, here or later. False where it was answered before. */
  failed(error: unknown): boolean {
    if (this.isDone) return false;
    this.fail(thrownFault(error, this.line.folder));
    this.line.threw(this, error);
    return true;
  }

  progress(progress: number, total?: number, message?: string): void {
    if (this.isDone || !this.wantsProgress || !Number.isFinite(progress)) return;
    this.line.progress(this, progress, total, message);
  }

  log(level: string, data: unknown): void {
    if (this.isDone) return;
    this.line.log(this, level, data);
  }

  /** Nobody waits for it any more. */
  abort(error: Error): void {
    this.end(fault('cancelled', error.message));
  }

  /** Answers with the fault, and tells the tool that nobody waits any more. */
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
    const { maxLine } = this.line;
    // At most three bytes a character, so most results need not be measured.
    const size = json.length * 3 <= maxLine ? 0 : Buffer.byteLength(json);
    if (size > maxLine) {
      const text = `The result has ${size} bytes; ${maxLine} are allowed. Return less, or raise limits.message.`;
      this.fail(fault('too_large', text, { size, limit: maxLine }));
    } else if (this.done()) this.line.succeed(this, json, performance.now() - this.start);
  }

  private fail(why: ToolFault): void {
    if (this.done()) this.line.fail(this, why);
  }

  /** False where it was answered before. */
  private done(): boolean {
    if (this.isDone) return false;
    this.isDone = true;
    if (this.timer !== null) clearTimeout(this.timer);
    return true;
  }
}

/** Something that nobody caught. It fails the call that it belongs to, which might wait for ever; false where there is none. */
export function failCurrent(error: unknown): boolean {
  return current.getStore()?.failed(error) ?? false;
}

function execute(running: ToolRun, given: unknown): Promise<void> {
  return running.execute(given);
}

function expire(running: ToolRun): void {
  running.expired();
}

function abortReason({ code, message }: ToolFault): DOMException {
  return new DOMException(message, code === 'execution_timeout' ? 'TimeoutError' : 'AbortError');
}

/** Also one of another realm, or of a library of its own. */
function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof value === 'object' && value !== null && typeof (value as Promise<T>).then === 'function';
}

/** A tool of the AI SDK may yield how far it is; the last word counts. */
function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

async function lastOf(values: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const value of values) last = value;
  return last;
}
