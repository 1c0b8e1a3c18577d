/** What can be wrong with toolsets, by codes that programs may look at. */
import { type ErrorCode, GatewayError } from '../base/errors.ts';

/**
 * `E_VALIDATION`: there is no such toolset, or it may not be switched on. `E_POLICY_MAX_ACTIVE`: too many are.
 * `E_TOOL_NAME_CONFLICT`: two tools would have one name. `E_INTERNAL`: a loader failed. `E_NOTIFY_FAILED`: never raised;
 * a client that cannot be told of a change hears of it when it comes back.
 */
export type ToolingErrorCode =
  | 'E_VALIDATION'
  | 'E_POLICY_MAX_ACTIVE'
  | 'E_TOOL_NAME_CONFLICT'
  | 'E_NOTIFY_FAILED'
  | 'E_INTERNAL';

const KINDS: Readonly<Record<ToolingErrorCode, ErrorCode>> = {
  E_VALIDATION: 'arguments_invalid',
  E_POLICY_MAX_ACTIVE: 'arguments_denied',
  E_TOOL_NAME_CONFLICT: 'arguments_denied',
  E_NOTIFY_FAILED: 'internal',
  E_INTERNAL: 'source_unavailable',
};

/** Something is wrong with a toolset. `reason` is the code; the message says what happened, and what to do about it. */
export class ToolingError extends GatewayError {
  readonly reason: ToolingErrorCode;

  constructor(reason: ToolingErrorCode, message: string, options?: ErrorOptions) {
    super(KINDS[reason], message, options);
    this.reason = reason;
  }
}

/** What is wrong with the options themselves: there is no server then. */
export function wrongOptions(message: string): ToolingError {
  return new ToolingError('E_VALIDATION', message);
}
