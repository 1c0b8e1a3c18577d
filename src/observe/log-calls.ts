/**
 * Logs one line for each call. Arguments and results are included only on request, because they may contain secrets.
 */
import { GatewayError } from '../base/errors.ts';
import type { CallResult, Middleware, MiddlewareCall } from '../calls/middleware.ts';
import { RelayedError } from '../calls/relayed-error.ts';

/** What is logged in addition to the name, the agent, the outcome and the time. */
export interface LogCallsOptions {
  /** Whether arguments are logged. */
  readonly arguments?: boolean;
  /** Whether results are logged. */
  readonly results?: boolean;
}

/**
 * Middleware that logs one line for each call. `log` gets the line and the details of the call.
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
        // Servers choose the names. Printed as JSON, a name cannot contain a line break and forge a line.
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
