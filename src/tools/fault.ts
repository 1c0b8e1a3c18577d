/** What went wrong in a worker, as it is told: a code, a message for people, and the place in the tool's own source. */
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BuildFailure } from './build-manifest.ts';

export type FaultCode =
  | 'tool_not_found'
  | 'invalid_arguments'
  | 'dependency_error'
  | 'execution_timeout'
  | 'internal_error'
  | 'cancelled'
  | 'too_large';

export interface ToolFault {
  readonly code: FaultCode;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** A file of the folder that gives no tools, or one tool less. */
export type Failure = BuildFailure;

export interface SourceLocation {
  readonly file: string;
  readonly line: number;
}

export function fault(code: FaultCode, message: string, details: Readonly<Record<string, unknown>> = {}): ToolFault {
  return { code, message, details };
}

/** Anything that a tool threw. */
export function thrownFault(error: unknown, folder: string): ToolFault {
  const place = locationOf(error, folder);
  const code = codeOf(error) === 'ERR_MODULE_NOT_FOUND' ? 'dependency_error' : 'internal_error';
  return fault(code, textOf(error), { type: typeOf(error), ...place });
}

export function textOf(error: unknown): string {
  if (isErrorLike(error)) return errorText(error);
  if (typeof error === 'string') return error;
  try {
    return JSON.stringify(error) ?? String(error);
  } catch {
    return String(error);
  }
}

/** With the cause, because "fetch failed" alone helps nobody. */
function errorText(error: Error): string {
  const own = error.message === '' ? typeOf(error) : error.message;
  const { cause } = error;
  if (!isErrorLike(cause)) return own;
  // Several addresses were tried, and the error of all is empty.
  const [first] = (cause as AggregateError).errors ?? [];
  const deeper = cause.message === '' && isErrorLike(first) ? first.message : cause.message;
  return deeper === '' || own.includes(deeper) ? own : `${own}: ${deeper}`;
}

/** The first line of its stack that is in the folder. Source maps have made it one of the file as it was written. */
export function locationOf(error: unknown, folder: string): SourceLocation | null {
  if (!isErrorLike(error) || typeof error.stack !== 'string') return null;
  for (const line of error.stack.split('\n')) {
    const found = /^\s*at .*?((?:file:\/\/)?\/[^()]*|(?:file:\/\/\/)?[A-Za-z]:[\\/][^()]*):(\d+):\d+\)?$/.exec(line);
    if (found === null) continue;
    const file = pathBelow(found[1]!, folder);
    if (file !== null) return { file, line: Number(found[2]) };
  }
  return null;
}

function pathBelow(place: string, folder: string): string | null {
  try {
    const path = relative(folder, place.startsWith('file:') ? fileURLToPath(place) : place);
    return path.startsWith('..') || path === '' ? null : path.split(sep).join('/');
  } catch {
    return null;
  }
}

function typeOf(error: unknown): string {
  if (!isErrorLike(error)) return typeof error;
  // A class of one's own often leaves `name` as it is.
  return error.name !== 'Error' ? String(error.name) : (error.constructor?.name ?? 'Error');
}

function codeOf(error: unknown): unknown {
  return isErrorLike(error) ? (error as NodeJS.ErrnoException).code : undefined;
}

/** Not `instanceof`: it may come from another realm. */
function isErrorLike(error: unknown): error is Error {
  return typeof error === 'object' && error !== null && typeof (error as Error).message === 'string';
}
