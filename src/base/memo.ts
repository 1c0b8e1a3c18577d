/**
 * Computes a value once per key and keeps it for as long as the key lives. Nest two of them for a pair of keys:
 * `memo((catalog) => memo((policy) => …))`.
 */
export function memo<Key extends object, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const values = new WeakMap<Key, Value>();
  return (key) => {
    const known = values.get(key);
    if (known !== undefined || values.has(key)) return known as Value;
    const value = make(key);
    values.set(key, value);
    return value;
  };
}

/** The value under `key`; `make` computes it if the map has none. */
export function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: (key: Key) => Value): Value {
  const known = map.get(key);
  if (known !== undefined || map.has(key)) return known as Value;
  const value = make(key);
  map.set(key, value);
  return value;
}
