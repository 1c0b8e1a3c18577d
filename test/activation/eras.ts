/** What servers of the earlier revisions say, as clients of either era get it. */
import { expect } from 'vitest';
import { type Door, isModern, type RawAnswer } from './doors.ts';

/** An answer as a client at this door gets it: the same bytes, with what 2026-07-28 asks for in front. */
export function asGiven(door: Door, method: string, answer: RawAnswer): RawAnswer {
  if (!isModern(door)) return answer;
  const { result, error } = answer;
  const fields = `"resultType":"complete"${method === 'resources/read' ? ',"ttlMs":0,"cacheScope":"private"' : ''}`;
  return {
    ...(result !== undefined && { result: `{${fields},${result.slice(1).trimStart()}` }),
    ...(error !== undefined && {
      error: error.replace(/(?<="code":)-?\d+/, (code) => `${codeAt(door, Number(code))}`),
    }),
  };
}

/** What stands in the result of a list beside the list. */
export function listFields(door: Door): object {
  if (!isModern(door)) return {};
  const serverInfo = { name: 'toolgate', version: expect.any(String) };
  return {
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
  };
}

/** 2026-07-28 has another code for a resource that is not there, and keeps the codes around it for itself. */
export function codeAt(door: Door, code: number): number {
  if (!isModern(door)) return code;
  if (code === -32002) return -32602;
  return code <= -32000 && code > -32100 ? -32603 : code;
}

/** A tool that says how it is run as a task: since 2026-07-28 that means something else. */
export function definitionAt(door: Door, definition: string): string {
  return isModern(door) ? definition.replace(/,"execution":\{[^{}]*\}/, '') : definition;
}

/** The error of a modern request over HTTP without a header that it needs. */
export const headerMissing = { code: -32020, data: { success: false, result: null, code: 'header_mismatch' } };
