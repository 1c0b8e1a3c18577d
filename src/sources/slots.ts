/**
 * Things under way, by ids of their own. An array whose places are used again, and not a Map: a Map that is filled and
 * emptied all the time is rebuilt again and again, each dead table points to its successor, and from the moment one of
 * them is in the old generation every later call survives young collections with it.
 */
export interface Numbered {
  readonly id: number;
}

export class Slots<T extends Numbered> {
  #places: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  #lastId = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** An id that was never given before; its place is free. */
  nextId(): number {
    if (this.#size * 2 >= this.#places.length) this.#grow();
    do {
      this.#lastId++;
    } while (this.#places[this.#lastId & (this.#places.length - 1)] !== undefined);
    return this.#lastId;
  }

  put(item: T): void {
    this.#places[item.id & (this.#places.length - 1)] = item;
    this.#size++;
  }

  get(id: number): T | undefined {
    const item = this.#places[id & (this.#places.length - 1)];
    return item?.id === id ? item : undefined;
  }

  take(id: number): T | undefined {
    const item = this.get(id);
    if (item === undefined) return undefined;
    this.#places[id & (this.#places.length - 1)] = undefined;
    this.#size--;
    return item;
  }

  all(): T[] {
    return this.#places.filter((item) => item !== undefined);
  }

  // Ids in the same place of the larger array would push each other out, so it is doubled until all have one of their own.
  #grow(): void {
    const items = this.all();
    let length = this.#places.length;
    let places: (T | undefined)[];
    do {
      length *= 2;
      places = new Array<T | undefined>(length).fill(undefined);
      for (const item of items) places[item.id & (length - 1)] = item;
    } while (places.filter((item) => item !== undefined).length < items.length);
    this.#places = places;
  }
}
