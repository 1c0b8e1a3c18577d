/** Errors from servers, for programs in this process. */
import type { Era } from '../protocol/revisions.ts';

/** An error that a server answered with, passed on unchanged. */
export class RelayedError extends Error {
  override readonly name = 'RelayedError';
  readonly error: unknown;
  /** The original bytes and their era; null if the error did not come from a server. */
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

/** Servers may send bytes that JSON.parse rejects. That must not throw into the code that reads the connection. */
export function parseObject(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(bytes.toString()) as Record<string, unknown>;
  } catch {
    return { message: 'The server sent invalid JSON.' };
  }
}
