/** Errors of servers, for programs in this process. */
import type { Era } from '../protocol/revisions.ts';

/** An error that a server answered with, passed on as it came. */
export class RelayedError extends Error {
  override readonly name = 'RelayedError';
  readonly error: unknown;
  /** The bytes that it came in, and the era they were written in; null for one that no server sent. */
  readonly origin: { readonly bytes: Buffer; readonly era: Era } | null;

  constructor(error: unknown, origin: { readonly bytes: Buffer; readonly era: Era } | null = null) {
    super(String((error as { message?: unknown }).message ?? 'The server answered with an error.'));
    this.error = error;
    this.origin = origin;
  }
}

export function relayed(bytes: Buffer, era: Era): RelayedError {
  return new RelayedError(parseObject(bytes), { bytes, era });
}

/** Servers send what JSON.parse does not take, too; that must not reach the pipe's reader as an exception. */
export function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(bytes.toString()) as Record<string, unknown>;
  } catch {
    return { message: 'The server sent what is not valid JSON.' };
  }
}
