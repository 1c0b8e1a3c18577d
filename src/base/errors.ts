/**
 * Every error of Toolgate's own in one table: its reader, its HTTP status and its JSON-RPC code. Errors of servers are
 * not here; they are relayed as they came.
 */

interface ErrorKind {
  /** The status of the HTTP reply if the error is the reply. */
  readonly http: number;
  /** The code of the JSON-RPC error object. */
  readonly rpc: number;
}

const kinds = {
  // Read by the operator.
  config_invalid: { http: 500, rpc: -32603 },
  config_missing: { http: 500, rpc: -32603 },
  usage: { http: 400, rpc: -32602 },
  listen_refused: { http: 500, rpc: -32603 },
  // Read by the model.
  item_unknown: { http: 404, rpc: -32602 },
  item_inactive: { http: 403, rpc: -32602 },
  item_held: { http: 403, rpc: -32000 },
  arguments_denied: { http: 403, rpc: -32602 },
  not_approved: { http: 403, rpc: -32000 },
  arguments_invalid: { http: 422, rpc: -32602 },
  source_unavailable: { http: 503, rpc: -32000 },
  source_timeout: { http: 504, rpc: -32001 },
  // Of folders of tools, in the words of their workers.
  execution_timeout: { http: 504, rpc: -32001 },
  dependency_error: { http: 503, rpc: -32000 },
  source_broken: { http: 502, rpc: -32000 },
  source_busy: { http: 503, rpc: -32000 },
  rate_limited: { http: 429, rpc: -32000 },
  question_unanswered: { http: 424, rpc: -32000 },
  cancelled: { http: 499, rpc: -32000 },
  macro_failed: { http: 424, rpc: -32000 },
  audit_unavailable: { http: 503, rpc: -32000 },
  storage_failed: { http: 500, rpc: -32603 },
  outcome_unknown: { http: 502, rpc: -32000 },
  store_unavailable: { http: 503, rpc: -32000 },
  // Read by the client's author.
  parse: { http: 400, rpc: -32700 },
  request_invalid: { http: 400, rpc: -32600 },
  method_unknown: { http: 404, rpc: -32601 },
  params_invalid: { http: 400, rpc: -32602 },
  header_mismatch: { http: 400, rpc: -32020 },
  capability_missing: { http: 400, rpc: -32021 },
  revision_unsupported: { http: 400, rpc: -32022 },
  envelope_invalid: { http: 400, rpc: -32602 },
  not_initialized: { http: 400, rpc: -32600 },
  resource_unknown: { http: 404, rpc: -32002 },
  session_unknown: { http: 404, rpc: -32001 },
  session_missing: { http: 400, rpc: -32000 },
  version_unsupported: { http: 400, rpc: -32000 },
  not_acceptable: { http: 406, rpc: -32000 },
  media_unsupported: { http: 415, rpc: -32000 },
  too_large: { http: 413, rpc: -32000 },
  method_not_allowed: { http: 405, rpc: -32000 },
  path_unknown: { http: 404, rpc: -32000 },
  unauthorized: { http: 401, rpc: -32000 },
  forbidden: { http: 403, rpc: -32000 },
  sessions_full: { http: 503, rpc: -32000 },
  internal: { http: 500, rpc: -32603 },
} as const satisfies Record<string, ErrorKind>;

/** Every code that an error of Toolgate may have. */
export type ErrorCode = keyof typeof kinds;

export const ERROR_CODES = Object.keys(kinds) as readonly ErrorCode[];

/** The HTTP status of a code that another program sent; null if it is not one of ours. */
export function statusOfCode(code: string): number | null {
  return Object.hasOwn(kinds, code) ? kinds[code as ErrorCode].http : null;
}

/** What a caller sees of an error: the same object at every door. */
export interface ErrorBody {
  readonly success: false;
  readonly result: null;
  readonly code: ErrorCode;
  readonly message: string;
}

interface ErrorExtras extends ErrorOptions {
  /** Further data for programs, in addition to the message. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** The rule of the configuration that it comes from. It is for the audit and is not sent to anybody. */
  readonly rule?: string;
  /** Why the rule applies. Like the rule, it is for the audit only. */
  readonly why?: string;
}

/**
 * An error of Toolgate's own. The message says what happened, to what, and what to do about it; the code is for
 * programs.
 *
 * @example
 * try {
 *   configFromValue({ servers: 1 }, { cwd: '.', env: {} });
 * } catch (error) {
 *   if (error instanceof GatewayError && error.code === 'config_invalid') console.error(error.message);
 * }
 */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  /** @internal */
  readonly rule: string | null;
  /** @internal */
  readonly why: string | null;

  constructor(code: ErrorCode, message: string, extras?: ErrorExtras) {
    super(message, extras);
    this.code = code;
    this.details = extras?.details ?? {};
    this.rule = extras?.rule ?? null;
    this.why = extras?.why ?? null;
  }

  /** The HTTP status. */
  get httpStatus(): number {
    return kinds[this.code].http;
  }

  get rpcCode(): number {
    return kinds[this.code].rpc;
  }

  get body(): ErrorBody {
    return { success: false, result: null, code: this.code, message: this.message };
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Anything thrown, as an error that may be shown. An unexpected error is replaced by one without details. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  return new GatewayError('internal', 'Toolgate failed unexpectedly; its log has the details.', { cause: error });
}
