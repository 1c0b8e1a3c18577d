/** How a call can end, and what a call is for. */

/**
 * `tool_error`: the tool itself said that it failed. `error`: the server answered with an error of the protocol. `failed`: no
 * answer, because the server was not there or sent something invalid. `cached`: answered as an equal call was before.
 */
export const OUTCOMES = ['ok', 'tool_error', 'error', 'failed', 'timeout', 'cancelled', 'cached'] as const;
/** How a call ended. */
export type Outcome = (typeof OUTCOMES)[number];
// Calls carry the index: it counts in a typed array without a lookup.
export const [OK, TOOL_ERROR, ERROR, FAILED, TIMEOUT, CANCELLED, CACHED] = [0, 1, 2, 3, 4, 5, 6] as const;
/** It reached no server. Such calls are counted apart from the others, by the code of their error. */
export const REFUSED = OUTCOMES.length;

/** What a call is for. */
export type CallKind = 'tool' | 'resource' | 'prompt' | 'completion';

const KIND_OF: Readonly<Record<string, CallKind>> = {
  'tools/call': 'tool',
  'resources/read': 'resource',
  'prompts/get': 'prompt',
  'completion/complete': 'completion',
};

export function kindOf(method: string): CallKind {
  return KIND_OF[method] ?? 'tool';
}
