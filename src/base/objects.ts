/** Guards for values of unknown shape, such as parsed JSON, and the comparison of values. */
import { isDeepStrictEqual } from 'node:util';

/** An object with any keys: not null, and not an array. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value itself if it is an object, else an empty one: for fields that are checked one by one afterwards. */
export function toObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/**
 * Whether two configurations, or parts of them, are equal. Functions without parameters hide secrets from printing:
 * they are called, and their results compared. Functions with parameters are made from values that are compared too, so
 * they count as equal.
 */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a === 'function' && typeof b === 'function') return a.length > 0 || b.length > 0 || isSameValue(a(), b());
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => isSameValue(one, b[i]));
  if (a instanceof Map && b instanceof Map) return isSameValue([...a], [...b]);
  if (!isPlain(a) || !isPlain(b)) return isDeepStrictEqual(a, b);
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isSameValue(a[key], b[key]))
  );
}

/** False for instances of classes. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
