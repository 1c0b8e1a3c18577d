/**
 * A queue. Removing the first element of a long array moves all others, so a long queue would take quadratic time. Here
 * removed elements stay until they are half of the array.
 */
export class Queue<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** Removes the first element. */
  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.#head >= this.#items.length) return undefined;
    this.#items[this.#head++] = undefined as T;
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i]!;
  }
}
