/** Failures over REST: a status, and as the body the same error object that models read. */
import type { ServerResponse } from 'node:http';
import { GatewayError, statusOfCode } from '../../../base/errors.ts';
import { toObject } from '../../../base/objects.ts';
import { join, type Parts } from '../../../protocol/parts.ts';
import { sendJson } from '../wire/reply.ts';

export interface RestFailure {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>> & { readonly code: string; readonly message: string };
  /** Seconds; null if unknown. */
  readonly retryAfter: number | null;
}

/** The codes that workers use. */
const WORKER_STATUSES: ReadonlyMap<string, number> = new Map([
  ['tool_not_found', 404],
  ['invalid_arguments', 422],
  ['execution_timeout', 504],
  // A tool that lacks a package. It is the gateway that answers 503, while a folder cannot be served at all.
  ['dependency_error', 500],
]);

/**
 * The status of an error that a worker, or another Toolgate behind this one, sent as a result. Other codes are the
 * tool's own.
 */
function statusOf(code: string): number {
  // The server refused our credential, not the client's. A 401 would make the client drop its own, which was valid.
  if (code === 'unauthorized') return 502;
  return WORKER_STATUSES.get(code) ?? statusOfCode(code) ?? 500;
}

/** Statuses for the JSON-RPC codes that blame the request. */
const RPC_STATUSES: ReadonlyMap<unknown, number> = new Map([
  [-32_601, 404],
  [-32_602, 422],
]);

/** How the official SDK's result starts if the arguments are invalid. */
const SDK_INVALID = 'MCP error -32602';

/** An error of Toolgate itself. */
export function ownFailure(error: GatewayError): RestFailure {
  const { retryAfter } = error.details;
  return {
    status: error.httpStatus,
    body: { ...error.body, ...error.details },
    retryAfter: typeof retryAfter === 'number' ? retryAfter : null,
  };
}

/** The failure of a tool that answered with `isError`. `value` is the content of its result, as JSON. */
export function toolFailure(value: Parts): RestFailure {
  const content: unknown = JSON.parse(join(value).toString());
  if (isErrorObject(content)) return { status: statusOf(content.code), body: content, retryAfter: null };
  const message = typeof content === 'string' ? content : JSON.stringify(content);
  const status = message.startsWith(SDK_INVALID) ? 422 : 500;
  return { status, body: { success: false, result: null, code: 'tool_error', message }, retryAfter: null };
}

/** Whether it has the form of the error objects of workers and of Toolgate. */
function isErrorObject(value: unknown): value is RestFailure['body'] {
  const { success, code, message } = toObject(value);
  return success === false && typeof code === 'string' && typeof message === 'string';
}

/** The failure for an error object that a server answered with. */
export function serverFailure(error: Buffer): RestFailure {
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

/** Some servers send JSON that JSON.parse refuses. */
function parse(error: Buffer): Record<string, unknown> {
  try {
    return toObject(JSON.parse(error.toString()));
  } catch {
    return {};
  }
}

export const QUESTION_REFUSED = new GatewayError(
  'question_unanswered',
  'The tool asks its caller a question, which is not possible over REST. Call the tool over MCP.',
);

/** `isMcpo` adds the member that clients of mcpo read. */
export function sendFailure(
  response: ServerResponse,
  { status, body, retryAfter }: RestFailure,
  headers: readonly string[],
  isMcpo: boolean,
): void {
  const all = retryAfter === null ? headers : [...headers, 'retry-after', String(retryAfter)];
  sendJson(response, status, isMcpo ? { ...body, detail: { message: body.message } } : body, all);
}
