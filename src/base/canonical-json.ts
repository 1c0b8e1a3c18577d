import { isObject } from './objects.ts';

/** JSON with the keys of every object sorted: equal texts for equal values. Hashes on disk depend on this form. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}
