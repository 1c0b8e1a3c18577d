/** The outcomes and kinds of calls. */
import type { ErrorCode } from '../base/errors.ts';
import { READ_DIRECTORY } from '../protocol/meta.ts';

/**
 * `tool_error`: the tool itself reported a failure. `error`: the server answered with a protocol error. `failed`: there
 * was no valid answer, because the server was unavailable or sent something invalid. `cached`: answered from the cache.
 */
export const OUTCOMES = ['ok', 'tool_error', 'error', 'failed', 'timeout', 'cancelled', 'cached'] as const;
/** How a call ended. */
export type Outcome = (typeof OUTCOMES)[number];
// Calls carry the index, so that an outcome can be counted in a typed array without a lookup.
export const [OK, TOOL_ERROR, ERROR, FAILED, TIMEOUT, CANCELLED, CACHED] = [0, 1, 2, 3, 4, 5, 6] as const;
/** The call reached no server. Such calls are counted separately, by their error code. */
export const REFUSED = OUTCOMES.length;

/** Whether an error with this code means that the server, or a tool of a folder, did not answer in time. */
export function isTimeout(code: ErrorCode): boolean {
  return code === 'source_timeout' || code === 'execution_timeout';
}

/** What a call is for. */
export type CallKind = 'tool' | 'resource' | 'prompt' | 'completion';

const KIND_OF: Readonly<Record<string, CallKind>> = {
  'tools/call': 'tool',
  'resources/read': 'resource',
  [READ_DIRECTORY]: 'resource',
  'prompts/get': 'prompt',
  'completion/complete': 'completion',
};

export function kindOf(method: string): CallKind {
  return KIND_OF[method] ?? 'tool';
}
