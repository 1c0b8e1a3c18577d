/** Guards for values of unknown shape, such as parsed JSON. */

/** An object with names of any kind: not null, and not an array. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value itself if it is an object, else an empty one: for fields that are checked one by one afterwards. */
export function toObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}
