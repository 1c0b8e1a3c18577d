/** One line for each call. Arguments and results are in it only where they are asked for: they may hold anything. */
import { GatewayError } from '../base/errors.ts';
import type { CallResult, Middleware, MiddlewareCall } from '../calls/middleware.ts';
import { RelayedError } from '../calls/relayed-error.ts';

/** What is written beside the name, the agent, the outcome and the time. */
export interface LogCallsOptions {
  /** Whether arguments are written too. */
  readonly arguments?: boolean;
  /** Whether results are written too. */
  readonly results?: boolean;
}

/**
 * Middleware that writes one line for each call. `log` gets the line, and what the call was.
 *
 * @example
 * gateway.use(logCalls((line) => console.error(line)));
 */
export function logCalls(
  log: (line: string, call: MiddlewareCall) => void,
  { arguments: withArguments = false, results = false }: LogCallsOptions = {},
): Middleware {
  return async (call, next) => {
    const started = performance.now();
    const write = (outcome: string, result: CallResult | null) => {
      const parts = [
        // Names are for servers to choose; as JSON none of them can begin a line of its own.
        `${call.kind} ${JSON.stringify(call.name)} of ${JSON.stringify(call.server)} for ${JSON.stringify(call.agent)}:`,
        `${outcome} in ${(performance.now() - started).toFixed(1)} ms`,
        ...(withArguments ? [`arguments ${JSON.stringify(call.arguments)}`] : []),
        ...(results && result !== null ? [`result ${JSON.stringify(result.value)}`] : []),
      ];
      log(parts.join(' '), call);
    };
    try {
      const result = await next();
      write(result.isError ? 'tool_error' : 'ok', result);
      return result;
    } catch (error) {
      write(outcomeOf(error), null);
      throw error;
    }
  };
}

function outcomeOf(error: unknown): string {
  if (error instanceof GatewayError) return error.code;
  return error instanceof RelayedError ? 'error' : 'internal';
}
