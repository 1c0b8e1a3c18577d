/** Answers of servers of earlier revisions, as clients of either era receive them. */
import { expect } from 'vitest';
import { type Door, isModern, type RawAnswer } from '../support/doors.ts';

/** An answer as a client at this door receives it: the same bytes, preceded by the fields that 2026-07-28 requires. */
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

/** The fields in a list result other than the list itself. */
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

/** 2026-07-28 uses a different code for an unknown resource, and reserves the codes around it. */
export function codeAt(door: Door, code: number): number {
  if (!isModern(door)) return code;
  if (code === -32002) return -32602;
  return code <= -32000 && code > -32100 ? -32603 : code;
}

/** A tool that declares how it runs as a task. Since 2026-07-28 that declaration has another meaning. */
export function definitionAt(door: Door, definition: string): string {
  return isModern(door) ? definition.replace(/,"execution":\{[^{}]*\}/, '') : definition;
}

/** The error for a modern request over HTTP that lacks a required header. */
export const headerMissing = { code: -32020, data: { success: false, result: null, code: 'header_mismatch' } };
