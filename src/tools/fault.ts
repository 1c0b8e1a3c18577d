/** An error of a tool as its caller sees it: a code, a message for people, and the location in the tool's source. */
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export type FaultCode =
  | 'tool_not_found'
  | 'prompt_not_found'
  | 'resource_not_found'
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

export interface SourceLocation {
  readonly file: string;
  readonly line: number;
}

export function fault(code: FaultCode, message: string, details: Readonly<Record<string, unknown>> = {}): ToolFault {
  return { code, message, details };
}

/** The fault for anything that a tool threw. */
export function thrownFault(error: unknown, folder: string): ToolFault {
  const code = codeOf(error) === 'ERR_MODULE_NOT_FOUND' ? 'dependency_error' : 'internal_error';
  return fault(code, textOf(error), { type: typeOf(error), ...locationOf(error, folder) });
}

/** The message of an error with that of its cause, because "fetch failed" alone says nothing. */
export function textOf(error: unknown): string {
  if (isErrorLike(error)) return errorText(error);
  if (typeof error === 'string') return error;
  try {
    return JSON.stringify(error) ?? String(error);
  } catch {
    return String(error);
  }
}

function errorText(error: Error): string {
  const own = error.message === '' ? typeOf(error) : error.message;
  const { cause } = error;
  if (!isErrorLike(cause)) return own;
  // If several addresses were tried, the cause is an AggregateError without a message.
  const [first] = (cause as AggregateError).errors ?? [];
  const reason = cause.message === '' && isErrorLike(first) ? first.message : cause.message;
  return reason === '' || own.includes(reason) ? own : `${own}: ${reason}`;
}

/** The topmost frame of the stack that lies in the folder, and not in one of its packages. Source maps are already applied to the stack. */
export function locationOf(error: unknown, folder: string): SourceLocation | null {
  if (!isErrorLike(error) || typeof error.stack !== 'string') return null;
  for (const line of error.stack.split('\n')) {
    const frame = /^\s*at .*?((?:file:\/\/)?\/[^()]*|(?:file:\/\/\/)?[A-Za-z]:[\\/][^()]*):(\d+):\d+\)?$/.exec(line);
    if (frame === null) continue;
    const file = pathBelow(frame[1]!, folder);
    if (file !== null) return { file, line: Number(frame[2]) };
  }
  return null;
}

function pathBelow(file: string, folder: string): string | null {
  try {
    const path = relative(folder, file.startsWith('file:') ? fileURLToPath(file) : file);
    return path.startsWith('..') || path === '' || path.includes('node_modules') ? null : path.split(sep).join('/');
  } catch {
    return null;
  }
}

function typeOf(error: unknown): string {
  if (!isErrorLike(error)) return typeof error;
  // Subclasses often do not set `name`.
  return error.name !== 'Error' ? String(error.name) : (error.constructor?.name ?? 'Error');
}

function codeOf(error: unknown): unknown {
  return isErrorLike(error) ? (error as NodeJS.ErrnoException).code : undefined;
}

/** Not `instanceof`, because the error may come from another realm. */
function isErrorLike(error: unknown): error is Error {
  return typeof error === 'object' && error !== null && typeof (error as Error).message === 'string';
}
