/** Hashes, and the text of a value that they are computed from. */
import { type BinaryToTextEncoding, hash } from 'node:crypto';
import { isObject } from './objects.ts';

export function sha256(data: string | Uint8Array, encoding: BinaryToTextEncoding = 'hex'): string {
  return hash('sha256', data, encoding);
}

/** JSON with the keys of every object sorted: equal texts for equal values. Hashes on disk depend on this form. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}
