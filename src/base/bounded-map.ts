/**
 * A map of at most `most` entries: a new entry drops the oldest. It is for keys that clients can invent, such as names
 * and addresses, so that no client can fill the memory.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly most: number;

  constructor(most: number) {
    super();
    this.most = most;
  }

  /** A key that is already in the map keeps its age. */
  override set(key: Key, value: Value): this {
    if (this.size >= this.most && !this.has(key)) this.delete(this.keys().next().value as Key);
    return super.set(key, value);
  }
}
