/**
 * Requests that may start an MCP task, and requests about one. They translate between the ids that the client knows and
 * the ids of the server.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Sink, SourceRequest } from '../../protocol/contract.ts';
import { type Message, tokenOf } from '../../protocol/message.ts';
import { encodeHeader } from '../../protocol/param-headers.ts';
import { join, type Parts } from '../../protocol/parts.ts';
import type { Question } from '../../protocol/question.ts';
import type { Era } from '../../protocol/revisions.ts';
import { rewriteRequest, type Target, type Wire } from '../../protocol/rewrite.ts';
import { exchangeIds, isTask, startedTask } from '../../protocol/task.ts';
import { ForwardingSink } from '../forwarding-sink.ts';

/** Translates task ids between client and server. */
export interface IdExchange {
  /** The client's id for a server's id. */
  out(id: string): string;
  /** The server's id for a client's id. An id that we did not issue is returned unchanged. */
  back(id: string): string;
}

/** Translates the ids of MCP tasks in everything that goes to the client. */
class TaskSink extends ForwardingSink {
  readonly exchange: IdExchange;

  constructor(inner: Sink, exchange: IdExchange) {
    super(inner);
    this.exchange = exchange;
  }

  override result(result: Parts, era: Era): void {
    this.inner.result(exchangeIds(join(result), this.exchange.out), era);
  }

  override ask(question: Question): void {
    const { out, back } = this.exchange;
    const passed: Question = {
      method: question.method,
      params: question.params === null ? null : exchangeIds(question.params, out),
      lasting: question.lasting,
      answer: (result) => question.answer(exchangeIds(result, back)),
      refuse: (error) => question.refuse(error),
      withdrawn() {},
    };
    question.withdrawn = (reason) => passed.withdrawn(reason);
    this.inner.ask(passed);
  }
}

/** For a call to a modern server, which decides by itself whether to answer with an MCP task. */
export class MaybeTaskSink extends TaskSink {
  readonly server: string;

  constructor(inner: Sink, exchange: IdExchange, server: string) {
    super(inner, exchange);
    this.server = server;
  }

  override result(result: Parts, era: Era): void {
    if (era === 'legacy' || !isTask(result)) this.inner.result(result, era);
    else if (this.tasks) super.result(result, era);
    else
      this.fail(
        new GatewayError(
          'source_broken',
          `Server "${this.server}" answered with a task, but this client does not support tasks. The result cannot be delivered.`,
        ),
      );
  }
}

/** For a call that the client wants to run as an MCP task. `created` gets the id of the task that was started. */
export class WantsTaskSink extends TaskSink {
  readonly created: (id: string) => void;

  constructor(inner: Sink, exchange: IdExchange, created: (id: string) => void) {
    super(inner, exchange);
    this.created = created;
  }

  override result(result: Parts, era: Era): void {
    const bytes = join(result);
    const task = startedTask(bytes);
    if (task !== null) this.created(task);
    super.result(bytes, era);
  }
}

/** A request about an MCP task, sent to the server that runs the task. */
export class TaskCall implements SourceRequest {
  readonly pinned = true;
  readonly client = null;
  readonly message: Message;
  readonly task: string;
  readonly sink: Sink;
  readonly timeout: number;

  constructor(message: Message, task: string, sink: Sink, timeout: number) {
    this.message = message;
    this.task = task;
    this.sink = sink;
    // The answer to `tasks/result` comes when the MCP task ends, which may take any length of time.
    this.timeout = this.isForResult ? Number.POSITIVE_INFINITY : timeout;
  }

  get isForResult(): boolean {
    return this.method === 'tasks/result';
  }

  get totalTimeout(): number {
    return this.timeout;
  }

  get taskId(): string | null {
    return this.isForResult ? this.task : null;
  }

  get method(): string {
    return this.message.method;
  }

  get token(): Buffer | null {
    return tokenOf(this.message);
  }

  encode(id: number, era: Era): Wire {
    const { taskIdStart: nameStart, taskIdEnd: nameEnd } = this.message;
    const name = Buffer.from(JSON.stringify(this.task)).toString('latin1');
    const target: Target = { nameStart, nameEnd, name };
    return rewriteRequest(this.message, target, this.sink, id, era);
  }

  headers(): readonly string[] {
    return ['mcp-method', this.method, 'mcp-name', encodeHeader(this.task)];
  }
}

/**
 * For a request about an MCP task. If the server has changed its era since, it has no task that this client could know.
 */
export class AboutTaskSink extends TaskSink {
  readonly era: Era;

  constructor(inner: Sink, exchange: IdExchange, era: Era) {
    super(inner, exchange);
    this.era = era;
  }

  override result(result: Parts, era: Era): void {
    if (era === this.era) super.result(result, era);
    else this.fail(taskUnknown());
  }
}

/** The same error for every reason, so that a client cannot learn which tasks of others exist. */
export function taskUnknown(): GatewayError {
  return new GatewayError(
    'params_invalid',
    'The task is unknown: it may have ended and been forgotten, or it was never yours. Check "taskId", or make the call again.',
  );
}
