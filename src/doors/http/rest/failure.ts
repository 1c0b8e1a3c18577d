/** What went wrong, over REST: a status, and one object as the body, the same that models read. */
import type { ServerResponse } from 'node:http';
import { GatewayError, statusOfCode } from '../../../base/errors.ts';
import { toBytes } from '../../../protocol/json.ts';
import type { Parts } from '../../../protocol/parts.ts';
import { join } from '../../../protocol/parts.ts';
import { sendReply } from '../wire/reply.ts';

export interface Failure {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & { readonly code: string; readonly message: string };
  /** Seconds; null where nobody knows. */
  readonly retryAfter: number | null;
}

/** The codes that workers use. */
const WORKER_STATUSES: ReadonlyMap<string, number> = new Map([
  ['tool_not_found', 404],
  ['invalid_arguments', 422],
  ['execution_timeout', 504],
]);

/** The status of an error that a worker, or another Toolgate behind this one, sent as a result; any other code is the tool's own. */
function statusOf(code: string): number {
  // It refuses the credential that we have for it. The client's own credential was good: a 401 would make it drop that.
  if (code === 'unauthorized') return 502;
  return WORKER_STATUSES.get(code) ?? statusOfCode(code) ?? 500;
}

/** Codes of JSON-RPC: what was asked for was wrong, not what was done. */
const RPC_STATUSES: ReadonlyMap<unknown, number> = new Map([
  [-32_601, 404],
  [-32_602, 422],
]);

/** How the official SDK says in a result that arguments do not fit. */
const SDK_INVALID = 'MCP error -32602';

/** An error of Toolgate's own. */
export function ownFailure(error: GatewayError): Failure {
  const { retryAfter } = error.details;
  return {
    status: error.httpStatus,
    body: { ...error.body, ...error.details },
    retryAfter: typeof retryAfter === 'number' ? retryAfter : null,
  };
}

/** A tool says that it failed: `value` is what it says, as JSON. */
export function toolFailure(value: Parts): Failure {
  const said: unknown = JSON.parse(join(value).toString());
  if (isOurs(said)) return { status: statusOf(said.code), body: said, retryAfter: null };
  const message = typeof said === 'string' ? said : JSON.stringify(said);
  const status = message.startsWith(SDK_INVALID) ? 422 : 500;
  return { status, body: { success: false, result: null, code: 'tool_error', message }, retryAfter: null };
}

function isOurs(said: unknown): said is Failure['body'] {
  const { success, code, message } = Object(said) as Record<string, unknown>;
  return success === false && typeof code === 'string' && typeof message === 'string';
}

/** The error object that a server answered with. */
export function serverFailure(error: Buffer): Failure {
  const { code, message, data } = parse(error);
  return {
    status: RPC_STATUSES.get(code) ?? 500,
    body: {
      success: false,
      result: null,
      code: 'server_error',
      message: typeof message === 'string' ? message : 'The server answered with an error.',
      error: { code, ...(data !== undefined && { data }) },
    },
    retryAfter: null,
  };
}

/** Servers send what JSON.parse does not take, too. */
function parse(error: Buffer): Record<string, unknown> {
  try {
    return JSON.parse(error.toString()) as Record<string, unknown>;
  } catch {
    return {};
  }
}

export const ASKED_BACK = new GatewayError(
  'question_unanswered',
  'The tool asks its caller something, and over REST nobody can be asked. Use MCP for it.',
);

/** `detailed` adds what clients of mcpo read. */
export function sendFailure(
  response: ServerResponse,
  { status, body, retryAfter }: Failure,
  headers: readonly string[],
  detailed: boolean,
): void {
  const all = retryAfter === null ? headers : [...headers, 'retry-after', String(retryAfter)];
  const whole = detailed ? { ...body, detail: { message: body.message } } : body;
  sendReply(response, status, { head: '', body: toBytes(whole), tail: '' }, all);
}
