/**
 * What a tool is told beside its arguments. Most tools look at none of it, so each part is made when it is asked for.
 * Beside our own names stand those of the AI SDK and of FastMCP, whose tools run here as they are.
 */
import type { LogLevel, ToolContext, ToolLog } from './define-tool.ts';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

/** The call that a tool runs for. */
export interface RunningCall {
  readonly id: string | number;
  readonly clientId: string | null;
  readonly signal: AbortSignal;
  progress(progress: number, total?: number, message?: string): void;
  log(level: LogLevel, data: unknown): void;
}

export class RunContext implements ToolContext {
  readonly requestId: string;
  readonly namespace: string;
  // Not private by name: that is slower, and a tool gains nothing by it.
  readonly caller: RunningCall;

  constructor(caller: RunningCall, namespace: string) {
    this.caller = caller;
    this.requestId = String(caller.id);
    this.namespace = namespace;
  }

  get clientId(): string | undefined {
    return this.caller.clientId ?? undefined;
  }

  get signal(): AbortSignal {
    return this.caller.signal;
  }

  get env(): NodeJS.ProcessEnv {
    return process.env;
  }

  get log(): ToolLog {
    return createLog(this.caller);
  }

  /** Bound, so that it can be taken out: `execute(input, { progress })`. */
  get progress(): ToolContext['progress'] {
    const { caller } = this;
    return (progress, total, message) => caller.progress(progress, total, message);
  }

  get abortSignal(): AbortSignal {
    return this.signal;
  }

  get toolCallId(): string {
    return this.requestId;
  }

  get messages(): readonly never[] {
    return [];
  }

  get reportProgress(): (step: { progress: number; total?: number; message?: string }) => Promise<void> {
    const { caller } = this;
    return async ({ progress, total, message }) => caller.progress(progress, total, message);
  }
}

function createLog(caller: RunningCall): ToolLog {
  const log = (level: unknown, data: unknown) => {
    if (isLevel(level)) caller.log(level, data);
    else caller.log('info', data === undefined ? level : { message: level, data });
  };
  const at = (level: LogLevel) => (data: unknown, more?: unknown) =>
    caller.log(level, more === undefined ? data : { message: data, data: more });
  const levels = Object.fromEntries(LEVELS.map((level) => [level, at(level)]));
  return Object.assign(log, levels, { warn: at('warning') }) as unknown as ToolLog;
}

function isLevel(level: unknown): level is LogLevel {
  return (LEVELS as readonly unknown[]).includes(level);
}
