/**
 * What a tool receives in addition to its arguments. Most tools use none of it, so each part is created on first use.
 * In addition to our own names it has those of the AI SDK and of FastMCP, whose tools run here unchanged.
 */
import { isLogLevel, LOG_LEVELS, type LogLevel } from '../protocol/levels.ts';
import type { ToolContext, ToolLog, ToolState } from './define-tool.ts';
import { elicit, sample, stateOf } from './questions.ts';

/** The call that a tool runs for. */
export interface RunningCall {
  readonly id: string | number;
  readonly caller: { readonly agent?: string | undefined; readonly sessionId?: string | undefined } | null;
  readonly signal: AbortSignal;
  progress(progress: number, total?: number, message?: string): void;
  log(level: LogLevel, data: unknown): void;
  ask(method: string, params: object): Promise<unknown>;
}

export class RunContext implements ToolContext {
  readonly requestId: string;
  readonly namespace: string;
  // Not a `#private` field, which would be slower on every call.
  readonly call: RunningCall;

  constructor(call: RunningCall, namespace: string) {
    this.call = call;
    this.requestId = String(call.id);
    this.namespace = namespace;
  }

  get agent(): string | undefined {
    return this.call.caller?.agent;
  }

  get clientId(): string | undefined {
    return this.call.caller?.agent;
  }

  get sessionId(): string | undefined {
    return this.call.caller?.sessionId;
  }

  get signal(): AbortSignal {
    return this.call.signal;
  }

  get env(): NodeJS.ProcessEnv {
    return process.env;
  }

  get log(): ToolLog {
    return createLog(this.call);
  }

  /** Bound, so that it can be destructured: `execute(input, { progress })`. */
  get progress(): ToolContext['progress'] {
    const { call } = this;
    return (progress, total, message) => call.progress(progress, total, message);
  }

  get elicit(): ToolContext['elicit'] {
    const { call } = this;
    return (asked: string | object, schema?: unknown) => elicit(call, asked, schema) as Promise<never>;
  }

  get sample(): ToolContext['sample'] {
    const { call } = this;
    return (asked) => sample(call, asked);
  }

  get state(): ToolState {
    return stateOf(this.call);
  }

  // Names of the AI SDK.

  get abortSignal(): AbortSignal {
    return this.signal;
  }

  get toolCallId(): string {
    return this.requestId;
  }

  get messages(): readonly never[] {
    return [];
  }

  // A name of FastMCP.

  get reportProgress(): (step: { progress: number; total?: number; message?: string }) => Promise<void> {
    const { call } = this;
    return async ({ progress, total, message }) => call.progress(progress, total, message);
  }
}

function createLog(call: RunningCall): ToolLog {
  const log = (level: unknown, data: unknown) => {
    if (isLogLevel(level)) call.log(level, data);
    else call.log('info', data === undefined ? level : { message: level, data });
  };
  const at = (level: LogLevel) => (data: unknown, more?: unknown) =>
    call.log(level, more === undefined ? data : { message: data, data: more });
  const levels = Object.fromEntries(LOG_LEVELS.map((level) => [level, at(level)]));
  return Object.assign(log, levels, { warn: at('warning') }) as unknown as ToolLog;
}
