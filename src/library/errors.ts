/** Errors about toolsets, with codes for programs, and warnings for their authors. */
import { type ErrorCode, GatewayError } from '../base/errors.ts';

/**
 * `E_VALIDATION`: the toolset does not exist, or may not be switched on. `E_POLICY_MAX_ACTIVE`: too many are switched
 * on. `E_TOOL_NAME_CONFLICT`: two tools would have the same name. `E_INTERNAL`: a loader failed. `E_NOTIFY_FAILED`:
 * never raised. A client that cannot be notified of a change sees it when it reconnects.
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

/** An error about a toolset. `reason` is the code; the message says what happened and what to do. */
export class ToolingError extends GatewayError {
  readonly reason: ToolingErrorCode;

  constructor(reason: ToolingErrorCode, message: string, options?: ErrorOptions) {
    super(KINDS[reason], message, options);
    this.reason = reason;
  }
}

/** The options are wrong, so no server was created. */
export function wrongOptions(message: string): ToolingError {
  return new ToolingError('E_VALIDATION', message);
}

/** Warns the author of the program. Programs can listen to warnings, and Node prints them. */
export function warn(message: string): void {
  process.emitWarning(message, { type: 'ToolgateWarning' });
}
